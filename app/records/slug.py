"""The readable half of a record's file name and of its long address."""

from __future__ import annotations

import re

_WORD = re.compile(r"[a-z0-9]+")
_WORDS = 8


def slug(title: str) -> str:
    """Return the first words of a title in lower case, with hyphens between."""
    return "-".join(_WORD.findall(title.lower())[:_WORDS]) or "error"
