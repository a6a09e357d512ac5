"""An answer with fixes: through the service, with the pool at its seam."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from app.check import hardware
from app.check.catalogue import catalogue
from app.check.fixes.advice import Advice
from app.check.options import Options
from app.check.pool import Engine, SandboxPool
from app.check.protocol import Error, Lost, Option, Outcome, Request, Stage
from app.check.service import CheckService, Question, RecordLink
from app.errors import Broken, TooMany
from tests.check.test_service import FakeEngines

TABLE = Options(
    "0.5.18",
    (
        Option(("--model-path", "--model"), "model_path", required=True),
        Option(("--tp-size",), "tp_size", type="int", default=1),
        Option(("--fast",), "fast", "0"),
    ),
)
COMMAND = "sglang serve Qwen/Qwen3-8B"
RECORD = "ce5cbefa16d6fad4"
STARTS = Outcome("pass", "", (Stage("pools", "pass", 1.0),), elapsed_ms=5.0)


def refusal(message: str) -> Outcome:
    error = Error("ValueError", message, "sglang/x.py", len(message), "f", "f", "raise", explicit=True)
    return Outcome("fail", "", (Stage("pools", "fail", 1.0),), error, elapsed_ms=5.0)


@dataclass
class RulePool:
    """Answers by what is asked."""

    rule: Callable[[str, Request], Outcome | Lost]
    asked: list[tuple[str, Request]] = field(default_factory=list)

    async def check(self, engine: Engine, request: Request, *given: object, **named: object) -> Outcome | Lost:
        self.asked.append((engine.version, request))
        return self.rule(engine.version, request)


def answered(
    rule: Callable[[str, Request], Outcome | Lost], line: str, *, advice: Advice | None = None,
    options: Callable[[Engine], Options] = lambda engine: TABLE, **question: Any,
) -> tuple[dict[str, Any], RulePool]:  # fmt: skip
    pool = RulePool(rule)
    service = CheckService(
        cast("SandboxPool", pool), FakeEngines(), catalogue(), hardware.profiles(), options=options,
        link=lambda error, version: RecordLink(RECORD, "", ""),
        advise=lambda record: advice if record == RECORD else None,
    )  # fmt: skip
    return asyncio.run(service.check(Question(line, fixes=True, **question))), pool


def test_a_fix_can_be_asked_again() -> None:
    body, _ = answered(lambda v, r: refusal("no --fast") if "--fast" in r.arguments else STARTS, COMMAND + " --fast")

    assert body["fixes"] == [
        {"edit": "drop --fast", "command": COMMAND, "verdict": "pass", "changes": ["drop --fast"], "ms": 5.0}
    ]
    assert body["tried"] == [{"edit": "drop --fast", "verdict": "pass", "said": "", "ms": 5.0}]
    assert (body["search"]["checks"], body["search"]["ended"]) == (1, "fixes were found")


def test_another_release_is_named_beside_the_command() -> None:
    advice = Advice(versions=("0.5.18",), ingested=("0.5.18", "0.5.20", "0.5.23"))

    body, pool = answered(
        lambda v, r: STARTS if v == "0.5.23" else refusal("no"), f"{COMMAND} --tp 2", advice=advice, engine="0.5.18"
    )

    first = body["fixes"][0]
    assert (first["edit"], first["engine"], first["command"]) == (
        "upgrade to SGLang 0.5.20 or later", "0.5.23", f"{COMMAND} --tp 2",
    )  # fmt: skip
    assert ("0.5.23", pool.asked[0][1].arguments) in [(v, r.arguments) for v, r in pool.asked]


def test_more_gpus_and_other_hardware_are_named() -> None:
    def rule(version: str, request: Request) -> Outcome:
        large = request.gpus >= 4 or request.hardware.name != "h100-80gb"
        return STARTS if large else refusal("Not enough memory")

    body, _ = answered(rule, f"{COMMAND} --tp 2", hardware="h100-80gb")

    ranks = next(fix for fix in body["fixes"] if "hardware" not in fix)
    machine = next(fix for fix in body["fixes"] if "hardware" in fix)
    assert (ranks["edit"], ranks["gpus"]) == ("change --tp 2 to 4", 4)
    assert machine["edit"].startswith("run on ")
    assert hardware.profiles().find(machine["hardware"]).free_bytes > hardware.profiles().find("h100-80gb").free_bytes


def test_gpus_that_are_not_there_are_not_used() -> None:
    def rule(version: str, request: Request) -> Outcome:
        if request.hardware.name != "h100-80gb":
            return refusal("Not enough memory")
        wanted = int(request.arguments[request.arguments.index("--tp") + 1])
        return Outcome("unknown", "too few GPUs", ()) if wanted > request.gpus else refusal("Not enough memory")

    body, pool = answered(rule, f"{COMMAND} --tp 2", gpus=2, hardware="h100-80gb")

    assert body["fixes"] == []
    assert {request.gpus for _, request in pool.asked} == {2}
    assert "unknown" in {tried["verdict"] for tried in body["tried"]}


def test_a_start_with_an_undecided_stage_is_no_fix() -> None:
    late = Outcome("pass", "", (Stage("pools", "pass"), Stage("prefix cache", "unknown")))

    body, _ = answered(lambda v, r: refusal("no --fast") if "--fast" in r.arguments else late, COMMAND + " --fast")

    assert body["fixes"] == []
    assert body["tried"][0]["verdict"] == "unknown"
    assert "prefix cache" in body["tried"][0]["said"]


@pytest.mark.parametrize("outcome", [STARTS, Outcome("unknown", "why", ())])
def test_only_a_refusal_is_fixed(outcome: Outcome) -> None:
    body, pool = answered(lambda v, r: outcome, COMMAND + " --fast")

    assert (body["fixes"], len(pool.asked)) == ([], 1)
    assert "search" not in body


def test_a_full_queue_ends_the_search_and_keeps_the_verdict() -> None:
    def rule(version: str, request: Request) -> Outcome:
        if "--fast" in request.arguments:
            return refusal("no --fast")
        raise TooMany("full")

    body, _ = answered(rule, COMMAND + " --fast")

    assert (body["verdict"], body["fixes"], body["search"]["ended"]) == ("fail", [], "the server is busy")


def test_options_that_cannot_be_read_leave_the_verdict() -> None:
    def broken(engine: Engine) -> Options:
        raise Broken("there are no options")

    body, _ = answered(lambda v, r: refusal("no"), COMMAND, options=broken)

    assert (body["verdict"], body["search"]["ended"]) == ("fail", "there are no options")


def test_what_is_lost_is_no_fix() -> None:
    body, _ = answered(
        lambda v, r: refusal("no --fast") if "--fast" in r.arguments else Lost("died"), COMMAND + " --fast"
    )

    assert (body["fixes"], body["tried"][0]["verdict"]) == ([], "unknown")
