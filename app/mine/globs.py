"""Path patterns with `**`, as in data/packages.toml."""

from __future__ import annotations

import re
from collections.abc import Iterable


def pattern_of(globs: Iterable[str]) -> re.Pattern[str]:
    """Return the expression that matches a path which any of the globs names; without globs it matches nothing.

    `**` stands for any number of folders, `*` and `?` stay within one name.
    """
    return re.compile("|".join(map(_translated, globs)) or r"(?!)")


def _translated(glob: str) -> str:
    text = ""
    position = 0
    for match in re.finditer(r"\*\*/|/\*\*\Z|\*|\?", glob):
        text += re.escape(glob[position : match.start()])
        text += {"**/": "(?:.*/)?", "/**": "/.*", "*": "[^/]*", "?": "[^/]"}[match[0]]
        position = match.end()
    return f"(?:{text}{re.escape(glob[position:])})\\Z"
