"""Run launches through the real, confined pool, looked at or not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from app.check.pool import Engine
from app.check.protocol import Lost, Model, Outcome, ProtocolError
from app.check.service import CheckService, Prepared, Question
from app.errors import ErrataError, NotFound
from app.triggers.tracer import BATCH, GOALS, KEY, SHORT

TRACER = "app.triggers.tracer"
TOGETHER = 16
"""Short launches that one process runs, at most."""
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

        async def several(together: Sequence[Launch]) -> list[Result]:
            async with gate:
                found = await self._several(together) if len(together) > 1 else None
                return found or [await self.one(launch) for launch in together]

        wanted = list(launches)
        chunks = list(_together(wanted))
        found = await asyncio.gather(*(several(chunk) for chunk in chunks))
        by_launch = {launch: result for chunk in found for result in chunk for launch in [result.launch]}
        return [by_launch[launch] for launch in wanted]

    async def _several(self, launches: Sequence[Launch]) -> list[Result] | None:
        """Run short launches on one machine one after the other in one process; None where it ended half-way."""
        try:
            prepared = [await self.service.prepare(self._question(launch)) for launch in launches]
            models = {model.name: model for one in prepared for model in one.request.models}
            commands = [
                {"arguments": p.request.arguments, "environment": p.request.environment, "gpus": p.request.gpus}
                for p in prepared
            ]
            folder, file = BATCH.split("/")
            models[folder] = Model(folder, {file: json.dumps(commands)})
            request = replace(prepared[0].request, models=tuple(models.values()), seed=SHORT, want_traceback=False)
            answer = await self.service.pool.check(self.engine, request)
            outcomes = [Outcome.from_json(one) for one in answer.resolved[KEY]] if isinstance(answer, Outcome) else []
        except (ErrataError, ProtocolError):
            return None
        if len(outcomes) != len(launches):
            return None
        self.count += len(launches)
        return [self._result(*each) for each in zip(launches, prepared, outcomes, strict=True)]

    def _question(self, launch: Launch) -> Question:
        return Question(
            launch.command, engine=self.engine.version, hardware=launch.hardware, gpus=launch.gpus or None,
            packages=dict(launch.packages), fixes=False,
        )  # fmt: skip

    def _result(self, launch: Launch, prepared: Prepared, outcome: Outcome) -> Result:
        body = self.service.body(prepared, outcome, cached=False, elapsed_ms=outcome.elapsed_ms)
        return _result(launch, outcome, body)

    async def one(self, launch: Launch) -> Result:
        """Run one launch; what gives no answer is `lost`."""
        self.count += 1
        try:
            prepared = await self.service.prepare(self._question(launch))
            prepared = replace(prepared, engine=self.engine)
            request = replace(prepared.request, seed=SHORT) if launch.short else prepared.request
            outcome = await self.service.pool.check(self.engine, request)
        except ErrataError:
            return Result(launch, "lost")
        if isinstance(outcome, Lost):
            return Result(launch, "lost", outcome.stage)
        return self._result(launch, prepared, outcome)


def _together(launches: Sequence[Launch]) -> Iterator[list[Launch]]:
    """Yield the launches in groups that one process may run: short ones of one machine; the others alone."""
    groups: dict[str, list[Launch]] = {}
    for launch in dict.fromkeys(launches):
        if launch.short and not launch.packages:
            groups.setdefault(launch.hardware, []).append(launch)
        else:
            yield [launch]
    for group in groups.values():
        yield from (group[i : i + TOGETHER] for i in range(0, len(group), TOGETHER))


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
