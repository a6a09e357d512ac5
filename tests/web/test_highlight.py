"""Coloured lines keep the text."""

from __future__ import annotations

import inspect
import textwrap

from hypothesis import given
from hypothesis import strategies as st
from pygments.lexers import PythonLexer

from app.web import highlight

CODE = st.text(alphabet=st.characters(exclude_characters="\r"), max_size=200)


@given(CODE)
def test_no_character_and_no_line_is_lost(text: str) -> None:
    for lines in (highlight.python_lines(text), highlight.shell_lines(text)):
        again = "\n".join("".join(run.text for run in line) for line in lines)

        assert again == text.removesuffix("\n")


def test_an_excerpt_is_numbered_and_marks_the_lines_that_raise() -> None:
    code = highlight.excerpt("if a:\n    raise B(\n        'c'\n    )\nd = 1", start_line=10, marked=range(11, 14))

    assert [(line.number, line.marked) for line in code.lines] == [
        (10, False),
        (11, True),
        (12, True),
        (13, True),
        (14, False),
    ]
    assert (code.first, code.last) == (10, 14)


def test_few_kinds_are_coloured() -> None:
    (line,) = highlight.python_lines("raise ValueError('x', 3)  # why")

    assert [(run.text, run.kind) for run in line if run.kind] == [
        ("raise ", "k"),
        ("'x'", "s"),
        ("3", "n"),
        ("# why", "c"),
    ]


def test_the_excerpt_lexer_agrees_with_pygments_own() -> None:
    source = inspect.getsource(textwrap).rstrip()
    own = _kinds(highlight._lines(source, highlight._python()))
    theirs = _kinds(highlight._lines(source, PythonLexer(stripnl=False, ensurenl=False)))

    # Pygments also marks the use of `__init__` and its like as functions; nothing else may differ.
    differing = {
        (line, mine, other) for line, mine, other in zip(source.split("\n"), own, theirs, strict=True) if mine != other
    }
    assert all("__" in line for line, _, _ in differing)


def _kinds(lines: tuple[tuple[highlight.Run, ...], ...]) -> list[str]:
    return ["".join((run.kind or "-") * len("".join(run.text.split())) for run in line) for line in lines]
