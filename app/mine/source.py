"""Expressions back to source text, the same on every Python that runs the miner."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

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
_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)


def source_of(node: ast.expr) -> str:
    """Return the text of an expression as `ast.unparse` writes it.

    The common forms are written here, which is several times faster; all others go to `ast.unparse`.
    Raises: RecursionError: the expression is nested too deeply.
    """
    try:
        return _WRITERS[type(node)](node)
    except KeyError:
        return ast.unparse(node)


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


def _name(node: ast.expr) -> str:
    assert isinstance(node, ast.Name)
    return node.id


def _attribute(node: ast.expr) -> str:
    assert isinstance(node, ast.Attribute)
    return f"{_atom(node.value, number=False)}.{node.attr}"


def _constant(node: ast.expr) -> str:
    assert isinstance(node, ast.Constant)
    if node.value is None or type(node.value) in (bool, int) or (type(node.value) is str and node.kind is None):
        return repr(node.value)
    raise KeyError


def _atom(node: ast.expr, *, number: bool = True) -> str:
    """Write what never needs parentheses; leave the rest, and numbers before a dot, to `ast.unparse`."""
    if not isinstance(node, _ATOMS) or (not number and isinstance(node, ast.Constant)):
        raise KeyError
    return _WRITERS[type(node)](node)


def _call(node: ast.expr) -> str:
    assert isinstance(node, ast.Call)
    if any(k.arg is None for k in node.keywords):
        raise KeyError
    arguments = [_atom(a) for a in node.args] + [f"{k.arg}={_atom(k.value)}" for k in node.keywords]
    return f"{_atom(node.func, number=False)}({', '.join(arguments)})"


def _subscript(node: ast.expr) -> str:
    assert isinstance(node, ast.Subscript)
    return f"{_atom(node.value, number=False)}[{_atom(node.slice)}]"


def _compare(node: ast.expr) -> str:
    assert isinstance(node, ast.Compare)
    text = _atom(node.left)
    for operator, right in zip(node.ops, node.comparators, strict=True):
        text += f" {_COMPARISONS[type(operator)]} {_atom(right)}"
    return text


def _boolean(node: ast.expr) -> str:
    assert isinstance(node, ast.BoolOp)
    parts = []
    for value in node.values:
        if not isinstance(value, (*_ATOMS, ast.Compare)) and not (
            isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)
        ):
            raise KeyError
        parts.append(_WRITERS[type(value)](value))
    return (" and " if isinstance(node.op, ast.And) else " or ").join(parts)


def _unary(node: ast.expr) -> str:
    assert isinstance(node, ast.UnaryOp)
    if not isinstance(node.op, ast.Not) or not isinstance(node.operand, (*_ATOMS, ast.Compare)):
        raise KeyError
    return "not " + _WRITERS[type(node.operand)](node.operand)


_WRITERS: dict[type, Callable[[ast.expr], str]] = {
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Constant: _constant,
    ast.Call: _call,
    ast.Subscript: _subscript,
    ast.Compare: _compare,
    ast.BoolOp: _boolean,
    ast.UnaryOp: _unary,
}
