"""What a record page shows of its document."""

from __future__ import annotations

from typing import Any

import pytest

from app.store.document import Document, Excerpt, Place, Solution, Source, Verified
from app.web.prerender import specimen
from app.web.record import record_page


def document(**changes: Any) -> Document:
    return specimen().model_copy(update=changes)


def test_a_claim_that_something_was_run_needs_the_stored_run() -> None:
    runs = [Verified(engine=e, run="pass", date="2026-12-01", hardware="h100-80gb") for e in ("0.5.18", "0.5.19")]
    page = record_page(document(solutions=(Solution(text="Drop it.", verified=tuple(runs)), Solution(text="Or wait."))))

    assert [step.proofs for step in page.solutions] == [
        ("run on 0.5.18, 0.5.19 (h100-80gb, 2026-12-01): pass",),
        (),
    ]


@pytest.mark.parametrize(
    ("guard", "shown"),
    [
        ("a and b", ("if", "a and b")),
        ("not (a is None)", ("if not", "a is None")),
        ("not (a) or (b)", ("if", "not (a) or (b)")),
        ("except OSError", ("if in", "except OSError")),
    ],
)
def test_a_condition_reads_aloud(guard: str, shown: tuple[str, str]) -> None:
    (first, second) = record_page(document(guards=(guard, "c"))).guards

    assert (first.words, first.code) == shown
    assert (second.words, second.code) == ("and", "c")


def test_the_excerpt_of_another_release_says_so_and_marks_its_own_lines() -> None:
    place = Place(version="0.5.18", path="a.py", line=12, end_line=13, function="f")
    source = Source(
        path="python/a.py",
        line=416,
        end_line=422,
        function="f",
        ref="0132848349",
        ref_date="2026-08-28",
        excerpt=Excerpt(ref="v0.5.18", start_line=11, text="a\nb\nc\nd"),
    )
    history = document().history.model_copy(update={"releases": (place,)})
    page = record_page(document(source=source, history=history))

    assert page.place is not None and page.code is not None
    assert page.place.origin == (
        "Place pinned to 0132848349 of 2026-08-28. The excerpt is v0.5.18's, the nearest release that was read."
    )
    assert [line.number for line in page.code.lines if line.marked] == [12, 13]


def test_only_holes_of_the_message_take_a_readers_value() -> None:
    page = record_page(document(), values={"{value!r}": "7", "{other}": "8"})

    assert [segment.value for segment in page.message if segment.hole] == ["7"]
    assert page.filled and not page.head.indexed
    assert not record_page(document(), values={"{other}": "8"}).filled


def test_an_assert_without_a_text_shows_its_condition() -> None:
    page = record_page(document(kind="assert", message="", parts=("",), condition="tp > 0", title="Assertion: tp > 0"))

    assert [segment.text for segment in page.message] == ["tp > 0"]


def test_what_is_not_known_is_left_out() -> None:
    page = record_page(document(source=None, example=None, defence=None, meaning=None, related=(), solutions=()))

    assert page.place is None and page.code is None and page.example is None and page.defence is None
    assert [section.text for section in page.sections] == [
        "Source",
        "Solutions",
        "When it happens",
        "Life across releases",
        "Provenance",
    ]
