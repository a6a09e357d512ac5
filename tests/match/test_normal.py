"""The form in which texts are compared."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.match.normal import normal, positions

TEXT = st.text(st.sampled_from("aSelf. \n\t\\nt'\"`*|│İéZ_(1)"), max_size=40) | st.text(max_size=40)


@given(TEXT)
def test_every_character_has_its_place(text: str) -> None:
    shape = normal(text)

    where = positions(text)

    assert len(where) == len(shape)
    assert where == sorted(where)
    assert all(text[at].lower() in (c, c + "\u0307") or text[at] == c for at, c in zip(where, shape, strict=True))


@given(st.text(st.characters(codec="ascii", exclude_characters="\\"), max_size=60), st.integers(1, 9))
def test_wrapping_changes_nothing(text: str, width: int) -> None:
    wrapped = "\n".join(text[at : at + width] for at in range(0, len(text), width))

    assert normal(wrapped) == normal(text)


@pytest.mark.parametrize(
    "other",
    [
        "**The Model's** `Page Size`",
        "│ the model\\'s page size │",
        'the\\nmodel\'s \\\\"page size\\"',
        "the model's self.page size",
    ],
)
def test_quoting_and_emphasis_change_nothing(other: str) -> None:
    assert normal(other) == normal("the model's page size")
