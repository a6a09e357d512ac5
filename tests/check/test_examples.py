"""The runner of examples says what each half did, and the stored runs of the real records still hold."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.check import examples, hardware
from app.check.catalogue import catalogue
from app.check.examples import Happened, Pair, is_launch, run, said
from app.check.install import Engines
from app.check.pool import CHECK_LIMITS, Bounds, SandboxPool
from app.check.service import CheckService, Question
from app.errors import OutOfTime
from app.records import runs
from app.records.load import load_all
from app.records.runs import digest
from app.settings import Settings
from app.store import migrate, queries
from app.store.engine import Store
from app.web.checks import linker

ROOT = Path(__file__).parents[2]
SERVED = ("0.5.18", "0.5.23")
# A shared machine may be slow; what is compared is what happened, not when.
PATIENT = Bounds(workers=2, engines=3, wait_s=120.0, limits=replace(CHECK_LIMITS, wall_s=60.0, cpu_s=60))
OURS = "00000000000000aa"


def body(verdict: str, record: str = "", **error: Any) -> dict[str, Any]:
    found = {"id": record} if record else None
    raised = {"exception": "ValueError", "message": "no\n pool", "condition": None, "record": found} | error
    return {"verdict": verdict, "reason": "no such model", "error": raised if verdict == "fail" else None}


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (body("pass"), "pass"),
        (body("fail", OURS), "this error"),
        (body("fail", "00000000000000bb"), "another error 00000000000000bb: ValueError: no pool"),
        (body("fail", message="", condition="a > b"), "another error: ValueError: a > b"),
        (body("unknown"), "not decided: no such model"),
    ],
)
def test_an_answer_is_told_as_seen_from_the_record(answer: dict[str, Any], what: str) -> None:
    assert said(answer, OURS) == what


def test_what_is_told_stays_short() -> None:
    assert len(said(body("fail", message="x" * 9999), OURS)) == 160


def test_code_is_no_launch() -> None:
    assert is_launch("python -m sglang.launch_server --model-path Qwen/Qwen3-8B")
    assert not is_launch("import sglang\nsglang.Engine(model_path='x')")


class Scripted:
    """Answers by the command, and counts how many are asked at once."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.asked: list[Question] = []

    async def check(self, question: Question) -> dict[str, Any]:
        self.now += 1
        self.most = max(self.most, self.now)
        self.asked.append(question)
        await asyncio.sleep(0)
        self.now -= 1
        if question.command == "slow":
            raise OutOfTime("The check was stopped.")
        return body("fail", OURS) if question.command == "bad" else body("pass")


def test_pairs_are_run_by_engine_and_machine_and_not_more_at_once_than_asked() -> None:
    service, seen = Scripted(), []
    pairs = [Pair(OURS, "bad", "good", e, h) for e in ("0.5.19", "0.5.18") for h in ("h100", "b200")]

    asyncio.run(run(service, pairs, jobs=2, done=lambda pair, happened: seen.append((pair, happened))))

    assert {pair for pair, _ in seen} == set(pairs)
    assert {happened for _, happened in seen} == {Happened("this error", "pass")}
    assert service.most == 2
    assert [q.engine for q in service.asked] == ["0.5.18"] * 4 + ["0.5.19"] * 4


def test_a_check_that_takes_too_long_is_no_verdict() -> None:
    pair = Pair(OURS, "slow", "good", "0.5.18", "h100")

    happened = asyncio.run(examples.happened(Scripted(), pair))

    assert happened == Happened("not decided: The check was stopped.", "pass")


# -- the real thing -----------------------------------------------------------------------------------------


def stored_pairs() -> dict[Pair, Happened]:
    """Return every launch example of the curated records with what its stored run says, for the served engines."""
    stored = runs.load(ROOT / "data" / "runs" / "sglang.jsonl")
    found: dict[Pair, Happened] = {}
    for record in load_all(ROOT / "data" / "errors" / "sglang"):
        front, example = record.front, record.front.example
        for version in SERVED:
            made = stored.get((front.id, version))
            if made is not None and made.example == digest(example):
                pair = Pair(front.id, example.before, example.after, version, made.hardware)
                found[pair] = Happened(made.before, made.after)
    return found


def ran(store: Store, engines: Engines, pairs: list[Pair]) -> dict[Pair, Happened]:
    """Run pairs as `errata verify` does."""
    happened: dict[Pair, Happened] = {}

    async def all_of_them() -> None:
        service = CheckService(SandboxPool(PATIENT), engines, catalogue(), hardware.profiles(), link=linker(store))
        try:
            await run(service, pairs, jobs=2, done=happened.__setitem__)
        finally:
            await service.pool.close()

    asyncio.run(all_of_them())
    return happened


@pytest.fixture(scope="module")
def world() -> Iterator[tuple[Store, Engines]]:
    """The mined releases and the installed engines."""
    settings = Settings.from_environment({})
    engines = Engines(settings.cache_dir / "engines", settings.check_engine)
    store = Store(settings.database_url)
    there = {engine.version for engine in engines.installed()}
    if not there.issuperset(SERVED) or not migrate.exists(store) or not _has(store, SERVED):
        store.close()
        pytest.skip("needs `make data engines`")
    yield store, engines
    store.close()


def _has(store: Store, versions: tuple[str, ...]) -> bool:
    with store.reading() as connection:
        return {release.version for release in queries.releases(connection, package="sglang")}.issuperset(versions)


@pytest.fixture(scope="module")
def differences(world: tuple[Store, Engines]) -> dict[Pair, tuple[Happened, Happened]]:
    """Every pair whose run today differs from its stored run: what is stored and what happened."""
    wanted = stored_pairs()
    happened = ran(*world, list(wanted))
    return {pair: (wanted[pair], happened[pair]) for pair in wanted if happened[pair] != wanted[pair]}


@pytest.mark.timeout(1800)  # some 70 s on two free cores; the cores may not be free
@pytest.mark.corpus
@pytest.mark.engine
def test_every_stored_run_of_the_served_engines_still_happens(
    differences: dict[Pair, tuple[Happened, Happened]],
) -> None:
    assert len(stored_pairs()) >= 200
    assert {(p.record, p.engine): (str(was), str(now)) for p, (was, now) in differences.items()} == {}


@pytest.mark.corpus
@pytest.mark.engine
def test_swapped_halves_do_not_pass_for_the_stored_runs(world: tuple[Store, Engines]) -> None:
    proven = [pair for pair, happened in stored_pairs().items() if happened == Happened("this error", "pass")]
    swapped = [replace(pair, before=pair.after, after=pair.before) for pair in proven if pair.engine == SERVED[0]]
    sample = swapped[:: max(1, len(swapped) // 20)]

    happened = ran(*world, sample)

    assert len(sample) >= 20
    assert {str(what) for what in happened.values()} == {str(Happened("pass", "this error"))}
