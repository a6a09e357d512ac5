"""What stands round a find and in its holes: is it still the record's own sentence, or a part of another one?"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from app.match.words import WORD

_NEAR = 40
_QUOTES = " \t'\"`*"
_GOES_ON = re.compile(rf"[{_QUOTES}]*(?:,[ ]*)?\w")
_LEADS_IN = re.compile(r"(?:exception|error|raised?|reason|because|got|says|message)$", re.IGNORECASE)
_SENTENCE_ENDS = frozenset(".!?:;)]}>")
_PLAIN_WORDS = re.compile(r"(?<![\w.\-/])[A-Za-z]?[a-z]+(?: [a-z]{2,}){1,}(?![\w\-/])")
_TAKES_PROSE = frozenset(":(\n")
_LOOKED_AT = 6


def begins_inside(text: str, at: int) -> bool:
    """Return whether a sentence is already going on where a find begins: a word stands before it on its line."""
    before = text[max(0, at - _NEAR) : at].rstrip(_QUOTES)
    if not before or not (before[-1].isalnum() or before[-1] in "_,"):
        return False
    return _LEADS_IN.search(before) is None


def goes_on(text: str, at: int, literal: str) -> bool:
    """Return whether the sentence goes on after a find that ends at `at` with `literal`."""
    said = literal.rstrip(_QUOTES)
    return bool(said) and said[-1] not in _SENTENCE_ENDS and _GOES_ON.match(text, at, at + _NEAR) is not None


def is_prose(value: str, vocabulary: Collection[str]) -> bool:
    """Return whether plain words that errors use stand in a row: no name, number or list."""
    return any(
        sum(word.lower() in vocabulary for word in match.group().split(" ")) >= 2
        for match in _PLAIN_WORDS.finditer(value[: 10 * _NEAR])
    )


def is_value(text: str, vocabulary: Collection[str]) -> bool:
    """Return whether a text may be what fills one hole: a name, a number, a list, no words that errors use."""
    words = [word.strip(",.:;()") for word in text[: 10 * _NEAR].split()]
    return len(words) < 2 or not any(w.isalpha() and w.islower() and w in vocabulary for w in words)


def takes_prose(literal: str) -> bool:
    """Return whether what follows a literal may well be a sentence: "failed: {reason}"."""
    return literal.rstrip(" '\"`")[-1:] in _TAKES_PROSE


def resumes(rest: str, literals: Iterable[str]) -> bool:
    """Return whether a text that does not carry these literals has a third of their first words all the same."""
    theirs = [word for literal in literals for word in WORD.findall(literal.lower()) if len(word) > 2][:_LOOKED_AT]
    ours = set(WORD.findall(rest[: 20 * _NEAR].lower()))
    return bool(theirs) and sum(word in ours for word in theirs) * 3 >= len(theirs)
