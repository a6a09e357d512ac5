"""Pastes with the expected answer beside them. `BLESS=1 pytest tests/match/test_corpus.py` writes the answers anew."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.match.identify import identify
from app.match.index import Index
from app.match.model import Identification

CORPUS = Path(__file__).parent / "corpus"
CASES = sorted(CORPUS.glob("*/*.txt"))


def described(found: Identification) -> str:
    """Return an identification as its expected file holds it; scores stand as bands, so that only moves show."""
    return "\n".join(_lines(found)) + "\n"


def _lines(found: Identification) -> Iterator[str]:
    for match in found.matches:
        band = "sure" if match.score >= 0.9 else "likely" if match.score >= 0.7 else "possible"
        yield f"{match.title} ({band}{', wrapper' if match.wrapper else ''}): {', '.join(match.evidence)}"
        yield from (f"    {hole} = {value!r}" for hole, value in match.values.items())
    if not found.matches:
        yield found.looks_like or "nothing"


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.stem}")
def test_corpus(case: Path, index: Index) -> None:
    found = identify(index, case.read_bytes().decode())

    expected = case.with_suffix(".out")
    if os.environ.get("BLESS"):
        expected.write_text(described(found))
    assert bool(found.matches) == (case.parent.name == "known")
    assert described(found) == expected.read_text()


def test_every_case_has_its_answer_and_no_answer_is_left_over() -> None:
    assert {case.stem for case in CASES} == {out.stem for out in CORPUS.glob("*/*.out")}
    assert len(CASES) >= 25
