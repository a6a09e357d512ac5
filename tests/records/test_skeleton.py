"""A new curated file has everything mined in it and only waits for its text."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.records.load import RecordError, load
from app.records.skeleton import MinedFacts, skeleton

DATA = Path(__file__).parents[2] / "data" / "errors"


def facts(message: str = "no pool", title: str = "No pool") -> MinedFacts:
    return MinedFacts(
        id="00000000000000aa",
        package="demo",
        kind="raise",
        exception="ValueError",
        message=message,
        function="Pool.check",
        path="demo/pool.py",
        title=title,
        flags=("--pool",),
        trigger="When `--pool` is given.",
        guards=("self.pool is None",),
        releases="since 1.0 or earlier; still in 1.2",
        report_url="",
    )


def written(folder: Path, text: str) -> Path:
    path = folder / "demo" / "00000000000000aa-x.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_an_unfinished_skeleton_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="write what TODO stands for"):
        load(written(tmp_path, skeleton(facts())))


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_a_finished_skeleton_loads_with_any_message(tmp_path_factory: pytest.TempPathFactory, message: str) -> None:
    text = skeleton(facts(message.replace("TODO", ""))).replace("TODO", "done:")

    record = load(written(tmp_path_factory.mktemp("x"), text))

    assert record.front.message == message.replace("TODO", "")
    assert record.front.flags == ["--pool"]


def test_the_template_is_a_finished_record(tmp_path: Path) -> None:
    template = (DATA / "TEMPLATE.md").read_text(encoding="utf-8")
    path = tmp_path / "sglang" / "0123456789abcdef-page-size-does-not-divide.md"
    path.parent.mkdir()
    path.write_text(template, encoding="utf-8")

    assert load(path).front.id == "0123456789abcdef"
