"""How many refused launches get a fix, whether every shown fix really starts, and what a search takes.

    python -m bench.fixes [--limit N] [--every N] [--cases FILE] [--random N] [--seconds S] [--list] [--lines FILE]

Refused launches are those of `data/triggers/`, on their own release and on a later one (`--also`), the `before` of the
curated records' examples, and a file of reported commands (default ../shared/cases/preflight.jsonl). Each is asked with
`fixes` as a reader would; commands that start or are not decided are left out. `--random N` adds launches made by
chance from the option table, one an error. Then every shown fix is run again from its own text, in processes started
for that. Engines are started before the clock. Goals: docs/fixes.md.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from app.check import command, hardware
from app.check.catalogue import catalogue
from app.check.fixes import values
from app.check.fixes.arguments import given
from app.check.fixes.search import USUAL
from app.check.install import Engines
from app.check.options import Options
from app.check.pool import CHECK_LIMITS, Bounds, SandboxPool
from app.check.protocol import Option
from app.check.service import CheckService, Question
from app.errors import ErrataError
from app.records.load import load_all
from app.settings import Settings
from app.store.engine import Store
from app.web.checks import adviser, linker
from bench import cases

TRIGGERS = Path("data/triggers")
REPORTED = Path("../shared/cases/preflight.jsonl")
MODELS = (
    "Qwen/Qwen3-8B", "openai/gpt-oss-20b", "deepseek-ai/DeepSeek-V2-Lite", "Qwen/Qwen3-30B-A3B", "Qwen/Qwen3.5-9B",
    "meta-llama/Llama-3.1-8B-Instruct",
)  # fmt: skip
MACHINES = ("h100-80gb", "h200-141gb", "b200-180gb")
SEED = 1
BOUNDS = Bounds(engines=8, waiting=256, wait_s=120.0, limits=replace(CHECK_LIMITS, wall_s=60.0, cpu_s=60))


@dataclass(frozen=True, slots=True)
class Launch:
    """A command that may be refused."""

    source: str
    question: Question


@dataclass(slots=True)
class Row:
    """A refused launch and what its search found."""

    launch: Launch
    body: dict[str, Any]
    again: list[str] = field(default_factory=list)

    @property
    def fixes(self) -> list[dict[str, Any]]:
        """Return the shown fixes."""
        found: list[dict[str, Any]] = self.body["fixes"]
        return found

    @property
    def record(self) -> str:
        """Return the record, else the place, of the error."""
        error = self.body["error"]
        return str((error["record"] or {}).get("id") or f"{error['path']}:{error['line']}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table. Exit code 1: a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=0, help="launches at most; 0: all")
    parser.add_argument("--every", type=int, default=1, help="take every Nth launch")
    parser.add_argument("--cases", type=Path, default=REPORTED)
    parser.add_argument("--also", default="0.5.23", help="a release on which the triggers are asked too; empty: none")
    parser.add_argument("--random", type=int, default=0, help="launches made from the option table, seeded")
    parser.add_argument("--source", choices=("trigger", "curated", "reported", "random"), help="only these launches")
    parser.add_argument("--list", action="store_true", help="print each launch with its fixes")
    parser.add_argument("--seconds", type=float, default=USUAL.seconds, help="of one search; more on a busy machine")
    parser.add_argument("--lines", type=Path, help="write the answers to this file, one a line")
    options = parser.parse_args(arguments)
    found = itertools.chain(_launches(options.cases, options.also), _random(options.random))
    launches = [one for one in found if options.source in (None, one.source)][:: options.every]
    return asyncio.run(_measured(launches[: options.limit or None], options))


def _launches(reported: Path, also: str) -> Iterator[Launch]:
    for file in sorted(path for path in TRIGGERS.glob("sglang-*.jsonl") if not path.stem.endswith(".sites")):
        for line in file.read_text(encoding="utf-8").splitlines():
            one = json.loads(line)
            if one.get("verdict", "fail") == "fail":
                packages = one.get("packages") or {}
                question = Question(
                    one["command"], one["engine"], one["hardware"], one["gpus"], fixes=True, packages=packages
                )
                yield Launch("trigger", question)
                if also and also != one["engine"]:
                    yield Launch("trigger", replace(question, engine=also))
    for record in load_all(Settings.from_environment().data_dir / "errors" / "sglang"):
        example = record.front.example
        version = example.engines[0] if example.engines else ""
        yield Launch("curated", Question(example.before, version, example.hardware or "", fixes=True))
    if reported.exists():
        for case in cases.load(reported):
            version = cases.release(case.text("sglang_version"))
            machine = cases.machine(case.text("hardware"))
            yield Launch("reported", Question(case.text("command"), version, machine, fixes=True))


def _random(count: int) -> Iterator[Launch]:
    """Yield launches of a few models with one to four options of the default release's table, the same every time."""
    chance = random.Random(SEED)
    engines = _engines()
    engine = next((one for one in engines.installed() if one.version == engines.default()), None)
    if not count or engine is None:
        return
    table = [
        one for one in Options.of(engine) if not one.deprecated and one.dest not in ("model_path", "help", "config")
    ]
    for _ in range(count):
        words = [word for one in chance.sample(table, chance.randint(1, 4)) for word in _written(one, chance)]
        line = " ".join(("sglang serve --model-path", chance.choice(MODELS), *words))
        yield Launch("random", Question(line, engine.version, chance.choice(MACHINES), fixes=True))


def _written(option: Option, chance: random.Random) -> tuple[str, ...]:
    """Return the words that give an option some value, none for what takes text."""
    if option.nargs == "0":
        return option.names[:1]
    if option.choices:
        return option.names[0], chance.choice(option.choices)
    if values.is_number(option):
        some = (0.1, 0.5, 0.95, 1.5) if "float" in option.type else (0, 1, 2, 3, 4, 8, 16, 64, -1, 1000)
        return option.names[0], str(chance.choice(some))
    return ()


def _service(seconds: float) -> CheckService:
    settings = Settings.from_environment()
    store = Store(settings.database_url)
    budget = replace(USUAL, at_once=BOUNDS.workers, seconds=seconds)
    return CheckService(
        SandboxPool(BOUNDS), Engines(settings.cache_dir / "engines", settings.check_engine), catalogue(),
        hardware.profiles(), link=linker(store), advise=adviser(store), budget=budget,
    )  # fmt: skip


async def _measured(launches: list[Launch], options: argparse.Namespace) -> int:
    print(f"{len(launches)} launches, {BOUNDS.workers} workers, load {os.getloadavg()[0]:.1f}", flush=True)
    service = _service(options.seconds)
    rows: list[Row] = []
    met: set[tuple[str, int]] = set()
    try:
        await _warm(service)
        for place, launch in enumerate(launches, 1):
            if (row := await _asked(service, launch, met)) is not None:
                rows.append(row)
                if options.lines is not None:
                    with options.lines.open("a", encoding="utf-8") as file:
                        file.write(json.dumps({"source": launch.source, **row.body}) + "\n")
            if place % 20 == 0:
                print(f"{place} asked, {len(rows)} refused, {sum(not r.fixes for r in rows)} without a fix", flush=True)
    finally:
        await service.pool.close()
    fresh = _service(options.seconds)
    try:
        at_once = asyncio.Semaphore(BOUNDS.workers)
        await asyncio.gather(*(_run_again(fresh, row, at_once) for row in rows))
    finally:
        await fresh.pool.close()
    if options.list:
        _print_rows(rows)
    return _print_table(rows)


async def _warm(service: CheckService) -> None:
    """Start every release, as a server does that has run for a while."""
    began = time.perf_counter()
    usual = service.profiles.find(hardware.DEFAULT).device
    for engine in service.engines.installed():
        await service.pool.warm(engine, usual)
    print(f"engines ready after {time.perf_counter() - began:.0f} s", flush=True)


async def _asked(service: CheckService, launch: Launch, met: set[tuple[str, int]]) -> Row | None:
    """Return the row of a refused launch; None where it starts, is not decided or cannot be asked.

    Shape: `met` holds the places of errors that launches made by chance have met; each is asked once.
    """
    question = launch.question
    installed = [engine.version for engine in service.engines.installed()]
    if question.engine not in installed:
        question = replace(question, engine="")
    try:
        needed = (await service.prepare(replace(question, gpus=None))).request.gpus
        if question.gpus == needed:  # then nobody said how many there are
            question = replace(question, gpus=None)
        if launch.source == "random":  # most of them start, and many meet the same error
            body = await service.check(replace(question, fixes=False))
            place = (body["error"]["path"], body["error"]["line"]) if body["verdict"] == "fail" else None
            if place is None or place in met:
                return None
            met.add(place)
        body = await service.check(question)
    except ErrataError:
        return None
    return Row(replace(launch, question=question), body) if body["verdict"] == "fail" else None


async def _run_again(service: CheckService, row: Row, at_once: asyncio.Semaphore) -> None:
    for fix in row.fixes:
        asked = row.launch.question
        again = replace(
            asked,
            command=fix["command"],
            engine=fix.get("engine", row.body["engine"]["version"]),
            hardware=fix.get("hardware", row.body["hardware"]["name"]),
            fixes=False,
        )
        async with at_once:
            body = await service.check(again)
        row.again.append(body["verdict"])


def _kept(service_options: Options, row: Row) -> tuple[int, int]:
    """Return how many options beside the model a launch gives, and how many of them its first fix still gives."""
    settings = _settings(service_options, row.body["command"])
    after = _settings(service_options, row.fixes[0]["command"])
    return len(settings), len(settings & after)


def _settings(options: Options, text: str) -> set[str]:
    return {one.key for one in given(command.read(text).arguments, options)} - {"model_path"}


def _print_rows(rows: Sequence[Row]) -> None:
    for row in rows:
        error = row.body["error"]
        print(f"\n{row.launch.source} {row.record} on {row.body['engine']['version']}, {row.body['hardware']['name']}")
        print(f"  {row.body['command']}")
        print(f"  {error['exception']}: {(error['message'] or error['condition'] or '')[:160]}")
        for fix, again in zip(row.fixes, row.again, strict=True):
            print(f"  + {fix['edit']} (again: {again})")
        if not row.fixes:
            for tried in row.body["tried"]:
                print(f"  - {tried['edit']} -> {tried['verdict']} {tried['said'][:120]}")
        print(f"  {row.body['search']}")


def _print_table(rows: Sequence[Row]) -> int:
    if not rows:
        print("no launch was refused", file=sys.stderr)
        return 3
    fixed = [row for row in rows if row.fixes]
    again = [verdict for row in rows for verdict in row.again]
    checks = [row.body["search"]["checks"] for row in rows]
    times = sorted(row.body["search"]["ms"] for row in rows)
    installed = {engine.version: engine for engine in _engines().installed()}
    kept = [_kept(Options.of(installed[row.body["engine"]["version"]]), row) for row in fixed]
    several = [pair for pair in kept if pair[0] >= 2]
    p95 = times[min(len(times) - 1, int(len(times) * 0.95))]
    missed = 0

    def line(name: str, value: str, goal: str = "", reached: bool | None = None) -> None:
        nonlocal missed
        missed += reached is False
        print(f"{name:<58} {value:>18}  {goal:<10} {'' if reached is None else 'reached' if reached else 'MISSED'}")

    records = {row.record for row in rows}
    line("refused launches", str(len(rows)), ">= 300", len(rows) >= 300)
    line("distinct records", str(len(records)), ">= 150", len(records) >= 150)
    line("with a fix", _share(len(fixed), len(rows)), ">= 95 %", len(fixed) >= 0.95 * len(rows))
    line("records with a fix", _share(len({row.record for row in fixed}), len(records)))
    line("shown fixes that start again in fresh processes", _share(again.count("pass"), len(again)), "100 %",
         again.count("pass") == len(again))  # fmt: skip
    line("first fix keeps something of two or more options", _share(sum(k > 0 for _, k in several), len(several)),
         ">= 90 %", sum(k > 0 for _, k in several) >= 0.9 * len(several))  # fmt: skip
    line("first fix drops no option at all", _share(sum(n == k for n, k in kept), len(kept)))
    line("checks of a search, median", f"{statistics.median(checks):g}", "<= 8", statistics.median(checks) <= 8)
    line("time of a search, p50", f"{statistics.median(times):.0f} ms")
    line("time of a search, p95", f"{p95:.0f} ms", "<= 2000 ms", p95 <= 2000)
    print(f"load at the end {os.getloadavg()[0]:.1f}")
    return 1 if missed else 0


def _engines() -> Engines:
    settings = Settings.from_environment()
    return Engines(settings.cache_dir / "engines", settings.check_engine)


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({100 * part / max(whole, 1):.1f} %)"


if __name__ == "__main__":
    sys.exit(main())
