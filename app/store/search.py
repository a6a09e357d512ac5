"""Words typed by a reader: how they are read, and how well a record fits them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

MAX_TERMS = 12
MAX_QUERY = 400
_QUOTED = re.compile(r'"([^"]*)"|(\S+)')
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Query:
    """What was typed, as terms; the words of a term follow one another, the last one may be a half word."""

    terms: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, text: str) -> Query:
        """Read any text. Words in double quotes stay together; what is no letter or digit separates words."""
        terms: list[tuple[str, ...]] = []
        for quoted, plain in _QUOTED.findall(text[:MAX_QUERY]):
            words = tuple(word.lower() for word in _WORD.findall(quoted or plain))
            if words and words not in terms:
                terms.append(words)
        return cls(tuple(terms[:MAX_TERMS]))

    def __bool__(self) -> bool:
        return bool(self.terms)


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a record is scored by."""

    key: int
    title: str
    message: str
    flags: Sequence[str]
    function: str
    module: str
    exception: str
    reviewed: bool


def score(query: Query, candidate: Candidate) -> float:
    """Return how well a record fits; greater is better.

    Each term counts once, at the best place where it is found: an option, the title or message, then names. A whole
    word counts more than a half one; long messages are damped, since they hold any word sooner.
    """
    fields = (
        (9.0, " ".join(candidate.flags)),
        (6.0, candidate.title),
        (5.0, candidate.message),
        (4.0, f"{candidate.exception} {candidate.function}"),
        (2.0, candidate.module),
    )
    texts = [(weight, " ".join(_WORD.findall(text.lower()))) for weight, text in fields]
    total = sum(_best(" ".join(term), texts) for term in query.terms)
    damped = total / (1.0 + len(candidate.message) / 2000)
    return damped + (1.5 if candidate.reviewed else 0.0)


def _best(term: str, texts: Sequence[tuple[float, str]]) -> float:
    best = 0.5
    for weight, text in texts:
        if weight <= best:
            break
        padded = f" {text} "
        if f" {term} " in padded:
            best = weight
        elif f" {term}" in padded:
            best = max(best, weight * 0.7)
    return best


def hits(query: Query, text: str) -> tuple[tuple[int, int], ...]:
    """Return the (start, end) of every term in a text, in order, none overlapping."""
    words = [(found.group().lower(), found.start(), found.end()) for found in _WORD.finditer(text)]
    marked: list[tuple[int, int]] = []
    at = 0
    while at < len(words):
        found = next((length for term in query.terms if (length := _fits(term, words, at))), None)
        if found is None:
            at += 1
            continue
        count, letters = found
        start = words[at + count - 1][1]
        marked.append((words[at][1], start + letters))
        at += count
    return tuple(marked)


def _fits(term: tuple[str, ...], words: list[tuple[str, int, int]], at: int) -> tuple[int, int] | None:
    """Return (words, letters of the last one) where a term stands at a word; its last word may be a half one."""
    if at + len(term) > len(words):
        return None
    *whole, last = term
    if any(words[at + i][0] != word for i, word in enumerate(whole)):
        return None
    return (len(term), len(last)) if words[at + len(term) - 1][0].startswith(last) else None
