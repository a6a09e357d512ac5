"""Is a difference a slip of the keyboard, or does it say something else?

The form in which texts are compared has no words, so each difference is judged here by the words that stand there in
the template and in the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from rapidfuzz.distance import Levenshtein

from app.match.fit import Edit

WORD = re.compile(r"[^\W_]{2,}")
_ANY_WORD = re.compile(r"[^\W_]+")
_HAS_DIGIT = re.compile(r"\d")
_NEGATIONS = frozenset({"not", "no", "non", "never", "cannot", "without", "un", "nt", "neither", "nor"})
_ENDINGS = frozenset({"s", "d", "ed", "es", "e"})
# Words that only hold a sentence together: one for another changes nothing that it says.
_SMALL = frozenset(
    [
        *("a", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "do", "does", "for", "from"),
        *("had", "has", "have", "if", "in", "into", "is", "it", "its", "of", "off", "on", "one", "only", "or", "out"),
        *("so", "than", "that", "the", "their", "them", "then", "there", "this", "to", "too", "up", "use", "used"),
        *("was", "we", "were", "when", "which", "will", "with", "you"),
    ]
)
_LONG_WORD, _LETTERS_A_SLIP = 6, 4
_LONGEST_WORD = 60


@dataclass(frozen=True, slots=True)
class Spelling:
    """A text as it was written; `where` says where each character of its `normal` form stands in it."""

    text: str
    where: Sequence[int]

    def shape(self, start: int, end: int) -> str:
        """Return the characters `start` to `end` of the normal form, as they were written."""
        return "".join(self.text[at] for at in self.where[start:end])

    def joined(self, at: int) -> bool:
        """Return whether one word goes on from the character before `at` to the one at it."""
        if not 0 < at < len(self.where):
            return False
        before, after = self.where[at - 1], self.where[at]
        return after == before + 1 and _ANY_WORD.fullmatch(self.text, before, after + 1) is not None

    def words(self, start: int, end: int) -> list[str]:
        """Return the words of which a character lies in `start` to `end`, in lower case."""
        start, end = max(0, start), min(end, len(self.where))
        if start >= end:
            return []
        first, last = self.where[start], self.where[end - 1] + 1
        around = _ANY_WORD.finditer(self.text, max(0, first - _LONGEST_WORD), last + _LONGEST_WORD)
        return [m.group().lower() for m in around if m.end() > first and m.start() < last]


class Difference(Enum):
    """What one difference is."""

    SLIP = "a slip"
    DOUBTFUL = "a slip that makes another word, or the other word"
    OTHER = "something else"


def says_otherwise(
    edits: Iterable[Edit], literals: Sequence[Spelling], text: Spelling, vocabulary: Collection[str]
) -> bool:
    """Return whether one of the differences is more than a slip: a word put in, exchanged or negated.

    A known word in another one's place is doubtful: it counts as a slip where plain slips stand beside it.
    Shape: `vocabulary` holds the words that errors use.
    """
    kinds = Counter(_difference(edit, literals[edit.literal], text, vocabulary) for edit in edits)
    return kinds[Difference.OTHER] > 0 or kinds[Difference.DOUBTFUL] > kinds[Difference.SLIP]


def _difference(edit: Edit, literal: Spelling, text: Spelling, vocabulary: Collection[str]) -> Difference:
    lost, put = literal.shape(edit.lost, edit.lost_end), text.shape(edit.put, edit.put_end)
    left = (lost and literal.joined(edit.lost)) or (put and text.joined(edit.put))
    right = (lost and literal.joined(edit.lost_end)) or (put and text.joined(edit.put_end))
    theirs = literal.words(edit.lost - bool(left), edit.lost_end + bool(right))
    ours = text.words(edit.put - bool(left), edit.put_end + bool(right))
    if not ours:
        return Difference.OTHER if _NEGATIONS.intersection(theirs) else Difference.SLIP
    if not theirs:
        small = all(len(word) == 1 and not word.isdigit() for word in ours)
        return Difference.SLIP if small else Difference.OTHER
    if _HAS_DIGIT.search(put):
        return Difference.OTHER
    distance = Levenshtein.distance(lost, put)
    if distance > 1 + max(map(len, theirs)) // _LETTERS_A_SLIP:
        return Difference.OTHER
    if any(map(str.isdigit, theirs)) or any(
        word in vocabulary and word not in theirs and not _is_form_of(word, theirs, distance) for word in ours
    ):
        return Difference.DOUBTFUL
    return Difference.SLIP


def _is_form_of(word: str, others: Iterable[str], distance: int) -> bool:
    """Return whether a slip explains a known word: small words, another ending, one letter of many."""
    for other in others:
        short, long = sorted((word, other), key=len)
        if other in _SMALL and len(word) <= len(other):
            return True
        if long.startswith(short) and long[len(short) :] in _ENDINGS and len(short) >= 3:
            return True
        if len(short) >= _LONG_WORD and distance == 1:
            return True
    return False
