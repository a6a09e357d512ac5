"""Words typed by a reader: how they are read, and how well a record fits them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

MAX_TERMS = 12
MAX_QUERY = 400
_QUOTED = re.compile(r'"([^"]*)"|(\S+)')
_WORD = re.compile(r"[^\W_]+")


@lru_cache(256)
def _pattern(terms: tuple[tuple[str, ...], ...]) -> re.Pattern[str]:
    longest_first = sorted(terms, key=lambda term: -len(" ".join(term)))
    alternatives = "|".join(r"[\W_]+".join(map(re.escape, term)) for term in longest_first)
    return re.compile(rf"(?<![^\W_])(?:{alternatives})" if terms else r"(?!)", re.IGNORECASE)


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

    @property
    def pattern(self) -> re.Pattern[str]:
        """Return what finds a term in a text: it begins where a word begins and may end within one."""
        return _pattern(self.terms)


# What a term counts where it is found: in an option, the title, the message, names, the module.
_WEIGHTS = (9.0, 6.0, 5.0, 4.0, 2.0)
_ANYWHERE = 0.5
_HALF_WORD = 0.7
_REVIEWED = 1.5


def scored_words(*, flags: Sequence[str], title: str, message: str, names: str, module: str) -> str:
    """Return the words that a record is scored by: a line a field, lower case, one space around every word.

    They are kept with the record, so that scoring hundreds of candidates takes no more than substring searches.
    """
    fields = (" ".join(flags), title, message, names, module)
    return "\n".join(f" {' '.join(_WORD.findall(field.lower()))} " for field in fields)


def score(query: Query, words: str, *, reviewed: bool) -> float:
    """Return how well a record with these `scored_words` fits; greater is better.

    Each term counts once, at the best place where it is found. A whole word counts more than a half one; long
    messages are damped, since they hold any word sooner.
    """
    fields = words.split("\n")
    total = sum(_best(f" {' '.join(term)}", fields) for term in query.terms)
    damped = total / (1.0 + len(fields[2]) / 2000)
    return damped + (_REVIEWED if reviewed else 0.0)


def _best(term: str, fields: Sequence[str]) -> float:
    best = _ANYWHERE
    for weight, field in zip(_WEIGHTS, fields, strict=True):
        if weight <= best:
            break
        if term in field:
            best = max(best, weight if f"{term} " in field else weight * _HALF_WORD)
    return best


def hits(query: Query, text: str) -> tuple[tuple[int, int], ...]:
    """Return the (start, end) of every term in a text, in order, none overlapping."""
    return tuple(found.span() for found in query.pattern.finditer(text))
