"""Two commands side by side."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.web.diff import MAX_WORDS, halves

TEXT = st.text(alphabet="ab \n-", max_size=60)


@given(TEXT, TEXT)
def test_both_halves_keep_their_text(before: str, after: str) -> None:
    left, right = halves(before, after)

    assert "".join(piece.text for piece in left) == before.strip("\n")
    assert "".join(piece.text for piece in right) == after.strip("\n")
    assert {piece.change for piece in left} <= {"", "removed"} and {piece.change for piece in right} <= {"", "added"}


def test_only_the_words_that_differ_are_marked() -> None:
    left, right = halves("run --a 1 --b", "run --a 2 --b")

    assert [(p.text, p.change) for p in left] == [("run --a ", ""), ("1", "removed"), (" --b", "")]
    assert [(p.text, p.change) for p in right] == [("run --a ", ""), ("2", "added"), (" --b", "")]


def test_a_huge_pair_is_shown_without_marks() -> None:
    left, right = halves("a " * (MAX_WORDS + 1), "b")

    assert (len(left), len(right)) == (1, 1)
