"""Expressions back to source text, the same on every Python that runs the miner."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

_COMPARISONS = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}
_LOOSE = (ast.Lambda, ast.IfExp)  # bind more loosely than `or`; `:=` and `yield` come with parentheses
_AROUND_OR = (ast.BoolOp, *_LOOSE)
_AROUND_COMPARISON = (ast.Compare, ast.BoolOp, *_LOOSE)
# What needs no parentheses wherever it stands, a number before a dot excepted.
_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.JoinedStr)


def source_of(node: ast.expr) -> str:
    """Return the text of an expression in one line, strings in the quotes that `repr` gives them.

    The common forms are written here, which is several times faster than `ast.unparse` and without the
    parentheses that it adds around `not` and generators; all others go to `ast.unparse`.
    Raises: RecursionError: the expression is nested too deeply.
    """
    writer = _WRITERS.get(type(node))
    return ast.unparse(node) if writer is None else writer(node)


def clip(text: str, limit: int = 300) -> str:
    """Return `text` on one line, cut to `limit` characters with an ellipsis."""
    text = re.sub(r"\s+", " ", text) if "\n" in text else text
    return text if len(text) <= limit else text[: limit - 1] + "…"


def dotted(node: ast.expr) -> str:
    """Return `a.b.c` for a chain of names and attributes, "" for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    parts.append(node.id)
    return ".".join(reversed(parts))


def _within(node: ast.expr, loose: tuple[type, ...]) -> str:
    """Write an operand, in parentheses if it binds more loosely than what it stands in."""
    return f"({source_of(node)})" if isinstance(node, loose) or _is_not(node, loose) else source_of(node)


def _is_not(node: ast.expr, loose: tuple[type, ...]) -> bool:
    return ast.Compare in loose and isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _primary(node: ast.expr) -> str:
    """Write what a dot, a call or an index follows."""
    if isinstance(node, _ATOMS) and not (isinstance(node, ast.Constant) and type(node.value) in (int, float, complex)):
        return source_of(node)
    return f"({source_of(node)})"


def _name(node: ast.Name) -> str:
    return node.id


def _attribute(node: ast.Attribute) -> str:
    return f"{_primary(node.value)}.{node.attr}"


def _constant(node: ast.Constant) -> str:
    if node.value is None or type(node.value) in (bool, int, str):
        return repr(node.value)
    return ast.unparse(node)


def _call(node: ast.Call) -> str:
    if len(node.args) == 1 and not node.keywords and isinstance(node.args[0], ast.GeneratorExp):
        return _primary(node.func) + source_of(node.args[0])
    arguments = [source_of(a) for a in node.args]
    arguments += [f"**{_primary(k.value)}" if k.arg is None else f"{k.arg}={source_of(k.value)}" for k in node.keywords]
    return f"{_primary(node.func)}({', '.join(arguments)})"


def _subscript(node: ast.Subscript) -> str:
    if isinstance(node.slice, (ast.Name, ast.Attribute, ast.Constant, ast.Call, ast.Subscript)):
        return f"{_primary(node.value)}[{source_of(node.slice)}]"
    return ast.unparse(node)


def _compare(node: ast.Compare) -> str:
    text = _within(node.left, _AROUND_COMPARISON)
    for operator, right in zip(node.ops, node.comparators, strict=True):
        text += f" {_COMPARISONS[type(operator)]} {_within(right, _AROUND_COMPARISON)}"
    return text


def _boolean(node: ast.BoolOp) -> str:
    word = " and " if isinstance(node.op, ast.And) else " or "
    return word.join(_within(value, _AROUND_OR) for value in node.values)


def _unary(node: ast.UnaryOp) -> str:
    return f"not {_within(node.operand, _AROUND_OR)}" if isinstance(node.op, ast.Not) else ast.unparse(node)


_WRITERS: dict[type, Callable[[Any], str]] = {
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Constant: _constant,
    ast.Call: _call,
    ast.Subscript: _subscript,
    ast.Compare: _compare,
    ast.BoolOp: _boolean,
    ast.UnaryOp: _unary,
}
