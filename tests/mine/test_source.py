"""Expressions back to text."""

from __future__ import annotations

import ast
import inspect
import json.decoder
import textwrap
from collections.abc import Iterator

import pytest

from app.mine.source import clip, dotted, source_of

MODULES = (ast, inspect, textwrap, json.decoder)


def expressions() -> Iterator[ast.expr]:
    for module in MODULES:
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.expr) and not isinstance(node, (ast.Starred, ast.Slice, ast.FormattedValue)):
                yield node


def test_writes_every_expression_of_the_standard_library_so_that_it_reads_back_the_same() -> None:
    different = [
        ast.unparse(node)
        for node in expressions()
        if not isinstance(node, (ast.Starred, ast.Slice))
        and ast.dump(read(source_of(node))) != ast.dump(read(ast.unparse(node)))
    ]

    assert different == []


def read(source: str) -> ast.expr:
    return ast.parse(f"({source}\n)", mode="eval").body


CASES = (
    "(1).real",
    "f(*a, **b)",
    "a and (b or c)",
    "not (a and b)",
    "a and not b",
    "(not a) == b",
    "(a < b) == c",
    "any(x for x in y)",
    "f((yield))",
    "(lambda: 1)()",
    "(a or b).c[d, e:f]",
    "f(a=(b := 1))",
    "-a ** b",
)


@pytest.mark.parametrize("source", CASES)
def test_keeps_the_parentheses_that_matter_and_no_others(source: str) -> None:
    assert source_of(ast.parse(source, mode="eval").body) == source


def test_cuts_long_text_on_one_line() -> None:
    assert clip("a\n   b") == "a b"
    assert clip("x" * 400, 10) == "x" * 9 + "…"


def test_names_a_chain_of_attributes() -> None:
    assert dotted(ast.parse("a.b.c", mode="eval").body) == "a.b.c"
    assert dotted(ast.parse("a().b", mode="eval").body) == ""
