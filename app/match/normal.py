"""The form in which texts are compared: without blanks, quotes, escapes, emphasis and box characters, in lower case.

Wrapping, quoting, Markdown, title case and terminal boxes change only what this form leaves out.
"""

from __future__ import annotations

import re

import numpy as np

_MARKS = "'\"`*|"
_WIDE_MARKS = "“”‘’«»│┃║▏▕╎╏┆┇┊┋╭╮╰╯┌┐└┘├┤─━═╔╗╚╝"
_LEFT_OUT = frozenset(_MARKS + _WIDE_MARKS)
# `f"{self.size=}"` of one release is `f"{size=}"` in another.
_SELF = "self."
_ESCAPE = re.compile(r"\\+[nrt]?")
# Which code points the form keeps; beyond the first plane there is nothing that it leaves out.
_KEPT = np.array([not (chr(n).isspace() or chr(n) in _LEFT_OUT) for n in range(0x10000)] + [True])


def normal(text: str) -> str:
    """Return the text in the form in which texts are compared."""
    if "\\" in text:
        text = _ESCAPE.sub("", text)
    text = "".join(text.split())
    # One `replace` a character is twenty times faster than `translate` on text that is not ASCII.
    for mark in _MARKS if text.isascii() else _MARKS + _WIDE_MARKS:
        text = text.replace(mark, "")
    return _lower(text).replace(_SELF, "")


def positions(text: str) -> list[int]:
    """Return, for each character of `normal(text)`, where it stands in `text`."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    kept = _KEPT[np.minimum(codes, len(_KEPT) - 1)]
    if "\\" in text:
        for match in _ESCAPE.finditer(text):
            kept[match.start() : match.end()] = False
    where: list[int] = np.flatnonzero(kept).tolist()
    if _SELF[-1] not in text:
        return where
    shape = _lower("".join(text[at] for at in where))
    at = shape.find(_SELF)
    if at < 0:
        return where
    rest: list[int] = []
    done = 0
    while at >= 0:
        rest += where[done:at]
        done = at + len(_SELF)
        at = shape.find(_SELF, done)
    return rest + where[done:]


def _lower(text: str) -> str:
    """Return the text in lower case, as many characters as before ("İ" would become two)."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
