"""The conditions between a function's entry and one of its statements, read from source.

Standard library only: the traced engine process and the search both read the same file and get the same tests.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Guarded = ast.If | ast.While | ast.IfExp | ast.Assert


@dataclass(frozen=True, slots=True)
class Test:
    """One condition of a file. `key` is its place, "line:column"; the lines are those of its expression."""

    key: str
    node: ast.expr
    first: int
    last: int

    @property
    def text(self) -> str:
        """Return its source."""
        return ast.unparse(self.node)


@dataclass(frozen=True, slots=True)
class Step:
    """A condition that must have a truth for the statement to be reached."""

    test: Test
    want: bool


@dataclass(frozen=True, slots=True)
class Goal:
    """A statement and the way to it.

    Shape: `entry` is the first line of its function's code (0 at module level); `steps` are outermost first; `handles`
    says that the statement stands in an exception handler.
    """

    path: str
    line: int
    function: str
    entry: int
    steps: tuple[Step, ...]
    handles: str = ""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A part of a condition that has no `and`, `or` or `not` in it, and the truth it should get."""

    node: ast.expr
    want: bool

    @property
    def text(self) -> str:
        """Return its source."""
        return ast.unparse(self.node)


class Source:
    """A file of a release."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.tree = ast.parse(text.removeprefix("\ufeff"))

    def goal(self, line: int) -> Goal | None:
        """Return the way to the statement that begins at or spans `line`."""
        trail = _trail(self.tree, line)
        if not trail:
            return None
        inner = max((i for i, node in enumerate(trail) if isinstance(node, FunctionNode)), default=-1)
        names = [node.name for node in trail if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))]
        function = trail[inner] if inner >= 0 else None
        steps, handles = [], ""
        for outer, node in zip(trail[max(inner, 0) :], trail[max(inner, 0) + 1 :], strict=False):
            if isinstance(outer, (ast.If, ast.While)):
                if node in outer.body:
                    steps.append(Step(_test(outer.test), True))
                elif node in outer.orelse:
                    steps.append(Step(_test(outer.test), False))
            elif isinstance(outer, ast.ExceptHandler):
                handles = ast.unparse(outer.type) if outer.type else "BaseException"
        last = trail[-1]
        if isinstance(last, ast.Assert):
            steps.append(Step(_test(last.test), False))
        return Goal(self.path, line, ".".join(names), _entry(function), tuple(steps), handles)

    def function(self, entry: int) -> FunctionNode | None:
        """Return the function whose code begins at `entry`."""
        return next((f for f in self.functions() if _entry(f) == entry), None)

    def functions(self) -> Iterator[FunctionNode]:
        """Yield every function of the file."""
        yield from (node for node in ast.walk(self.tree) if isinstance(node, FunctionNode))


def _entry(function: ast.AST | None) -> int:
    if not isinstance(function, FunctionNode):
        return 0
    return function.decorator_list[0].lineno if function.decorator_list else function.lineno


def _trail(tree: ast.Module, line: int) -> list[ast.AST]:
    """Return the statements (and handlers) around `line`, outermost first."""
    trail: list[ast.AST] = []
    blocks: list[ast.AST] = list(tree.body)
    while True:
        inner = next((node for node in blocks if _spans(node, line)), None)
        if inner is None:
            return trail
        trail.append(inner)
        blocks = [
            part for field in ("body", "orelse", "finalbody", "handlers", "cases") for part in getattr(inner, field, ())
        ]


def _spans(node: ast.AST, line: int) -> bool:
    start = _entry(node) or getattr(node, "lineno", 0)
    if isinstance(node, ast.match_case):
        start = node.pattern.lineno
    end = getattr(node, "end_lineno", None) or (node.body[-1].end_lineno if isinstance(node, ast.match_case) else 0)
    return start <= line <= (end or 0)


def _test(node: ast.expr) -> Test:
    return Test(f"{node.lineno}:{node.col_offset}", node, node.lineno, node.end_lineno or node.lineno)


def leaves(node: ast.expr, want: bool = True) -> list[Leaf]:
    """Return the parts of a condition, in order, with the truth each should get for the whole to be `want`."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return leaves(node.operand, not want)
    if isinstance(node, ast.BoolOp):
        return [leaf for value in node.values for leaf in leaves(value, want)]
    return [Leaf(node, want)]


def distance(node: ast.expr, want: bool, truths: Iterator[bool | None]) -> int:
    """Return how many parts still stand against `want`; `truths` are those of the parts, in order, None: not known."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return distance(node.operand, not want, truths)
    if isinstance(node, ast.BoolOp):
        parts = [distance(value, want, truths) for value in node.values]
        return sum(parts) if isinstance(node.op, ast.And) is want else min(parts)
    return 0 if next(truths) is want else 1
