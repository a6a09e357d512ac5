"""Run the two halves of a record's example: does the first raise this very record, does the second pass."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from app.check import command
from app.check.service import Question
from app.errors import BadInput, OutOfTime

MET = "this error"
PASSED = "pass"
_SAID = 160


@dataclass(frozen=True, slots=True)
class Pair:
    """Two launch commands of one record, and where they are run."""

    record: str
    before: str
    after: str
    engine: str
    hardware: str


@dataclass(frozen=True, slots=True)
class Happened:
    """What each half did: "this error", "pass", or a sentence that says what else."""

    before: str
    after: str


class Asked(Protocol):
    """What answers a question; `CheckService` is one."""

    async def check(self, question: Question) -> dict[str, Any]:
        """Return the body of the answer."""
        ...


def is_launch(text: str) -> bool:
    """Say whether an example is a launch command, not code."""
    try:
        command.read(text)
    except BadInput:
        return False
    return True


async def run(
    service: Asked, pairs: Sequence[Pair], *, jobs: int, done: Callable[[Pair, Happened], None]
) -> None:  # fmt: skip
    """Run every pair, `jobs` at once, and call `done` with each as it ends.

    Pairs of one engine and machine stand together, so that few engine processes are needed at a time.
    """
    waiting = iter(sorted(pairs, key=lambda pair: (pair.engine, pair.hardware, pair.record)))

    async def work() -> None:
        for pair in waiting:
            done(pair, await happened(service, pair))

    async with asyncio.TaskGroup() as group:
        for _ in range(jobs):
            group.create_task(work())


async def happened(service: Asked, pair: Pair) -> Happened:
    """Run both halves of one pair."""
    return Happened(await _half(service, pair, pair.before), await _half(service, pair, pair.after))


async def _half(service: Asked, pair: Pair, text: str) -> str:
    question = Question(command=text, engine=pair.engine, hardware=pair.hardware, fixes=False)
    try:
        return said(await service.check(question), pair.record)
    except OutOfTime as error:
        return f"not decided: {error.detail}"


def said(body: dict[str, Any], record: str) -> str:
    """Return what an answer says of the error of `record`."""
    if body["verdict"] == "pass":
        return PASSED
    if body["verdict"] == "unknown":
        return f"not decided: {_short(body['reason'] or '')}"
    error = body["error"]
    known = error["record"] and error["record"]["id"]
    if known == record:
        return MET
    text = error["message"] or error["condition"] or ""
    return _short(f"another error{f' {known}' if known else ''}: {error['exception']}: {text}")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SAID else line[: _SAID - 3] + "..."
