"""Messages that no release prints: a record's text with words put in, exchanged, or another beginning or end.

So read texts that are only proposed, those of forks and those of other software with a common ancestor.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

_WORD = re.compile(r"[A-Za-z]{4,}")


def words(parts: Sequence[str]) -> list[str]:
    """Return the words of four letters or more in the literals of a text."""
    return _WORD.findall(" ".join(parts[0::2]))


def put_in(text: str, other: str, r: random.Random) -> str:
    """Return the text with two or three words of another one put between two of its own."""
    mine, more = text.split(" "), _WORD.findall(other)
    at = r.randrange(1, max(2, len(mine)))
    start = r.randrange(max(1, len(more) - 2))
    return " ".join([*mine[:at], *more[start : start + r.choice((2, 3))], *mine[at:]])


def exchanged(text: str, other: str, r: random.Random) -> str:
    """Return the text with one of its words exchanged for one of another text."""
    mine, theirs = list(_WORD.finditer(text)), _WORD.findall(other)
    word = r.choice(mine)
    new: str = r.choice([w for w in theirs if w.lower() != word.group().lower()] or ["other"])
    return text[: word.start()] + new + text[word.end() :]


def other_end(text: str, other: str, r: random.Random) -> str:
    """Return the beginning of the text with the end of another one."""
    return " ".join([*_half(text, r, last=False), *_half(other, r, last=True)])


def other_beginning(text: str, other: str, r: random.Random) -> str:
    """Return the end of the text after the beginning of another one."""
    return " ".join([*_half(other, r, last=False), *_half(text, r, last=True)])


def _half(text: str, r: random.Random, *, last: bool) -> Sequence[str]:
    mine = text.split(" ")
    at = r.randrange(len(mine) * 2 // 5, len(mine) * 3 // 5 + 1)
    return mine[at:] if last else mine[:at]


WAYS: dict[str, Callable[[str, str, random.Random], str]] = {
    "words put in": put_in,
    "a word exchanged": exchanged,
    "another end": other_end,
    "another beginning": other_beginning,
}
