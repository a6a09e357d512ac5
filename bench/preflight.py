"""Compare what a check says of real commands with what happened to them (docs/preflight.md).

    python -m bench.preflight [CASES] [--engine VERSION] [--all]

CASES is a JSON-lines file (default ../shared/cases/preflight.jsonl). Scored are the cases whose command was taken from
a report (`from_issue_minimized`); `--all` prints the others too. A case runs on the release nearest to the one
reported. What cannot be decided (a model whose configuration is not known) is counted apart.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rapidfuzz import fuzz

from app.check.service import CheckService, Question
from app.errors import ErrataError
from bench import cases
from bench.cases import Case
from bench.checking import service

DEFAULT = Path("../shared/cases/preflight.jsonl")
UNSAID = "h200-141gb"  # a report that names no machine runs on one that holds the models people serve with 8 GPUs
SCORED = "from_issue_minimized"
REFUSED = {"argparse_error", "args_error", "args_error_new", "backend_init_error", "model_build_error", "pool_error"}
ACCEPTED = {"starts", "accepted_then_crash", "no_error_hang", "runtime_error"}
SAME_MESSAGE = 80.0
Agreement = Literal["agrees", "other error", "differs", "undecided", "no expectation"]


@dataclass(frozen=True, slots=True)
class Row:
    """One command: what was expected, what a check says, and whether they agree."""

    case: str
    engine: str
    hardware: str
    expected: str
    verdict: str
    said: str
    agreement: Agreement


def expected(case: Case) -> str:
    """Return "fail", "pass" or "" for a case that says too little."""
    kind = case.text("outcome_class")
    return "fail" if kind in REFUSED else "pass" if kind in ACCEPTED else ""


async def compare(checks: CheckService, case: Case, engine: str) -> Row:
    """Run one command."""
    version = engine or cases.release(case.text("sglang_version")) or checks.engines.default()
    hardware = cases.machine(case.text("hardware")) or UNSAID
    gpus = _gpus(case)
    try:
        body: Mapping[str, Any] = await checks.check(
            Question(
                case.text("command"),
                engine=version,
                hardware=hardware,
                gpus=gpus,
                fixes=False,
            )
        )
    except ErrataError as error:
        body = {"verdict": "unknown", "reason": f"{type(error).__name__}: {error.detail}"}
    raised = body.get("error")
    said = f"{raised['exception']}: {raised['message']}" if raised else str(body.get("reason") or "")
    return Row(
        case.id,
        version,
        f"{hardware} x {gpus or 'needed'}",
        expected(case),
        body["verdict"],
        said,
        _agrees(case, body, said),
    )


def _gpus(case: Case) -> int | None:
    """Return the GPUs of one node that a case names."""
    found = re.search(r"(?:x|nodes x)\s*(\d+) GPUs|(\d+)x ", case.text("hardware"))
    return int(found[1] or found[2]) if found else None


def _agrees(case: Case, body: Mapping[str, Any], said: str) -> Agreement:
    if body["verdict"] == "unknown":
        return "undecided"
    wanted = expected(case)
    if not wanted:
        return "no expectation"
    if body["verdict"] != wanted:
        return "differs"
    if wanted == "pass" or case.text("outcome_class") == "args_error_new":
        return "agrees"
    return "agrees" if same_error(case.text("reported_outcome"), said) else "other error"


def same_error(reported: str, said: str) -> bool:
    """Say whether an error is the reported one: its words without numbers, quotes and dots, in the report's words."""
    return fuzz.partial_ratio(_words(said)[:200], _words(reported)) >= SAME_MESSAGE or _tail(reported) in _words(said)


def _words(text: str) -> str:
    return " ".join(re.findall(r"[a-z_]{2,}|--[a-z-]+", text.lower()))


def _tail(reported: str) -> str:
    """Return the words of a report after the name of its exception."""
    return _words(re.split(r"(?:Error|Exception|error):", reported)[-1])[:120] or "\0"


def shown(row: Row) -> str:
    """Return a row of the table."""
    said = " ".join(row.said.split())[:160].replace("|", "\\|")
    cells = (row.case, row.engine, row.hardware, row.expected or "-", row.verdict, row.agreement, said)
    return f"| {' | '.join(cells)} |"


def _order(case: Case) -> tuple[str, str, str]:
    """Sort by release and kind of machine, so that few engines are started."""
    return cases.release(case.text("sglang_version")), cases.machine(case.text("hardware")), case.id


async def main(path: Path, engine: str, *, everything: bool, only: str) -> None:
    """Print the table and the count."""
    checks = service()
    rows = []
    print("| case | engine | hardware | happened | check | | says |\n|---|---|---|---|---|---|---|", flush=True)
    try:
        for case in sorted(cases.load(path), key=_order):
            if only in case.id and (everything or case.text("command_provenance") == SCORED):
                rows.append(await compare(checks, case, engine))
                print(shown(rows[-1]), flush=True)
    finally:
        await checks.pool.close()
    counts = Counter(row.agreement for row in rows)
    decided = counts["agrees"] + counts["other error"] + counts["differs"]
    print(f"\n{counts['agrees']} of {decided} decided agree; {dict(counts)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="?", type=Path, default=DEFAULT)
    parser.add_argument("--engine", default="", help="run every case on this release")
    parser.add_argument("--all", action="store_true", help="print the cases that are not scored too")
    parser.add_argument("--only", default="", help="only cases whose id holds this")
    given = parser.parse_args()
    asyncio.run(main(given.cases, given.engine, everything=given.all, only=given.only))
