"""A mined site's trigger in plain words, from its guards alone.

The guards are read as a conjunction of clauses, each a choice of atoms ("a or b"). What another clause settles is
left out, so that a long elif chain does not repeat itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from app.mine.model import Site
from app.mine.source import dotted, source_of

MAX_CLAUSES = 7
MAX_CHOICES = 3
MAX_CODE = 160
_VERBS = {"raise": "Raised", "assert": "Raised", "message": "Reported"}
# Operator -> (the one it negates or itself, whether it is that one): `a != b` is the negation of `a == b`.
_POSITIVE: dict[type[ast.cmpop], tuple[str, bool]] = {
    ast.Eq: ("==", True),
    ast.NotEq: ("==", False),
    ast.Is: ("is", True),
    ast.IsNot: ("is", False),
    ast.Lt: ("<", True),
    ast.GtE: ("<", False),
    ast.Gt: (">", True),
    ast.LtE: (">", False),
    ast.In: ("in", True),
    ast.NotIn: ("in", False),
}
_VERB = {
    ("==", True): "is",
    ("==", False): "is not",
    ("is", True): "is",
    ("is", False): "is not",
    ("<", True): "is less than",
    ("<", False): "is at least",
    (">", True): "is more than",
    (">", False): "is at most",
    ("in", True): "is in",
    ("in", False): "is not in",
}


@dataclass(frozen=True, slots=True)
class _Atom:
    """One condition: atoms with equal `key` and opposite `holds` exclude one another."""

    key: str
    holds: bool
    phrase: str


_Clause = tuple[_Atom, ...]


def trigger(site: Site) -> str:
    """Return when a site fires, as one sentence; what cannot be put in words is quoted as code."""
    where = f"`{site.path}` while it is imported" if site.function == "<module>" else f"`{site.function}`"
    start = f"{_VERBS[site.kind]} by {where}"
    clauses: list[_Clause] = []
    for guard in site.guards:
        clauses += [clause for clause in _guard(guard, site) if clause not in clauses]
    phrases = [_worded(clause) for clause in _settled(clauses)][-MAX_CLAUSES:]
    phrases = list(dict.fromkeys(phrases))
    if not phrases:
        return start + "."
    handling = [phrase for phrase in phrases if phrase.startswith("while ")]
    conditions = [phrase for phrase in phrases if not phrase.startswith("while ")]
    text = start
    if handling:
        text += " " + handling[-1]
    if conditions:
        text += f"{',' if handling else ''} when {_listed(conditions)}"
    return text + "."


def _listed(phrases: list[str]) -> str:
    if len(phrases) == 1:
        return phrases[0]
    # A comma inside a phrase would read as one between phrases.
    separator = "; " if any("," in _outside_code(phrase) for phrase in phrases) else ", "
    return separator.join(phrases[:-1]) + (f"{separator}and " if len(phrases) > 2 else " and ") + phrases[-1]


def _outside_code(text: str) -> str:
    return "".join(text.split("`")[::2])


def _worded(clause: _Clause) -> str:
    if len(clause) == 1:
        return clause[0].phrase
    *first, last = [atom.phrase for atom in clause]
    return f"either {', '.join(first)} or {last}"


def _settled(clauses: list[_Clause]) -> list[_Clause]:
    """Return the clauses without choices that a certain atom excludes, and without those that another implies."""
    certain = {(c[0].key, c[0].holds) for c in clauses if len(c) == 1}
    reduced: list[_Clause] = []
    for clause in clauses:
        kept = clause
        if len(clause) > 1:
            kept = tuple(atom for atom in clause if (atom.key, not atom.holds) not in certain)
        if kept:
            reduced.append(kept)
    sets = [frozenset((atom.key, atom.holds) for atom in clause) for clause in reduced]
    return [
        clause
        for i, clause in enumerate(reduced)
        if not any(other < sets[i] or (other == sets[i] and j < i) for j, other in enumerate(sets))
    ]


def _guard(guard: str, site: Site) -> Iterator[_Clause]:
    if guard == "except":
        yield (_Atom(guard, True, "while handling another exception"),)
    elif guard.startswith("except "):
        yield (_Atom(guard, True, f"while handling {_code(guard.removeprefix('except '))}"),)
    elif guard.startswith("match ") and ": case " in guard:
        subject, _, pattern = guard.removeprefix("match ").partition(": case ")
        words = "matches no other case" if pattern == "_" else f"matches {_code(pattern)}"
        yield (_Atom(guard, True, f"{_code(subject)} {words}"),)
    else:
        try:
            node = ast.parse(guard, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            yield (_Atom(guard, True, f"{_code(guard)} holds"),)
            return
        yield from _clauses(node, site, holds=True)


def _clauses(node: ast.expr, site: Site, *, holds: bool) -> Iterator[_Clause]:
    """Yield the conjunction that a condition, or its negation, is."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield from _clauses(node.operand, site, holds=not holds)
    elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) == holds:
        for value in node.values:
            yield from _clauses(value, site, holds=holds)
    elif isinstance(node, ast.BoolOp):
        parts = [list(_clauses(value, site, holds=holds)) for value in node.values]
        if len(parts) <= MAX_CHOICES and all(len(part) == 1 for part in parts):
            yield tuple(dict.fromkeys(atom for part in parts for atom in part[0]))
        else:
            yield (_held(node, holds=holds),)
    else:
        yield (_atom(node, site, holds=holds),)


def _held(node: ast.expr, *, holds: bool) -> _Atom:
    source = source_of(node)
    return _Atom(source, holds, f"{_code(source)} {'holds' if holds else 'does not hold'}")


def _atom(node: ast.expr, site: Site, *, holds: bool) -> _Atom:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _comparison(node, site, holds=holds)
    if isinstance(node, ast.Call):
        return _called(node, site, holds=holds)
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        source, flag = source_of(node), _flag(node, site)
        words = "is set" if holds else "is not set"
        return _Atom(source, holds, f"{_code(flag)} {words} ({_code(source)})" if flag else f"{_code(source)} {words}")
    return _held(node, holds=holds)


def _comparison(node: ast.Compare, site: Site, *, holds: bool) -> _Atom:
    left, right = node.left, node.comparators[0]
    operator, positive = _POSITIVE[type(node.ops[0])]
    positive = positive == holds
    key = f"{source_of(left)} {operator} {source_of(right)}"
    if _is_length(left) and isinstance(right, ast.Constant) and right.value == 0 and operator in ("==", ">"):
        assert isinstance(left, ast.Call)
        empty = positive == (operator == "==")
        return _Atom(key, positive, f"{_code(source_of(left.args[0]))} is {'empty' if empty else 'not empty'}")
    if operator == "in" and isinstance(right, (ast.List, ast.Tuple, ast.Set)) and 0 < len(right.elts) <= 8:
        words = _choice([_code(source_of(item)) for item in right.elts], positive=positive)
        return _Atom(key, positive, f"{_subject(left, site)} is {words}")
    return _Atom(key, positive, f"{_subject(left, site)} {_VERB[operator, positive]} {_subject(right, site)}")


def _choice(names: list[str], *, positive: bool) -> str:
    """Return "a, b or c", or "neither a nor b" for the negation."""
    if len(names) == 1:
        return names[0] if positive else f"not {names[0]}"
    if positive:
        return f"{', '.join(names[:-1])} or {names[-1]}"
    return f"neither {', '.join(names[:-1])} nor {names[-1]}"


def _is_length(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func) == "len" and len(node.args) == 1


def _called(node: ast.Call, site: Site, *, holds: bool) -> _Atom:
    name, source = dotted(node.func), source_of(node)
    if name == "isinstance" and len(node.args) == 2:
        kinds = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]
        names = [_code(source_of(kind)) for kind in kinds]
        listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
        kind = "an instance" if holds else "no instance"
        return _Atom(source, holds, f"{_subject(node.args[0], site)} is {kind} of {listed}")
    if name == "hasattr" and len(node.args) == 2 and isinstance(node.args[1], ast.Constant):
        attribute = f"{'an' if holds else 'no'} attribute {_code(str(node.args[1].value))}"
        return _Atom(source, holds, f"{_code(source_of(node.args[0]))} has {attribute}")
    if _is_length(node):
        return _Atom(f"{source} == 0", not holds, f"{_code(source_of(node.args[0]))} is {'not ' if holds else ''}empty")
    if name in ("any", "all"):
        return _held(node, holds=holds)
    return _Atom(source, holds, f"{_code(source)} is {'true' if holds else 'false'}")


def _subject(node: ast.expr, site: Site) -> str:
    flag = _flag(node, site)
    if flag:
        return f"{_code(flag)} ({_code(source_of(node))})"
    if isinstance(node, ast.Constant) and (node.value is None or type(node.value) in (int, float)):
        return str(node.value)
    return _code(source_of(node))


def _flag(node: ast.expr, site: Site) -> str:
    """Return the option that an attribute read stands for, among those of the site."""
    if not isinstance(node, ast.Attribute):
        return ""
    option = "--" + node.attr.replace("_", "-")
    return option if option in site.flags else ""


def _code(text: str) -> str:
    text = text if len(text) <= MAX_CODE else text[: MAX_CODE - 1] + "…"
    return f"`{text.replace('`', chr(39))}`"
