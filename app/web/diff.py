"""Two launch commands (or pieces of code) side by side: which words differ."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

_WORD = re.compile(r"\s+|[^\s]+")
# SequenceMatcher is quadratic at worst; above this the halves are shown without marks.
MAX_WORDS = 2_000


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of one half. `change` says whether the other half lacks it."""

    text: str
    change: Literal["", "removed", "added"] = ""


def halves(before: str, after: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Return both texts as pieces: words that only `before` has are "removed", those only `after` has "added"."""
    old, new = _WORD.findall(before.strip("\n")), _WORD.findall(after.strip("\n"))
    if max(len(old), len(new)) > MAX_WORDS:
        return (Piece("".join(old)),), (Piece("".join(new)),)
    left: list[Piece] = []
    right: list[Piece] = []
    for operation, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        same = operation == "equal"
        _append(left, "".join(old[a:b]), "" if same else "removed")
        _append(right, "".join(new[c:d]), "" if same else "added")
    return tuple(left), tuple(right)


def _append(pieces: list[Piece], text: str, change: Literal["", "removed", "added"]) -> None:
    if not text:
        return
    # A changed blank is no change a reader can see.
    pieces.append(Piece(text, "" if text.isspace() else change))
