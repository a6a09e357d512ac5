"""How fast checks are, and whether a hostile one slows the others.

    python -m bench.check [--engine 0.5.18] [--models 60] [--seconds 10] [--rounds 30]

One run prints: time until an engine is ready, p50 and p95 of a check over the catalogue, checks a second with all
workers, the time of a check beside a hostile neighbour against an ordinary one, and what a fresh process would take.
Goals: docs/check.md, "Speed". Run it on an otherwise idle machine; the load at start and end is printed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from app.check import hardware
from app.check.catalogue import Model, catalogue
from app.check.install import Engines
from app.check.pool import CHECK_LIMITS, Bounds, Engine, SandboxPool
from app.check.protocol import Hardware, Lost, Outcome, Request
from app.check.service import CheckService, Question
from app.errors import ErrataError, OutOfTime
from app.settings import Settings

SEED = (
    "python -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct --attention-backend triton "
    "--cuda-graph-backend-prefill=disabled --enable-unified-memory"
)
ORDINARY = "sglang serve Qwen/Qwen3-8B"
HOSTILE = {
    "10^8 layers": ORDINARY + """ --json-model-override-args '{"num_hidden_layers": 100000000}'""",
    "host cache of 10^9 GB": ORDINARY + " --enable-hierarchical-cache --hicache-size 1000000000",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table. Exit code 1: a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default="")
    parser.add_argument("--models", type=int, default=0, help="how many of the catalogue; 0: all")
    parser.add_argument("--seconds", type=float, default=10.0, help="length of the throughput run")
    parser.add_argument("--rounds", type=int, default=30, help="checks beside each neighbour")
    options = parser.parse_args(arguments)
    return asyncio.run(_measured(options.engine, options.models, options.seconds, options.rounds))


async def _measured(version: str, models: int, seconds: float, rounds: int) -> int:
    chosen = Settings.from_environment()
    engines = Engines(chosen.cache_dir / "engines", version or chosen.check_engine)
    if not engines.installed():
        print("no engine is installed: errata engine install 0.5.18", file=sys.stderr)
        return 3
    bounds = Bounds(limits=replace(CHECK_LIMITS, wall_s=60.0, cpu_s=60))
    service = CheckService(SandboxPool(bounds), engines, catalogue(), hardware.profiles())
    rows = Table()
    print(f"SGLang {engines.default()}, {bounds.workers} workers, load {os.getloadavg()[0]:.1f}")
    rows.row("this machine: ten million additions in Python", f"{_reference():.2f} s")
    try:
        await _ready(service, rows)
        await _catalogue(service, rows, models)
        await _throughput(service, rows, seconds)
        await _neighbours(service, rows, rounds)
        await _spinner(service, rows, rounds)
    finally:
        await service.pool.close()
    print(f"load at the end {os.getloadavg()[0]:.1f}")
    return 1 if rows.missed else 0


def _reference() -> float:
    """Return the seconds of a plain loop: what the same machine takes differs by half from hour to hour."""
    began, total = time.perf_counter(), 0
    for number in range(10_000_000):
        total += number
    return time.perf_counter() - began


class Table:
    """Prints a row at a time."""

    def __init__(self) -> None:
        self.missed = 0

    def row(self, name: str, measured: str, goal: str = "", reached: bool | None = None) -> None:
        """Print one measurement."""
        state = "" if reached is None else "reached" if reached else "MISSED"
        self.missed += reached is False
        print(f"{name:<52} {measured:>24}  {goal:<12} {state}", flush=True)


async def timed(service: CheckService, command: str) -> tuple[float, Outcome | Lost | ErrataError]:
    """Return the milliseconds of one check as a caller sees it, past the cache of answers, and its outcome."""
    prepared = await service.prepare(Question(command))
    began = time.perf_counter()
    result: Outcome | Lost | ErrataError
    try:
        result = await service.pool.check(prepared.engine, prepared.request)
    except ErrataError as error:
        result = error
    return (time.perf_counter() - began) * 1000, result


async def _ready(service: CheckService, rows: Table) -> None:
    began = time.perf_counter()
    await timed(service, ORDINARY)
    total = time.perf_counter() - began
    (status,) = service.pool.status()
    rows.row("ready after start", f"{total:.1f} s", "<= 15 s", total <= 15)
    rows.row("memory of its process", f"{status.rss_bytes / (1 << 20):.0f} MiB")


def _commands(models: int) -> Iterator[str]:
    """Yield one plain launch for each target of the catalogue, on enough GPUs."""
    targets: list[Model] = [model for model in catalogue() if model.role == "target"]
    for model in targets[: models or None]:
        gpus = max((trial.gpus for trial in model.trials if trial.outcome == "pass"), default=1)
        yield f"sglang serve {model.hub_id} --trust-remote-code --tp {gpus}"


async def _catalogue(service: CheckService, rows: Table, models: int) -> None:
    taken: list[tuple[float, str]] = []
    outcomes: dict[str, int] = {}
    for command in _commands(models):
        ms, result = await timed(service, command)
        taken.append((ms, command))
        name = result.verdict if isinstance(result, Outcome) else "lost"
        outcomes[name] = outcomes.get(name, 0) + 1
    times = sorted(ms for ms, _ in taken)
    p50, p95 = statistics.median(times), times[int(0.95 * (len(times) - 1))]
    rows.row(f"a check, p50 of {len(times)} models", f"{p50:.0f} ms", "<= 120 ms", p50 <= 120)
    rows.row(f"a check, p95 of {len(times)} models", f"{p95:.0f} ms", "<= 400 ms", p95 <= 400)
    rows.row("their verdicts", ", ".join(f"{n} {v}" for v, n in sorted(outcomes.items())))
    for ms, command in sorted(taken, reverse=True)[:3]:
        rows.row(f"  slowest: {command[13:50]}", f"{ms:.0f} ms")
    argument, _ = await _median(service, ORDINARY + " --bogus")
    seed, _ = await _median(service, SEED)
    parents = list(service.pool._parents.values())
    imported = parents[0].report.import_s if parents[0].report else 0.0
    rows.row("an argument error", f"{argument:.0f} ms")
    rows.row("the seed's pool error", f"{seed:.0f} ms")
    rows.row("the same in a fresh process (import and check)", f"{imported + seed / 1000:.1f} s")
    rows.row("  ratio", f"{(imported * 1000 + seed) / seed:.0f} x")


async def _median(service: CheckService, command: str, rounds: int = 9) -> tuple[float, list[float]]:
    times = [(await timed(service, command))[0] for _ in range(rounds)]
    return statistics.median(times), times


async def _throughput(service: CheckService, rows: Table, seconds: float) -> None:
    deadline = time.perf_counter() + seconds
    began = time.perf_counter()

    async def worker() -> int:
        done = 0
        while time.perf_counter() < deadline:
            await timed(service, ORDINARY)
            done += 1
        return done

    counts = await asyncio.gather(*(worker() for _ in range(service.pool.bounds.workers)))
    rate = sum(counts) / (time.perf_counter() - began)
    rows.row(f"checks a second, {service.pool.bounds.workers} workers", f"{rate:.1f} /s", ">= 15 /s", rate >= 15)


async def _beside(run: Callable[[], Awaitable[object]], service: CheckService, rounds: int) -> float:
    """Return the median time of an ordinary check while `run` is repeated in the other worker."""
    stop = False

    async def neighbour() -> None:
        while not stop:
            await run()

    task = asyncio.create_task(neighbour())
    await asyncio.sleep(0.3)
    median, _ = await _median(service, ORDINARY, rounds)
    stop = True
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return median


async def _neighbours(service: CheckService, rows: Table, rounds: int) -> None:
    alone, _ = await _median(service, ORDINARY, rounds)
    ordinary = await _beside(lambda: timed(service, ORDINARY), service, rounds)
    rows.row("an ordinary check, alone", f"{alone:.0f} ms")
    rows.row("beside an ordinary one", f"{ordinary:.0f} ms")
    for name, command in HOSTILE.items():
        beside = await _beside(lambda command=command: timed(service, command), service, rounds)  # type: ignore[misc]
        _slowed(rows, name, beside, ordinary)


async def _spinner(service: CheckService, rows: Table, rounds: int) -> None:
    """The worst neighbour: code that spins in 32 threads, as the attack suite has it."""
    engine = Engine(
        "hostile", Path(sys.executable), Path("/usr/lib"), read=(Path("tests/attack").resolve(),),
        module="tests.attack.hostile_worker",
    )  # fmt: skip
    request = Request(("spin in 32 threads",), Hardware("cpu", "cpu"))

    refused: list[str] = []

    async def spin() -> None:
        try:
            await service.pool.check(engine, request)
        except OutOfTime:
            return
        except ErrataError as error:
            refused.append(error.detail)
            await asyncio.sleep(1.0)

    ordinary = await _beside(lambda: timed(service, ORDINARY), service, rounds)
    beside = await _beside(spin, service, rounds)
    if refused:
        rows.row("beside code that spins in 32 threads", f"did not run: {refused[0]}", "<= +10 %", reached=False)
    else:
        _slowed(rows, "code that spins in 32 threads", beside, ordinary)


def _slowed(rows: Table, name: str, beside: float, ordinary: float) -> None:
    slower = beside / ordinary - 1
    rows.row(f"beside {name}", f"{beside:.0f} ms ({slower:+.0%})", "<= +10 %", slower <= 0.10)


if __name__ == "__main__":
    sys.exit(main())
