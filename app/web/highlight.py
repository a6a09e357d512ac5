"""Source code as coloured lines: plain values, so that templates escape them like any other text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from keyword import iskeyword
from typing import NamedTuple

from pygments.lexer import Lexer
from pygments.lexers import BashLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String, Text
from pygments.token import _TokenType as TokenType

# Few kinds on purpose: a page where everything is coloured shows nothing. First match wins.
KINDS: tuple[tuple[TokenType, str], ...] = (
    (Comment, "c"),
    (String, "s"),
    (Number, "n"),
    (Keyword, "k"),
    (Operator.Word, "k"),
    (Name.Decorator, "d"),
    (Name.Function, "f"),
    (Name.Class, "f"),
)


class Run(NamedTuple):
    """A run of characters of one kind; `kind` is a CSS class, "" for plain. A page has hundreds: a tuple is cheap."""

    text: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One numbered line. `marked` is whether the error is raised here."""

    number: int
    tokens: tuple[Run, ...]
    marked: bool = False


@dataclass(frozen=True, slots=True)
class Code:
    """An excerpt of source."""

    lines: tuple[Line, ...]

    @property
    def first(self) -> int:
        """Return the number of the first line."""
        return self.lines[0].number if self.lines else 0

    @property
    def last(self) -> int:
        """Return the number of the last line."""
        return self.lines[-1].number if self.lines else 0


def excerpt(text: str, *, start_line: int, marked: range) -> Code:
    """Return Python source as numbered lines; those in `marked` raise the error."""
    return Code(
        tuple(Line(number, runs, number in marked) for number, runs in enumerate(python_lines(text), start=start_line))
    )


def python_lines(text: str) -> tuple[tuple[Run, ...], ...]:
    """Return the coloured lines of a piece of Python."""
    return _lines(text, _python())


def shell_lines(text: str) -> tuple[tuple[Run, ...], ...]:
    """Return the coloured lines of a launch command."""
    return _lines(text, _shell())


_TOKEN = re.compile(
    r"""
    (?P<string>(?i:[rbfu]|rb|br|rf|fr)?(?:"{3}(?s:.*?)(?:"{3}|\Z)|'{3}(?s:.*?)(?:'{3}|\Z)
        |"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))
    |(?P<opening>(?:def|class)[ \t]+)(?P<defined>[^\W\d]\w*)
    |(?P<name>[^\W\d]\w*)
    |(?P<decorator>^[ \t]*@[\w.]+)
    |(?P<comment>\#.*)
    |(?P<number>\.?\d[\w.]*)
    |(?P<other>[^\w\s"'#@]+|\s|.)
    """,
    re.VERBOSE | re.MULTILINE,
)
_GROUPS = {"string": String, "decorator": Name.Decorator, "comment": Comment, "number": Number, "other": Text}


class ExcerptLexer(Lexer):
    """Python as far as an excerpt needs it: a scanner of one pattern.

    Pygments' own Python lexer tries thirty patterns at each token, which made it the most expensive part of a page.
    This one gives the same kinds (a test compares them), but for what stands in the holes of an f-string.
    """

    name = "Python excerpt"

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, TokenType, str]]:
        """Yield (position, type, text) of every token."""
        for match in _TOKEN.finditer(text):
            group, found = match.lastgroup, match[0]
            if group == "name":
                yield match.start(), Keyword if iskeyword(found) else Name, found
            elif group == "defined":
                yield match.start(), Keyword, match["opening"]
                yield match.start("defined"), Name.Function, match["defined"]
            else:
                yield match.start(), _GROUPS[group or "other"], found


# stripnl and ensurenl would change the text and with it the line numbers.
@lru_cache(maxsize=1)
def _python() -> Lexer:
    lexer: Lexer = ExcerptLexer(stripnl=False, ensurenl=False)
    return lexer


@lru_cache(maxsize=1)
def _shell() -> Lexer:
    lexer: Lexer = BashLexer(stripnl=False, ensurenl=False)
    return lexer


@lru_cache(maxsize=256)
def _kind(token: TokenType) -> str:
    return next((kind for parent, kind in KINDS if parent == token[: len(parent)]), "")


def _lines(text: str, lexer: Lexer) -> tuple[tuple[Run, ...], ...]:
    """Return one tuple of runs a line; neighbours of one kind are joined."""
    line: list[Run] = []
    lines = [line]
    for token, value in lexer.get_tokens(text.removesuffix("\n")):
        kind = _kind(token)
        first, *others = value.split("\n") if "\n" in value else (value,)
        _append(line, first, kind)
        for piece in others:
            line = []
            lines.append(line)
            _append(line, piece, kind)
    return tuple(map(tuple, lines))


def _append(line: list[Run], text: str, kind: str) -> None:
    if not text:
        return
    # White space has no colour of its own: joining it makes pages a third smaller.
    if line and (line[-1].kind == kind or text.isspace()):
        line[-1] = Run(line[-1].text + text, line[-1].kind)
    else:
        line.append(Run(text, kind))
