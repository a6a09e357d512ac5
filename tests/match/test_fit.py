"""Leftmost search against an obvious oracle, and the kinds of fit."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.match.fit import Edit, damaged, fit, fits

LITERAL = st.text("ab", max_size=4)


def obvious(literals: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern that says what a template is: anything in its holes."""
    return re.compile(".*".join(map(re.escape, literals)), re.DOTALL)


def test_all_small_templates_and_messages_agree_with_the_oracle() -> None:
    pieces = ["".join(p) for n in range(3) for p in product("ab", repeat=n)]
    messages = ["".join(p) for n in range(6) for p in product("ab", repeat=n)]
    for count in (1, 2, 3):
        for literals in product(pieces, repeat=count):
            pattern = obvious(literals)
            for message in messages:
                assert fits(literals, message) == bool(pattern.fullmatch(message)), (literals, message)


@given(
    st.lists(LITERAL, min_size=1, max_size=5).map(tuple), st.lists(st.text("abc", max_size=5), min_size=4, max_size=4)
)
def test_a_filled_template_fits_and_its_holes_give_it_back(literals: tuple[str, ...], values: list[str]) -> None:
    message = "".join(a + b for a, b in zip(literals, [*values[: len(literals) - 1], ""], strict=True))

    found = fit(literals, message)

    assert fits(literals, message)
    if found is not None:
        filled = [message[start:end] for start, end in found.holes]
        assert "".join(a + b for a, b in zip(literals, [*filled, ""], strict=True)) == message


@given(st.lists(LITERAL, min_size=1, max_size=4).map(tuple), st.text("abc", max_size=30))
def test_finds_lie_in_the_text_and_in_order(literals: tuple[str, ...], text: str) -> None:
    for found in (fit(literals, text), damaged(literals, text)):
        if found is None:
            continue
        assert 0 <= found.start <= found.end <= len(text)
        assert found.covered <= found.total == sum(map(len, literals))
        assert len(found.holes) == len(literals) - 1
        assert all(0 <= start <= end <= len(text) for start, end in found.holes)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("thewidthmustbe4,got5", "whole"),
        ("thewidthmustbe4,got5butmore", "whole"),
        ("error:thewidthmustbe4,got5", "nested"),
        ("seethewidthmustbe4,got5", "inside"),
        ("thewidthmust", "cut"),
        ("thewidthmustbe4,g", "cut"),
    ],
)
def test_kinds(text: str, kind: str) -> None:
    found = fit(("thewidthmustbe", ",got", ""), text)

    assert found is not None
    assert found.kind == kind


def test_a_shorter_find_is_preferred() -> None:
    found = fit(("the", "isbad"), "noisethefirst,thesecondisbad")

    assert found is not None
    assert found.holes == ((len("noisethefirst,the"), len("noisethefirst,thesecond")),)


@pytest.mark.parametrize(
    "text", ["thepagesyzemustdividethechunk", "thepagsizemustdividthechunk", "thepagesizemustdivi"]
)
def test_slips_are_forgiven(text: str) -> None:
    assert damaged(("thepagesizemustdividethechunk",), text) is not None


@pytest.mark.parametrize("text", ["thepagesizecannotexceedthechunk", "aslotofthepoolmustneverdivideit"])
def test_another_text_is_no_slip(text: str) -> None:
    assert damaged(("thepagesizemustdividethechunk",), text) is None


def test_a_place_that_differs_is_named_on_both_sides() -> None:
    found = damaged(("thepagesizemustdividethechunk",), "seethepagesyzemustdividethechunk")

    assert found is not None
    assert found.start == 3
    assert found.edits == (Edit(literal=0, lost=8, lost_end=9, put=11, put_end=12),)


def test_what_fills_the_next_hole_is_no_difference() -> None:
    found = damaged(("thering=", ",andthepagesize", ""), "thering=4,andthepagesizy9")

    assert found is not None
    assert found.edits == ()


def test_a_lost_entry_of_a_list_is_forgiven() -> None:
    found = damaged(
        ("fast,plain,shared,remoteormixedisrequiredbutgot", ""), "fast,plain,remoteormixedisrequiredbutgotnone"
    )

    assert found is not None
    assert found.holes[0][1] == len("fast,plain,remoteormixedisrequiredbutgotnone")
