"""A slip, or another word?"""

from __future__ import annotations

import pytest

from app.match.fit import damaged
from app.match.normal import normal, positions
from app.match.words import Spelling, says_otherwise

TEMPLATE = "The MLA page size of the target must divide the chunk of 128 tokens on all ranks"
VOCABULARY = frozenset(("never", "ring", "draft", "mha", "mla", "size", "cannot", "exceed", "on", "of", "rank", "be"))


def otherwise(text: str) -> bool:
    """Return whether a text says something else than the template."""
    found = damaged((normal(TEMPLATE),), normal(text))
    if found is None:
        return True
    literal, spelling = Spelling(TEMPLATE, positions(TEMPLATE)), Spelling(text, positions(text))
    return says_otherwise(found.edits, [literal], spelling, VOCABULARY)


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("divide", "divvde"),
        ("size", "syze"),
        ("chunk", "chnuk"),
        ("the chunk", "thechunk"),
        ("page size", "pagesixze"),
        ("on all", "in all"),
        ("ranks", "rank"),
        ("of the target ", ""),
        ("divide the", "divide a the"),
    ],
)
def test_slips(word: str, other: str) -> None:
    assert not otherwise(TEMPLATE.replace(word, other, 1))


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("must divide", "must never divide"),
        ("must divide", "must xyz divide"),
        ("page", "ring"),
        ("target", "draft"),
        ("MLA", "MHA"),
        ("128", "129"),
        ("128", "1284"),
        ("target", "kernel"),
        ("all ranks", "all hosts"),
    ],
)
def test_other_words(word: str, other: str) -> None:
    assert otherwise(TEMPLATE.replace(word, other, 1))


def test_a_lost_negation_is_no_slip() -> None:
    template, text = "This backend does not support paged tokens yet", "This backend does support paged tokens yet"
    found = damaged((normal(template),), normal(text))

    assert found is not None
    assert says_otherwise(
        found.edits, [Spelling(template, positions(template))], Spelling(text, positions(text)), VOCABULARY
    )


def test_a_doubtful_word_is_a_slip_among_slips() -> None:
    text = TEMPLATE.replace("MLA", "MHA")

    assert otherwise(text)
    assert not otherwise(text.replace("divide", "divvde"))
