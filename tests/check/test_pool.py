"""The pool with a process that speaks the protocol, forks and confines like a real engine, but runs no SGLang."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from app.check.pool import Bounds, Engine, SandboxPool
from app.check.protocol import Hardware, Limits, Lost, Outcome, Request, Stage
from app.errors import ErrataError, OutOfTime, TooMany, Unavailable

HARDWARE = Hardware("h100-80gb", "nvidia", capability=(9, 0))
ENGINE = Engine("1.0", Path(sys.executable), Path("/usr/lib"), module="tests.check.fake_engine")
BOUNDS = Bounds(workers=2, limits=Limits(wall_s=5.0))
Body = Callable[[SandboxPool], Awaitable[None]]


def with_pool(body: Body, bounds: Bounds = BOUNDS) -> Path:
    """Run `body` with a pool, close it, and return the folder it had."""

    async def run() -> Path:
        pool = SandboxPool(bounds)
        try:
            await asyncio.wait_for(body(pool), 300)
        finally:
            await pool.close()
        return pool.folder

    return asyncio.run(run())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


def ask(*arguments: str, hardware: Hardware = HARDWARE) -> Request:
    return Request(arguments, hardware)


def test_an_outcome_comes_back_with_its_stages() -> None:
    stages: list[Stage] = []

    async def body(pool: SandboxPool) -> None:
        answer = await pool.check(ENGINE, ask("fine"), stages.append)

        assert isinstance(answer, Outcome)
        assert answer.resolved["arguments"] == ["fine"]

    with_pool(body)

    assert [stage.name for stage in stages] == ["arguments"]


def test_the_engine_gets_nothing_of_our_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ERRATA_SECRET", "hunter2")

    async def body(pool: SandboxPool) -> None:
        answer = await pool.check(ENGINE, ask("fine"))

        assert isinstance(answer, Outcome)
        assert "ERRATA_SECRET" not in answer.resolved["environment"]
        assert set(answer.resolved["environment"]) <= {
            *("PATH", "HOME", "TMPDIR", "LANG", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED"),
            *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "LC_CTYPE"),
        }

    with_pool(body)


@pytest.mark.parametrize(
    ("what", "reason"), [("die", "died"), ("nonsense", "protocol"), ("flood", "output"), ("kill the parent", "died")]
)
def test_what_is_no_outcome_is_lost_and_the_next_check_works(what: str, reason: str) -> None:
    async def body(pool: SandboxPool) -> None:
        lost = await pool.check(ENGINE, ask(what))
        after = await pool.check(ENGINE, ask("fine"))

        assert isinstance(lost, Lost)
        assert lost.reason == reason
        assert isinstance(after, Outcome)
        assert pool.lost == {reason: 1}

    with_pool(body)


def test_a_parent_that_speaks_nonsense_is_replaced() -> None:
    async def body(pool: SandboxPool) -> None:
        lost = await pool.check(ENGINE, ask("parent nonsense"))
        after = await pool.check(ENGINE, ask("fine"))

        assert isinstance(lost, Lost)
        assert isinstance(after, Outcome)

    with_pool(body)


def test_a_check_that_waited_for_a_parent_that_died_gets_another() -> None:
    async def body(pool: SandboxPool) -> None:
        first = asyncio.create_task(pool.check(ENGINE, ask("sleep:60")))
        await until(lambda: any(s.jobs for s in pool.status()))
        second = asyncio.create_task(pool.check(ENGINE, ask("fine")))
        await until(lambda: pool.waiting == 1)
        next(iter(pool._parents.values())).kill()

        assert await first == Lost("died", "the engine's process ended")
        assert isinstance(await second, Outcome)

    with_pool(body, replace(BOUNDS, workers=1))


def test_a_check_over_its_time_is_out_of_time() -> None:
    async def body(pool: SandboxPool) -> None:
        with pytest.raises(OutOfTime):
            await pool.check(ENGINE, ask("sleep:60"))
        assert isinstance(await pool.check(ENGINE, ask("fine")), Outcome)

    with_pool(body, replace(BOUNDS, limits=Limits(wall_s=1.0)))


def test_a_full_queue_refuses() -> None:
    async def body(pool: SandboxPool) -> None:
        running = [asyncio.create_task(pool.check(ENGINE, ask("sleep:60")))]
        await until(lambda: any(s.jobs for s in pool.status()))
        running += [asyncio.create_task(pool.check(ENGINE, ask("fine"))) for _ in range(3)]
        await until(lambda: pool.waiting == 3)

        with pytest.raises(TooMany):
            await pool.check(ENGINE, ask("fine"))
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        assert isinstance(await pool.check(ENGINE, ask("fine")), Outcome)

    with_pool(body, replace(BOUNDS, workers=1, waiting=3))


def test_waiting_too_long_for_a_worker_is_out_of_time() -> None:
    async def body(pool: SandboxPool) -> None:
        running = asyncio.create_task(pool.check(ENGINE, ask("sleep:60")))
        await until(lambda: any(s.jobs for s in pool.status()))

        with pytest.raises(OutOfTime):
            await pool.check(ENGINE, ask("fine"))
        running.cancel()

    with_pool(body, replace(BOUNDS, workers=1, wait_s=0.2))


def test_a_cancelled_check_frees_its_worker() -> None:
    async def body(pool: SandboxPool) -> None:
        running = asyncio.create_task(pool.check(ENGINE, ask("sleep:60")))
        await until(lambda: any(s.jobs for s in pool.status()))
        running.cancel()

        assert isinstance(await pool.check(ENGINE, ask("fine")), Outcome)
        assert [status.jobs for status in pool.status()] == [0]

    with_pool(body, replace(BOUNDS, workers=1))


@pytest.mark.parametrize("version", ["broken", "dead"])
def test_an_engine_that_does_not_start_is_unavailable(version: str) -> None:
    async def body(pool: SandboxPool) -> None:
        for _ in range(5):  # the last ones are refused without another start
            with pytest.raises(Unavailable):
                await pool.check(replace(ENGINE, version=version), ask("fine"))

    with_pool(body)


def test_a_missing_python_is_unavailable() -> None:
    async def body(pool: SandboxPool) -> None:
        with pytest.raises(Unavailable):
            await pool.check(replace(ENGINE, python=Path("/nonexistent/bin/python")), ask("fine"))

    with_pool(body)


def test_an_engine_that_is_not_ready_in_time() -> None:
    async def body(pool: SandboxPool) -> None:
        with pytest.raises((OutOfTime, Unavailable)):
            await pool.check(replace(ENGINE, version="slow"), ask("fine"))

    with_pool(body, replace(BOUNDS, start_s=0.5))


def test_warming_up_is_told() -> None:
    states: list[str] = []

    async def body(pool: SandboxPool) -> None:
        await pool.check(ENGINE, ask("fine"), None, states.append)
        await pool.check(ENGINE, ask("fine"), None, states.append)

    with_pool(body)

    assert states == ["warming up"]


def test_engines_longest_unused_make_room() -> None:
    cpu = Hardware("cpu", "cpu")

    async def body(pool: SandboxPool) -> None:
        await pool.check(ENGINE, ask("fine"))
        await pool.check(ENGINE, ask("fine", hardware=cpu))
        await pool.check(replace(ENGINE, version="2.0"), ask("fine"))

        assert [(s.version, s.group, s.state) for s in pool.status()] == [
            ("1.0", "cpu", "ready"),
            ("2.0", "sm90", "ready"),
        ]

    with_pool(body, replace(BOUNDS, engines=2))


def test_nothing_is_left_behind() -> None:
    pids: list[int] = []

    async def body(pool: SandboxPool) -> None:
        await pool.check(ENGINE, ask("write:something"))
        assert list(pool.folder.iterdir()) == []
        pids.extend(p.report.pid for p in pool._parents.values() if p.report)

    folder = with_pool(body)

    assert not folder.exists()
    assert pids
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_check_that_cannot_be_confined_is_not_run() -> None:
    async def body(pool: SandboxPool) -> None:
        policy = pool.policy
        pool.policy = lambda *a, **k: replace(policy(*a, **k), cpus=(4095,))  # type: ignore[method-assign]
        with pytest.raises(Unavailable, match="cannot be confined"):
            await pool.check(ENGINE, ask("fine"))

    with_pool(body)


def test_every_failure_is_an_error_of_ours() -> None:
    """Whatever happens, a caller sees an outcome, a loss or an `ErrataError`."""

    async def body(pool: SandboxPool) -> None:
        what = ["fine", "die", "nonsense", "flood", "sleep:60", "kill the parent", "parent nonsense", "fine"]
        answers = await asyncio.gather(*(pool.check(ENGINE, ask(w)) for w in what), return_exceptions=True)
        assert all(isinstance(answer, Outcome | Lost | ErrataError) for answer in answers)

    with_pool(body, replace(BOUNDS, limits=Limits(wall_s=1.0)))
