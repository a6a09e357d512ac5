"""`errata verify`: run the examples of curated records and store what happened."""

from __future__ import annotations

import asyncio
import datetime
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli import options
from app.cli.options import Format, FormatOption
from app.errors import BadInput

if TYPE_CHECKING:
    from app.check.examples import Happened, Pair
    from app.records.model import CuratedRecord
    from app.records.runs import Run
    from app.store.examples import Life
    from app.web.checks import Checks

PACKAGE = "sglang"
SAVED_EVERY = 25


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(verify)


def verify(
    record_ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Curated records; none: all of them.")
    ] = None,
    *,
    engine: Annotated[str, typer.Option(help="A release, or all that are installed.")] = "all",
    jobs: Annotated[int, typer.Option(min=1, max=16, help="Pairs at once.")] = max(1, min(8, os.cpu_count() or 1)),
    again: Annotated[bool, typer.Option("--again", help="Also what was run already.")] = False,
    format_: FormatOption = Format.TEXT,
) -> int:
    """Run both halves of the examples on every installed release that has the error, and store what happened.

    What was run already is not run again, so an interrupted run goes on where it stopped. Exit code 1: an example
    does not do what its record says, and the record does not say why.
    """
    from app.check.hardware import DEFAULT
    from app.cli import checking
    from app.cli.progress import reporting
    from app.records import runs
    from app.records.load import load_all
    from app.store.examples import life

    chosen, places = options.settings(), options.places()
    every = load_all(places.curated(PACKAGE))
    records = _asked(every, record_ids or [])
    path = places.runs(PACKAGE)
    stored = runs.load(path)
    with options.filled() as store, reporting() as progress:
        checks = checking.checks(chosen, store, warm=False)
        engines = _engines(checks, engine)
        with store.reading() as connection:
            lives = {record.front.id: life(connection, record.front.id) for record in records}
        pairs = [pair for record in records for pair in _pairs(record, lives[record.front.id], engines, DEFAULT)]
        digests = {record.front.id: runs.digest(record.front.example) for record in every}
        stored = {key: run for key, run in stored.items() if digests.get(run.record) == run.example}
        todo = [pair for pair in pairs if again or (pair.record, pair.engine) not in stored]
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        done = 0

        def keep(pair: Pair, happened: Happened) -> None:
            nonlocal done
            done += 1
            stored[pair.record, pair.engine] = _run(pair, happened, digests[pair.record], today)
            progress(f"running examples on {pair.engine}", done, len(todo))
            if done % SAVED_EVERY == 0:
                runs.save(path, stored.values())

        try:
            asyncio.run(_ran(checks, todo, jobs, keep))
        finally:
            if done:
                runs.save(path, stored.values())
    made = [stored[p.record, p.engine] for p in pairs if p.engine != lives[p.record].gone_since]
    skipped = sum(not _is_launch(record) for record in records)
    return _told(made, records, skipped, len(todo), format_)


def _asked(records: Sequence[CuratedRecord], ids: Sequence[str]) -> list[CuratedRecord]:
    known = {record.front.id: record for record in records if record.front.status != "withdrawn"}
    if unknown := [name for name in ids if name.lower() not in known]:
        raise BadInput(f"{unknown[0][:40]!r}: no curated record has this id")
    return [known[name.lower()] for name in ids] or list(known.values())


def _engines(checks: Checks, asked: str) -> list[str]:
    installed = [engine.version for engine in checks.engines.installed()]
    if asked != "all" and asked not in installed:
        raise BadInput(f"{asked[:40]!r} is not installed; these are: {', '.join(installed) or 'none'}")
    return installed if asked == "all" else [asked]


def _pairs(
    record: CuratedRecord, life: Life, engines: Sequence[str], hardware: str
) -> Iterator[Pair]:  # fmt: skip
    """Yield what there is to run: the record's releases, and the first without it, on which an upgrade is tried."""
    from app.check.examples import Pair

    if not _is_launch(record):
        return
    front = record.front
    for engine in engines:
        if engine in life.releases or engine == life.gone_since:
            yield Pair(front.id, front.example.before, front.example.after, engine, front.example.hardware or hardware)


def _is_launch(record: CuratedRecord) -> bool:
    from app.check.examples import is_launch

    return is_launch(record.front.example.before) and is_launch(record.front.example.after)


def _run(pair: Pair, happened: Happened, digest: str, today: str) -> Run:
    from app.records.runs import Run

    return Run(
        record=pair.record,
        engine=pair.engine,
        before=happened.before,
        after=happened.after,
        hardware=pair.hardware,
        date=today,
        example=digest,
    )


async def _ran(
    checks: Checks, pairs: Sequence[Pair], jobs: int, keep: Callable[[Pair, Happened], None]
) -> None:  # fmt: skip
    from app.check import examples

    try:
        await examples.run(checks.service(), pairs, jobs=jobs, done=keep)
    finally:
        await checks.close()


def _told(made: Sequence[Run], records: Sequence[CuratedRecord], skipped: int, ran: int, format_: Format) -> int:
    explained = {record.front.id for record in records if record.body.not_verified}
    bad = [run for run in made if not run.good]
    proven = Counter(run.engine for run in made if run.good)
    total = Counter(run.engine for run in made)
    if format_ is Format.JSON:
        options.print_json(
            {
                "ran": ran,
                "code_examples": skipped,
                "engines": [{"version": v, "pairs": total[v], "proven": proven[v]} for v in total],
                "runs": [run.model_dump() | {"good": run.good} for run in made],
            }
        )
    else:
        for run in bad:
            note = "" if run.record not in explained else " (the record says why)"
            print(f"{run.record} on {run.engine}{note}\n  before: {run.before}\n  after:  {run.after}")
        for version in total:
            print(f"{version}: {proven[version]} of {total[version]} pairs do what their record says")
        whole = len({run.record for run in made} - {run.record for run in bad})
        print(f"{ran} pairs run now; {whole} of {len(records)} records proven on every release asked for")
        print(f"{skipped} records have code for an example, which is not run")
    return 1 if any(run.record not in explained for run in bad) else 0
