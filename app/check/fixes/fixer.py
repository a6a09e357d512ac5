"""Looks for fixes of a refused launch with the means of the check service: the same pool, queue and cache."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from app.check import command
from app.check.command import LaunchCommand
from app.check.fixes import changes
from app.check.fixes.advice import Advice
from app.check.fixes.changes import Variant
from app.check.fixes.proposals import Failure, Proposer
from app.check.fixes.rewrite import rewritten
from app.check.fixes.search import USUAL, Attempt, Budget, Found, Search, Tried
from app.check.options import Options
from app.check.pool import Engine
from app.check.protocol import Error, Lost, Outcome
from app.errors import Broken

if TYPE_CHECKING:
    from app.check.service import Judged, Prepared, Question

SAID_LIMIT = 300
SHOWN = 5


class Service(Protocol):
    """What of the check service is needed here."""

    async def prepare(self, question: Question, launch: LaunchCommand | None = None) -> Prepared:
        """Choose what was left open."""
        ...

    async def run(self, prepared: Prepared) -> tuple[Outcome | Lost, bool]:
        """Run a prepared question."""
        ...

    def judged(self, prepared: Prepared, outcome: Outcome | Lost) -> Judged:
        """Return the verdict of an outcome."""
        ...

    def advised(self, error: Error, version: str) -> Advice | None:
        """Return what is known of the record behind an error."""
        ...


@dataclass
class Fixer:
    """Looks for the fixes of one refused question."""

    service: Service
    engines: tuple[Engine, ...]
    profiles: tuple[Any, ...]
    options: Callable[[Engine], Options]
    budget: Budget = USUAL
    _prepared: dict[Variant, Prepared] = field(default_factory=dict)

    async def find(
        self, question: Question, prepared: Prepared, judged: Judged,
        on_tried: Callable[[dict[str, Any]], None] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Return the members of an answer that tell of fixes: `fixes`, `tried` and `search`."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            tables = {engine.version: await asyncio.to_thread(self.options, engine) for engine in self.engines}
        except Broken as error:
            return {"fixes": [], "tried": [], "search": {"checks": 0, "ms": 0.0, "ended": error.detail}}
        launch = prepared.launch

        def table(engine: Engine) -> Options:
            return tables[engine.version]

        async def run(variant: Variant) -> Tried:
            return await self._run(question, launch, variant)

        def tell(attempt: Attempt) -> None:
            if on_tried is not None:
                on_tried(_tried(attempt, start))

        start = Variant(launch.arguments, launch.environment, prepared.engine, prepared.profile.name)
        proposer = Proposer(table, self.engines, self.profiles, command.may_set)
        failure = self._failure(start, prepared, judged)
        found = await Search(run, proposer.proposals, table, self.budget, tell).find(failure)
        return {
            "fixes": [self._fix(question, prepared, start, attempt) for attempt in found.fixes[:SHOWN]],
            "tried": [_tried(attempt, start) for attempt in found.attempts],
            "search": _told(found, loop.time() - began),
        }

    async def _run(self, question: Question, launch: LaunchCommand, variant: Variant) -> Tried:
        """Run a variant as if it had been asked."""
        asked = replace(question, engine=variant.engine.version, hardware=variant.hardware)
        changed = replace(launch, arguments=variant.arguments, environment=variant.environment)
        prepared = self._prepared[variant] = await self.service.prepare(asked, changed)
        outcome, _ = await self.service.run(prepared)
        judged = self.service.judged(prepared, outcome)
        ms = outcome.elapsed_ms
        if judged.verdict == "fail" and judged.result.error is not None:
            error = judged.result.error
            said = f"{error.exception}: {error.message or error.condition or error.statement}"
            return Tried("fail", said[:SAID_LIMIT], self._failure(variant, prepared, judged), ms)
        undecided = [stage.name for stage in judged.result.stages if stage.outcome == "unknown"]
        if judged.verdict == "pass" and undecided:
            return Tried("unknown", f"starts, but the stage {undecided[0]} could not be decided here", None, ms)
        return Tried(judged.verdict, judged.reason[:SAID_LIMIT], None, ms)

    def _failure(self, variant: Variant, prepared: Prepared, judged: Judged) -> Failure:
        result = judged.result
        assert result.error is not None
        stage = next((one.name for one in result.stages if one.outcome == "fail"), "arguments")
        advice = self.service.advised(result.error, prepared.engine.version)
        return Failure(variant, result.error, stage, result.resolved, advice)

    def _fix(self, question: Question, prepared: Prepared, start: Variant, attempt: Attempt) -> dict[str, Any]:
        variant = attempt.variant
        gpus = self._prepared[variant].request.gpus
        release = variant.engine.version if variant.engine != start.engine else ""
        return {
            "edit": changes.text(attempt.edit),
            "command": rewritten(question.command, prepared.launch, variant.arguments, variant.environment, release),
            "verdict": attempt.tried.verdict,
            **_place(variant, start),
            **({"gpus": gpus} if gpus != prepared.request.gpus else {}),
            "changes": [change.text for change in attempt.edit],
            "ms": round(attempt.tried.ms, 1),
        }


def _place(variant: Variant, start: Variant) -> dict[str, Any]:
    there: dict[str, Any] = {}
    if variant.engine != start.engine:
        there["engine"] = variant.engine.version
    if variant.hardware != start.hardware:
        there["hardware"] = variant.hardware
    return there


def _tried(attempt: Attempt, start: Variant) -> dict[str, Any]:
    tried: Mapping[str, Any] = {
        "edit": changes.text(attempt.edit),
        "verdict": attempt.tried.verdict,
        "said": attempt.tried.said,
        "ms": round(attempt.tried.ms, 1),
    }
    return {**tried, **_place(attempt.variant, start)}


_ENDED = {
    "enough": "fixes were found",
    "nothing left": "nothing else was worth a try",
    "checks": "one search may not run more checks",
    "time": "one search may not take longer",
    "busy": "the server is busy",
}


def _told(found: Found, seconds: float) -> dict[str, Any]:
    return {"checks": len(found.attempts), "ms": round(seconds * 1000, 1), "ended": _ENDED[found.ended]}
