"""Start every model of the catalogue, as a user would, and write down what became of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any

from app.check.catalogue import TRIALS, Model, Trial, TrialOutcome, read_trials
from app.check.service import CheckService, Question
from app.errors import ErrataError

LONGER = "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1"
# Tried in turn until the weights leave room for a pool.
MACHINES = (("h200-141gb", 1), ("h200-141gb", 4), ("h200-141gb", 8), ("gb300", 16), ("gb300", 32))
REASON_LIMIT = 240
HEADER = "# hub id\tengine\thardware\tgpus\targuments\toutcome\tstage\treason; written by scripts/adopt-models --try"


def command(model: Model, gpus: int, target: str = "", *, longer: bool = False) -> str:
    """Return the launch command that a trial runs."""
    words = [LONGER] if longer else []
    words += ["sglang serve --model-path", target or model.hub_id, "--tp", str(gpus)]
    if target:
        words += ["--speculative-algorithm", model.algorithm, "--speculative-draft-model-path", model.hub_id]
        if model.algorithm.startswith("EAGLE"):
            words += ["--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"]
    return " ".join([*words, "--trust-remote-code"])


async def trial(service: CheckService, model: Model, version: str, target: Trial | None = None) -> Trial:
    """Start one model on the first machine that it fits, and a draft where its target starts."""
    if model.role == "draft" and (target is None or target.outcome != "pass"):
        why = "its target does not start here" if target else "its target is not in the catalogue"
        return Trial(model.hub_id, version, "-", 0, "", "unknown", "", why)
    machines = MACHINES if target is None else ((target.hardware, target.gpus),)
    name = "" if target is None else target.hub_id
    result = None
    for hardware, gpus in machines:
        for longer in (False, True) if target else (False,):
            asked = command(model, gpus, name, longer=longer)
            result = await _ask(service, Question(asked, engine=version, hardware=hardware, gpus=gpus, fixes=False))
            if "context_length" not in _message(result):
                break
        if result is None or not _out_of_memory(result):
            break
    assert result is not None
    return _row(model, version, (hardware, gpus), asked, result)


async def _ask(service: CheckService, question: Question) -> Mapping[str, Any]:
    try:
        return await service.check(question)
    except ErrataError as error:
        return {"verdict": "unknown", "reason": f"{type(error).__name__}: {error.detail}"}


def _message(body: Mapping[str, Any]) -> str:
    error = body.get("error")
    return f"{error['exception']}: {error['message']}" if error else str(body.get("reason") or "")


def _out_of_memory(body: Mapping[str, Any]) -> bool:
    return body["verdict"] == "fail" and "memory" in _message(body).lower()


def _row(model: Model, version: str, machine: tuple[str, int], asked: str, body: Mapping[str, Any]) -> Trial:
    outcome: TrialOutcome = body["verdict"]
    stage = next((s["name"] for s in body.get("stages", ()) if s["outcome"] in ("fail", "unknown")), "")
    reason = "" if outcome == "pass" else " ".join(_message(body).split())[:REASON_LIMIT]
    return Trial(model.hub_id, version, *machine, asked, outcome, stage, reason)


async def trials(
    service: CheckService, models: Iterable[Model], version: str, known: Mapping[str, Trial]
) -> AsyncIterator[Trial]:
    """Yield a trial a model, targets first; `known` has earlier ones, for drafts whose target is not tried again."""
    done = dict(known)
    for model in sorted(models, key=lambda m: (m.role == "draft", m.hub_id.lower())):
        row = await trial(service, model, version, done.get(model.draft_of))
        done[model.hub_id] = row
        yield row


def write(path: Path, rows: Iterable[Trial]) -> None:
    """Write the table, sorted."""
    lines = ["\t".join(map(str, astuple(row))) for row in sorted(rows, key=lambda r: (r.hub_id.lower(), r.engine))]
    path.write_text("\n".join([HEADER, *lines]) + "\n")


def run(service: CheckService, folder: Path, version: str, names: tuple[str, ...] = ()) -> None:
    """Try the models (all, or those named and their drafts), print each and keep the table up to date."""
    table = {(row.hub_id, row.engine): row for row in read_trials(folder / TRIALS)}

    async def go() -> None:
        wanted = [m for m in service.catalogue if not names or m.hub_id in names or m.draft_of in names]
        known = {hub_id: row for (hub_id, engine), row in table.items() if engine == version}
        async for row in trials(service, wanted, version, known):
            print(f"{row.outcome:8}{row.hub_id}  {row.hardware} x {row.gpus}  {row.stage} {row.reason}", flush=True)
            table[row.hub_id, version] = row
            write(folder / TRIALS, table.values())
        await service.pool.close()

    asyncio.run(go())
