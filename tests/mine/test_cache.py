"""Mined releases are kept and found again."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.mine import cache
from app.mine.wheels import Archive, archive


@pytest.fixture
def package(tmp_path: Path) -> Archive:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "a.py").write_text("if x:\n    raise ValueError(f\"no {'a' if b else 'c'}\")\n")
    (folder / "b.py").write_text("def (:\n")
    return archive(folder)


def test_gives_back_what_was_mined_without_mining(
    package: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = cache.mined(package, tmp_path / "mined", package="p", version="1")
    monkeypatch.setattr(cache, "mine", None)

    second = cache.mined(package, tmp_path / "mined", package="p", version="1")

    assert first == second
    assert len(first.sites[0].variants) == 2
    assert first.failed


def test_mines_anew_what_was_damaged(package: Archive, tmp_path: Path) -> None:
    first = cache.mined(package, tmp_path / "mined", package="p", version="1")
    (path,) = (tmp_path / "mined").iterdir()
    path.write_bytes(path.read_bytes()[:-10])

    assert cache.mined(package, tmp_path / "mined", package="p", version="1") == first


def test_mines_anew_what_is_asked_for_differently(package: Archive, tmp_path: Path) -> None:
    cache.mined(package, tmp_path / "mined", package="p", version="1")

    assert cache.mined(package, tmp_path / "mined", package="p", version="1", exclude=["a.py"]).sites == ()
