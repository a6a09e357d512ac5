"""The committed ledger file."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.errors import Broken
from app.lineage.ledger import Ledger, Section, load, text

A, B, C = "a" * 16, "b" * 16, "c" * 16


def test_a_ledger_survives_its_file(tmp_path: Path) -> None:
    ledger = Ledger.of((Section(("1.0", "1.1"), {B: A}), Section(("1.2",), {C: A})))
    path = tmp_path / "demo.tsv"

    path.write_text(text(ledger))

    assert text(load(path)) == text(ledger)
    assert load(path).releases == {"1.0", "1.1", "1.2"}
    assert [load(path).record(name) for name in (A, B, C)] == [A, A, A]


def test_a_missing_ledger_is_empty(tmp_path: Path) -> None:
    assert load(tmp_path / "none.tsv") == Ledger()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (f"# releases 1.0\n{A} {B}\n", "line 2: expected two ids"),
        (f"# releases 1.0\n{A}\t{B[:-1]}\n", "line 2: expected two ids"),
        (f"# releases 1.0\n{B}\t{A}\n{B}\t{C}\n", f"line 3: {B} is decided twice"),
        (f"{B}\t{A}\n", "before any"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, content: str, complaint: str) -> None:
    path = tmp_path / "demo.tsv"
    path.write_text(content)

    with pytest.raises(Broken, match=complaint):
        load(path)
