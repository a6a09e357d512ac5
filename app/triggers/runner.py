"""Run launches through the real, confined pool, looked at or not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from app.check.pool import Engine
from app.check.protocol import Lost, Outcome
from app.check.service import CheckService, Question
from app.errors import ErrataError, NotFound
from app.triggers.tracer import GOALS, KEY, SHORT

TRACER = "app.triggers.tracer"
Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch to try. `gpus` 0: as many as the command needs; `short`: a traced run ends with the arguments."""

    command: str
    hardware: str
    gpus: int = 0
    packages: tuple[tuple[str, str], ...] = ()
    short: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """A function that a run entered.

    Shape: `last` is the last of its lines that ran; `tests` maps the key of a condition to what came nearest to true
    and to false: how many parts stood against it, the truth of each part, both sides of each part.
    """

    last: int
    tests: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a launch. `stage` is the one that ended it; `stages` are milliseconds of those that ran."""

    launch: Launch
    verdict: str
    stage: str = ""
    path: str = ""
    line: int = 0
    function: str = ""
    exception: str = ""
    message: str = ""
    explicit: bool = False
    gpus: int = 0
    stages: Mapping[str, float] = field(default_factory=dict)
    seen: Mapping[tuple[str, int], Seen] = field(default_factory=dict)

    @property
    def place(self) -> Place:
        """Return where it was stopped."""
        return self.path, self.line


class Runner:
    """Runs launches on one release, a few at a time."""

    def __init__(
        self, service: CheckService, engine: Engine, *, goals: Mapping[str, Sequence[int]] | None = None
    ) -> None:
        self.service = service
        self.engine = engine if goals is None else replace(engine, module=TRACER)
        self.count = 0
        if goals is not None:
            (service.pool.folder / GOALS).write_text(json.dumps(goals), encoding="utf-8")

    @classmethod
    def of(cls, service: CheckService, version: str, goals: Mapping[str, Sequence[int]] | None = None) -> Self:
        """Return a runner on an installed release. Raises: NotFound."""
        for engine in service.engines.installed():
            if engine.version == version:
                return cls(service, engine, goals=goals)
        raise NotFound(f"SGLang {version} is not installed: errata engine install {version}")

    async def run(self, launches: Iterable[Launch]) -> list[Result]:
        """Run launches at once, as many as the pool has workers, and return the results in their order."""
        gate = asyncio.Semaphore(self.service.pool.bounds.workers)

        async def one(launch: Launch) -> Result:
            async with gate:
                return await self.one(launch)

        return list(await asyncio.gather(*(one(launch) for launch in launches)))

    async def one(self, launch: Launch) -> Result:
        """Run one launch; what gives no answer is `lost`."""
        self.count += 1
        question = Question(
            launch.command, engine=self.engine.version, hardware=launch.hardware, gpus=launch.gpus or None,
            packages=dict(launch.packages), fixes=False,
        )  # fmt: skip
        try:
            prepared = await self.service.prepare(question)
            prepared = replace(prepared, engine=self.engine)
            request = replace(prepared.request, seed=SHORT) if launch.short else prepared.request
            outcome = await self.service.pool.check(self.engine, request)
        except ErrataError:
            return Result(launch, "lost")
        if isinstance(outcome, Lost):
            return Result(launch, "lost", outcome.stage)
        body = self.service.body(prepared, outcome, cached=False, elapsed_ms=outcome.elapsed_ms)
        return _result(launch, outcome, body)


def _result(launch: Launch, outcome: Outcome, body: Mapping[str, Any]) -> Result:
    error = body["error"] or {}
    stage = next((s["name"] for s in body["stages"] if s["outcome"] in ("fail", "unknown")), "")
    return Result(
        launch,
        body["verdict"],
        stage,
        error.get("path", ""),
        error.get("line", 0),
        error.get("function", ""),
        error.get("exception", ""),
        error.get("message", ""),
        error.get("explicit", False),
        body["hardware"]["gpus"],
        {s["name"]: s["ms"] for s in body["stages"] if s["outcome"] != "not reached"},
        {(path, entry): Seen(last, tests) for path, entry, last, tests in outcome.resolved.get(KEY, ())},
    )
