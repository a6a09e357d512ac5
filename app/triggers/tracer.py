"""The process of an engine, told to note which conditions its start-up meets and how they come out.

Run in place of `app.check.worker` by the search alone. The verdict is the engine's own; what was seen travels in the
outcome's `resolved` under KEY. The statements that are looked for stand in GOALS, in the folder it is started in.
"""

from __future__ import annotations

import ast
import dataclasses
import json
import os
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from app.check.protocol import Json, Outcome, Request, Stage, Start
from app.check.worker import __main__ as process
from app.triggers.conditions import Source, Test, distance, leaves

KEY = "(seen)"
GOALS = "goals.json"
BATCH = "several/commands.json"
"""Commands of a request that is SHORT: they run one after the other in one process, which only a search may do."""
SHORT = 1
"""The `seed` of a request that is to end with the arguments: nothing after them is looked for."""
VISITS, ENTRIES = 24, 60
"""Evaluations of one condition, and looks into one function, in one run, at most."""
TEXT, ITEMS = 80, 48

Trace = Callable[[types.FrameType, str, Any], Any]


@dataclasses.dataclass(slots=True)
class Part:
    """A part of a condition as code: the whole, and both sides of a comparison."""

    whole: types.CodeType
    sides: tuple[types.CodeType, ...]


class Watched:
    """A condition, and the best that one run made of it towards either truth."""

    def __init__(self, test: Test) -> None:
        self.node = test.node
        self.parts = [_part(leaf.node) for leaf in leaves(test.node)]
        self.visits = 0
        self.best: dict[bool, tuple[int, list[bool | None], list[Json]]] = {}

    def visit(self, frame: types.FrameType) -> None:
        """Evaluate every part in the frame."""
        if self.visits >= VISITS:
            return
        self.visits += 1
        names = {**frame.f_globals, **frame.f_locals}  # a copy: the frame's own variables stay as they are
        truths = [_truth(_value(part.whole, names)) for part in self.parts]
        for want in (True, False):
            left = distance(self.node, want, iter(truths))
            if want not in self.best or left < self.best[want][0]:
                sides: list[Json] = [[_shown(_value(code, names)) for code in part.sides] for part in self.parts]
                self.best[want] = (left, truths, sides)


class Function:
    """A function with goals in it."""

    def __init__(self, path: str, entry: int) -> None:
        self.path, self.entry = path, entry
        self.tests: dict[str, Watched] = {}
        self.lines: dict[int, list[Watched]] = {}
        self.entered = 0
        self.last = 0

    def add(self, test: Test) -> None:
        """Look at a condition whenever one of its lines is about to run."""
        if test.key not in self.tests:
            watched = self.tests[test.key] = Watched(test)
            for line in range(test.first, test.last + 1):
                self.lines.setdefault(line, []).append(watched)

    def forget(self) -> None:
        """Forget what was met."""
        self.entered = self.last = 0
        for watched in self.tests.values():
            watched.visits = 0
            watched.best.clear()

    def trace(self, frame: types.FrameType, event: str, argument: Any) -> Trace:
        """Take one event of a frame of this function."""
        if event == "line":
            self.last = frame.f_lineno
            for watched in self.lines.get(frame.f_lineno, ()):
                watched.visit(frame)
        return self.trace


def _part(node: ast.expr) -> Part:
    sides = (node.left, *node.comparators) if isinstance(node, ast.Compare) else (node,)
    return Part(_code(node), tuple(_code(side) for side in sides))


def _code(node: ast.expr) -> types.CodeType:
    waits = any(isinstance(part, (ast.Await, ast.Yield, ast.YieldFrom)) for part in ast.walk(node))
    chosen = ast.copy_location(ast.Constant(None), node) if waits else node
    return compile(ast.fix_missing_locations(ast.Expression(chosen)), "<condition>", "eval")


class _Unknown:
    """The value of what cannot be evaluated."""


def _value(code: types.CodeType, names: dict[str, Any]) -> Any:
    try:
        return eval(code, names)
    except Exception:
        return _Unknown


def _truth(value: Any) -> bool | None:
    try:
        return None if value is _Unknown else bool(value)
    except Exception:
        return None


def _shown(value: Any) -> Json:
    """Return a value as bounded JSON; what is no plain value is named by its type."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return str(value)[:TEXT]
    if isinstance(value, (list, tuple, set, frozenset, dict)):
        return [_shown(item) for item in list(value)[:ITEMS] if item is None or isinstance(item, (str, int, float))]
    inner = getattr(value, "value", None)
    return inner[:TEXT] if isinstance(inner, str) else {"type": type(value).__name__}


class Watch:
    """All functions with goals."""

    def __init__(self, release: Path, goals: dict[str, list[int]]) -> None:
        self.functions: dict[str, dict[int, Function]] = {}
        for path, lines in goals.items():
            file = release / path
            source = Source(path, file.read_text(encoding="utf-8-sig"))
            known = self.functions.setdefault(str(file), {})
            for line in lines:
                if (goal := source.goal(line)) is not None:
                    function = known.setdefault(goal.entry, Function(path, goal.entry))
                    for step in goal.steps:
                        function.add(step.test)

    def call(self, frame: types.FrameType, event: str, argument: Any) -> Trace | None:
        """Choose the frames that are looked into."""
        known = self.functions.get(frame.f_code.co_filename)
        if known is None:
            return None
        function = known.get(frame.f_code.co_firstlineno)
        if function is None or frame.f_code.co_name in ("<lambda>", "<listcomp>", "<genexpr>", "<dictcomp>"):
            return None
        function.entered += 1
        return function.trace if function.entered <= ENTRIES else None

    def forget(self) -> None:
        """Begin anew with another run."""
        for known in self.functions.values():
            for function in known.values():
                if function.entered:
                    function.forget()

    def seen(self) -> list[Json]:
        """Return what was entered: path, entry, last line, and the conditions that were met."""
        return [
            [function.path, function.entry, function.last, dict(_met(function))]
            for known in self.functions.values()
            for function in known.values()
            if function.entered
        ]


def _met(function: Function) -> Iterator[tuple[str, Json]]:
    for key, watched in function.tests.items():
        if watched.best:
            yield key, [list(watched.best[True]), list(watched.best[False])]


def _enough() -> None:
    from app.check.worker.driver import Reached

    raise Reached


def traced(engine: type[Any]) -> type[Any]:
    """Return the engine's class with checks that are looked at."""

    class Traced(engine):  # type: ignore[misc]
        def __init__(self, release: Path, *rest: Any) -> None:
            super().__init__(release, *rest)
            self.watch = Watch(release, json.loads(Path(GOALS).read_text(encoding="utf-8")))

        def check(self, request: Request, report: Callable[[Stage], None], pipeline_rank: int = 0) -> Outcome:
            if request.seed != SHORT:
                return self.looked_at(request, report, pipeline_rank)
            self.scheduler.run_scheduler_process = _enough  # this process ends with the check
            if not (others := Path(BATCH)).exists():
                return self.looked_at(request, report, pipeline_rank)
            found: list[Json] = []
            environment = dict(os.environ)
            for one in json.loads(others.read_text(encoding="utf-8")):
                os.environ.clear()
                os.environ.update(environment)
                changed = dataclasses.replace(
                    request, arguments=tuple(one["arguments"]), environment=one["environment"], gpus=one["gpus"]
                )
                found.append(self.looked_at(changed, lambda stage: None, 0).to_json())
            return Outcome("pass", "several commands", (), resolved={KEY: found})

        def looked_at(self, request: Request, report: Callable[[Stage], None], pipeline_rank: int) -> Outcome:
            self.watch.forget()
            sys.settrace(self.watch.call)
            try:
                outcome: Outcome = super().check(request, report, pipeline_rank)
            finally:
                sys.settrace(None)
            return dataclasses.replace(outcome, resolved={KEY: self.watch.seen()})

    return Traced


def main() -> int:
    """Serve as `app.check.worker` does."""
    serve = process.serve

    def look_on(start: Start, source: int, sink: int) -> int:
        from app.check.worker import driver

        driver.Engine = traced(driver.Engine)  # type: ignore[misc]
        return serve(start, source, sink)

    process.serve = look_on
    return process.main()


if __name__ == "__main__":
    sys.exit(main())
