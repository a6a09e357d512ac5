"""Compare the tokens that a check gives with what real start-up logs say (docs/capacity.md).

    python -m bench.capacity [CASES] [--engine VERSION]

CASES is a JSON-lines file (default ../shared/cases/capacity.jsonl). Every case is run through the real check
path on the release nearest to it and put into a group by what it can test; a row that calibrated a number of
data/hardware.toml is printed but not scored. Nothing here is fitted: change data, never this file, to change an error.
"""

from __future__ import annotations

import argparse
import asyncio
import shlex
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from app.check import capacity
from app.check.protocol import Lost, Outcome, Pools
from app.check.service import CheckService, Prepared, Question
from app.errors import ErrataError
from bench import cases
from bench.cases import Case
from bench.checking import service

GIB = 1 << 30
DEFAULT = Path("../shared/cases/capacity.jsonl")
# The launches that the reserves of data/hardware.toml were solved from: model and ranks.
CALIBRATED_ON = {
    ("mistralai/Mixtral-8x7B-Instruct-v0.1", "tp 2"),
    ("openai/gpt-oss-120b", "bf16"),
    ("MiniMaxAI/MiniMax-M2.5", "tp 8"),
}
ANY = "h200-141gb"  # the bytes of a token do not depend on the machine
TARGETS = {"one GPU": (0.3, 1.0), "several GPUs": (0.5, 3.0), "the log's own free memory": (0.2, None)}
BYTES = "bytes per token"


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison. `error` is per cent, signed; `group` is "" where it is not scored, and `why` says so."""

    case: str
    group: str
    predicted: float | None = None
    logged: float | None = None
    why: str = ""
    low: int | None = None
    high: int | None = None

    @property
    def error(self) -> float | None:
        """Return the error in per cent."""
        return None if not self.predicted or not self.logged else 100 * (self.predicted / self.logged - 1)


def launch(case: Case) -> str:
    """Return the command of a case; one that only lists its settings is written out as flags.

    SGLang's scheduled tests set SGLANG_IS_IN_CI, which lets a draft's context be shorter than its target's.
    """
    command = case.text("command")
    if command.startswith(("sglang", "python")):
        return f"SGLANG_IS_IN_CI=true {command}" if "scheduled CI" in case.text("sglang_version") else command
    flags = []
    for name, value in (case.fields.get("server_args") or {}).items():
        option = "--" + name.replace("_", "-")
        if value is True:
            flags.append(option)
        elif value not in (None, False):
            flags += [option, str(value)]
    return shlex.join(["sglang", "serve", "--model-path", case.text("model").split(" ")[0].strip(","), *flags])


def calibrated(case: Case, prepared: Prepared) -> bool:
    """Say whether the reserve was solved from this launch."""
    ranks = f"tp {prepared.launch.option('--tp', '--tp-size', '--tensor-parallel-size')}"
    model = prepared.launch.option("--model-path", "--model") or ""
    return any(model == name and (mark == ranks or mark in case.id) for name, mark in CALIBRATED_ON)


async def compare(checks: CheckService, case: Case, engine: str) -> list[Row]:
    """Run one case and return its comparisons."""
    log = case.fields["log"]
    tokens = log.get("kv_tokens") or log.get("max_total_num_tokens")
    if case.fields.get("command") is None and not case.fields.get("server_args"):
        return [Row(case.id, "", why="the log's flags are not known")]
    version = engine or cases.release(case.text("sglang_version"), case.text("note"))
    hardware = cases.machine(case.text("gpu"))
    free = log.get("avail_mem_before_load_gb")
    command = launch(case)
    question = Question(
        command, engine=version, hardware=hardware or ANY, gpus=case.fields["gpus"], fixes=False,
    )  # fmt: skip
    try:
        prepared = await checks.prepare(question)
        outcome, _ = await checks.run(prepared)
        own = await _with_free(checks, question, free) if free else None
    except ErrataError as error:
        return [Row(case.id, "", why=f"{type(error).__name__}: {error.detail}")]
    if prepared.unknown:
        return [Row(case.id, "", why=prepared.unknown)]
    target = _target(outcome)
    if target is None or isinstance(outcome, Lost):
        return [Row(case.id, "", why=f"no pools: {_said(outcome)}")]
    rows = [*_bytes(case, target, "" if prepared.profile.device.vendor == "amd" else BYTES)]
    if not hardware:
        rows.append(Row(case.id, "", logged=tokens, why=f"no profile of this machine: {case.text('gpu')}"))
    elif tokens:
        rows.append(_end_to_end(case, prepared, outcome, target, tokens))
        if own is not None and (pool := _target(own)) is not None:
            rows.append(_own(case, pool, tokens))
    return rows


async def _with_free(checks: CheckService, question: Question, free_gb: float) -> Outcome | Lost:
    from dataclasses import replace

    asked = replace(question, free_bytes=round(free_gb * GIB), reserve_bytes=0)
    outcome, _ = await checks.run(await checks.prepare(asked))
    return outcome


def _bytes(case: Case, target: Pools, group: str) -> Iterable[Row]:
    """Compare the bytes of one token, where the log gives the size of the pool. Rounded to 0.01 GB in the log.

    AMD's are printed and not scored: its answers say "not calibrated".
    """
    log = case.fields["log"]
    if not log.get("kv_gb") or not log.get("kv_tokens") or target.bytes_per_token is None:
        return
    page = 1 + max(0, round(target.kv_bytes / target.bytes_per_token) - target.tokens)
    logged = log["kv_gb"] * GIB / log["kv_tokens"]
    why = "" if group else "not calibrated: no log of an AMD machine and of a release that can be run"
    yield Row(case.id, group, target.kv_bytes / (target.tokens + page - 1), logged, why)


def _end_to_end(case: Case, prepared: Prepared, outcome: Outcome, target: Pools, tokens: int) -> Row:
    """Compare the tokens of the same flags on the same kind of machine."""
    budget = outcome.budget
    span = (
        capacity.token_range(target, budget, prepared.request, free_is_measured=prepared.profile.free_is_measured)
        if budget
        else None
    )
    low, high = (span.low, span.high) if span else (None, None)
    group = "one GPU" if case.fields["gpus"] == 1 else "several GPUs"
    why = _unscored(case, prepared, target)
    return Row(case.id, "" if why else group, target.tokens, tokens, why, low, high)


def _own(case: Case, target: Pools, tokens: int) -> Row:
    fields = case.fields
    why = "" if fields.get("command") else "the flags are rebuilt from the log's settings"
    old = cases.is_old(case.text("sglang_version"), case.text("note"))
    if old and "mem_fraction_static" not in (fields.get("server_args") or {}):
        why = "an old release, whose default fraction is not known"
    group = "the log's own free memory"
    return Row(case.id, "" if why.startswith("an old") else group, target.tokens, tokens, why)


def _unscored(case: Case, prepared: Prepared, target: Pools) -> str:
    """Return why an end-to-end comparison is printed and not scored, or ""."""
    if calibrated(case, prepared):
        return "calibrated the reserve"
    if said := capacity.uncalibrated(target, prepared.request):
        return "not calibrated: " + said[0]
    if cases.is_old(case.text("sglang_version"), case.text("note")):
        return "from a release before the oldest that can be run"
    return ""


def _target(outcome: Outcome | Lost) -> Pools | None:
    if isinstance(outcome, Lost):
        return None
    return min((p for p in outcome.pools if p.role == "target"), key=lambda p: p.tokens, default=None)


def _said(outcome: Outcome | Lost) -> str:
    if isinstance(outcome, Lost):
        return f"{outcome.reason} {outcome.detail}"
    return f"{outcome.error.exception}: {outcome.error.message[:120]}" if outcome.error else outcome.basis


def summary(rows: list[Row]) -> list[str]:
    """Return a line a group: how many, median and largest absolute error, and whether the goal is met."""
    lines = []
    for group, (median_goal, largest_goal) in {BYTES: (None, 0.1), **TARGETS}.items():
        errors = [abs(row.error) for row in rows if row.group == group and row.error is not None]
        if not errors:
            lines.append(f"{group}: no row")
            continue
        median, largest = statistics.median(errors), max(errors)
        met = (median_goal is None or median <= median_goal) and (largest_goal is None or largest <= largest_goal)
        goal = ", ".join(
            f"{name} <= {limit} %" for name, limit in (("median", median_goal), ("largest", largest_goal)) if limit
        )
        verdict = f"goal {goal}: {'met' if met else 'MISSED'}"
        lines.append(f"{group}: n={len(errors)}, median {median:.2f} %, largest {largest:.2f} % ({verdict})")
    ranged = [row for row in rows if row.group in TARGETS and row.low is not None and row.logged is not None]
    inside = [row for row in ranged if (row.low or 0) <= (row.logged or 0) <= (row.high or 0)]
    lines.append(f"logs within the range given: {len(inside)} of {len(ranged)}")
    return lines


def shown(row: Row) -> str:
    """Return a row of the table."""
    error = "" if row.error is None else f"{row.error:+.2f} %"
    span = "" if row.low is None else f"{row.low:,}..{row.high:,}"
    numbers = ("-" if value is None else f"{value:,.0f}" for value in (row.predicted, row.logged))
    cells = (row.case, row.group or "(not scored)", *numbers, error, span, row.why)
    return f"| {' | '.join(cells)} |"


def _order(case: Case) -> tuple[str, str, str]:
    """Sort by release and kind of machine, so that few engines are started."""
    return cases.release(case.text("sglang_version"), case.text("note")), cases.machine(case.text("gpu")), case.id


async def main(path: Path, engine: str, only: str) -> None:
    """Print the table and the summary."""
    checks = service()
    rows: list[Row] = []
    print("| case | group | predicted | logged | error | range | note |\n|---|---|---|---|---|---|---|", flush=True)
    try:
        for case in sorted(cases.load(path), key=_order):
            if only in case.id:
                found = await compare(checks, case, engine)
                rows += found
                print("\n".join(map(shown, found)), flush=True)
    finally:
        await checks.pool.close()
    print()
    print("\n".join(summary(rows)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="?", type=Path, default=DEFAULT)
    parser.add_argument("--engine", default="", help="run every case on this release")
    parser.add_argument("--only", default="", help="only cases whose id holds this")
    arguments = parser.parse_args()
    asyncio.run(main(arguments.cases, arguments.engine, arguments.only))
