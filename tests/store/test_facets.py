"""Bit sets over record keys."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.store import facets

some_keys = st.sets(st.integers(0, 500))


@given(some_keys)
def test_a_set_survives_packing_and_comes_out_in_order(keys: set[int]) -> None:
    packed = facets.packed(facets.bits(keys))

    assert list(facets.keys(facets.unpacked(packed))) == sorted(keys)


@given(some_keys, st.integers(-1, 520))
def test_keys_continue_after_any_key(keys: set[int], after: int) -> None:
    assert list(facets.keys(facets.bits(keys), after=after)) == sorted(key for key in keys if key > after)


@given(some_keys, some_keys)
def test_and_is_intersection(left: set[int], right: set[int]) -> None:
    both = facets.bits(left) & facets.bits(right)

    assert both.bit_count() == len(left & right)


def test_ancestors_are_the_folders_above() -> None:
    assert list(facets.ancestors("a/b/c.py")) == ["a", "a/b", "a/b/c.py"]
