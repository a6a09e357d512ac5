"""How typed words are read, and how records are ranked by them."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.store.search import Query, hits, score, scored_words


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("two words", (("two",), ("words",))),
        ("--enable-unified-memory swa", (("enable", "unified", "memory"), ("swa",))),
        ('"page size" x', (("page", "size"), ("x",))),
        ('an "open quote', (("an",), ("open",), ("quote",))),
        ("same Same same", (("same",),)),
        ("!!! ... ''", ()),
        ("Größe", (("größe",),)),
    ],
)
def test_a_query_is_read(text: str, terms: tuple[tuple[str, ...], ...]) -> None:
    assert Query.of(text).terms == terms


@given(st.text())
def test_any_text_is_a_query_of_bounded_size(text: str) -> None:
    query = Query.of(text)

    assert len(query.terms) <= 12
    assert all(word for term in query.terms for word in term)


def words(flags: tuple[str, ...] = (), title: str = "", message: str = "", names: str = "", module: str = "") -> str:
    return scored_words(flags=flags, title=title, message=message, names=names, module=module)


def test_better_places_come_first() -> None:
    query = Query.of("page size")
    ranked = [
        words(flags=("--page-size",)),
        words(title="Page size is wrong"),
        words(message="wrong page size"),
        words(names="ValueError check.page.size"),
        words(module="a/page/size.py"),
        words(message="nothing of it"),
    ]

    scores = [score(query, one, reviewed=False) for one in ranked]

    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == len(scores)


def test_whole_words_short_messages_and_reviews_count() -> None:
    query = Query.of("size")

    whole, half = words(message="the size"), words(message="the sizes")
    long = words(message="the size " + "and more " * 300)

    assert score(query, whole, reviewed=False) > score(query, half, reviewed=False)
    assert score(query, whole, reviewed=False) > score(query, long, reviewed=False)
    assert score(query, half, reviewed=True) > score(query, half, reviewed=False)


def obvious(query: Query, text: str) -> set[int]:
    """Return the starts of all places where a term stands, found the slow way."""
    starts = set()
    for at in range(len(text)):
        if at and text[at - 1].isalnum():
            continue
        for term in query.terms:
            rest = text[at:].lower()
            for word in term:
                rest = rest.lstrip("-_ ") if word is not term[0] else rest
                if not rest.startswith(word):
                    break
                rest = rest[len(word) :]
                if word is not term[-1] and rest[:1].isalnum():
                    break
            else:
                starts.add(at)
    return starts


def test_hits_are_the_obvious_ones_in_all_small_texts() -> None:
    for letters, typed in product(product("ab- ", repeat=5), ("a", "ab", "a-b", "b a", "aa b")):
        text, query = "".join(letters), Query.of(typed)
        found = hits(query, text)

        assert {start for start, _ in found} <= obvious(query, text)
        assert bool(found) == bool(obvious(query, text))
        assert all(end <= following for (_, end), (following, _) in pairwise(found))


@given(st.text(max_size=60), st.text(max_size=30))
def test_hits_lie_within_the_text(text: str, typed: str) -> None:
    assert all(0 <= start < end <= len(text) for start, end in hits(Query.of(typed), text))
