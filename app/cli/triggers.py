"""`errata triggers`: search commands that raise each error of a release, run them again, report."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli import options
from app.cli.options import Format, FormatOption

if TYPE_CHECKING:
    from app.check.service import CheckService
    from app.triggers.command import Command
    from app.triggers.model import Site, Trigger
    from app.triggers.runner import Runner
    from app.triggers.search import Search

EngineOption = Annotated[str, typer.Option(help="A release of SGLang, such as 0.5.18.")]
FOLDER = "sglang/srt/"
EARLY = ("arguments", "checks")
SLICE = 500
"""Checks between two times that what was found is stored."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a search was asked for."""

    engine: str
    checks: int
    seed: int
    workers: int
    models: tuple[str, ...]
    early: bool
    late: bool


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Commands that raise the errors of a release.")
    group.command()(search)
    group.command()(replay)
    group.command()(lists)
    group.command()(report)
    app.add_typer(group, name="triggers")


def search(
    *,
    engine: EngineOption = "0.5.18",
    checks: Annotated[int, typer.Option(help="Checks that the search may run after its survey.")] = 4000,
    seed: Annotated[int, typer.Option(help="Of the choices that are drawn.")] = 1,
    workers: Annotated[int, typer.Option(help="Checks at once.")] = 2,
    models: Annotated[list[str] | None, typer.Option("--model", help="Models that get every option once.")] = None,
    early: Annotated[
        bool, typer.Option("--early", help="Only the files that arguments alone enter, which is quick.")
    ] = False,
    late: Annotated[bool, typer.Option("--late", help="Only the files that come after the arguments.")] = False,
) -> int:
    """Look for commands that raise sites which no stored command raises; store the smallest, again and again."""
    from app.triggers import model

    chosen = Chosen(engine, checks, seed, workers, tuple(models or ()), early, late)
    asyncio.run(_search(_sites(engine, early=early, late=late), model.load(model.file(engine)), chosen))
    return report(engine)


def replay(
    engine: EngineOption = "0.5.18",
    workers: Annotated[int, typer.Option(help="Checks at once.")] = 2,
    format_: FormatOption = Format.TEXT,
) -> int:
    """Run the stored commands again. Exit code 1: some do something else."""
    from app.triggers import model
    from app.triggers import replay as replaying
    from app.triggers.runner import Runner

    stored = model.load(model.file(engine))

    async def go() -> list[replaying.Difference]:
        service = _service(workers)
        try:
            return await replaying.replay(Runner.of(service, engine), stored)
        finally:
            await service.pool.close()

    differences = asyncio.run(go())
    if format_ is Format.JSON:
        options.print_json({"triggers": len(stored), "differ": [
            {"record": d.trigger.record, "command": d.trigger.command, "now": d.now} for d in differences
        ]})  # fmt: skip
    else:
        for one in differences:
            print(f"{one.trigger.path}:{one.trigger.line} {one.trigger.command}\n  now {one.now}")
        print(f"{len(stored)} triggers, {len(differences)} differ")
    return 1 if differences else 0


def lists(
    engine: EngineOption = "0.5.18",
    workers: Annotated[int, typer.Option(help="Checks at once.")] = 2,
    most: Annotated[int, typer.Option("--models", help="Models that an option is tried with at most.")] = 30,
) -> int:
    """Run what the two lists of the site show: options that every model is refused with, and late refusals."""
    from app.check.options import Options
    from app.triggers import lists as listing
    from app.triggers import model
    from app.triggers.proposals import Proposer
    from app.triggers.reads import Release
    from app.triggers.runner import Runner
    from app.triggers.search import FIRST, lines_of

    sites = lines_of(_sites(engine))
    stored = model.load(model.file(engine))

    async def go() -> listing.Lists:
        quick, service = _service(workers), _service(workers)
        try:
            runner = Runner.of(service, engine)
            known = await asyncio.to_thread(Options.of, runner.engine)
            proposer = Proposer(Release(runner.engine.release), known, service.catalogue, service.profiles)
            models = proposer.one_an_architecture(FIRST)[:most]
            late = await listing.late_refusals(runner, stored, sites)
            count, met = await listing.refused_options(Runner.of(quick, engine, {}), proposer, models, _now)
            refused = await listing.confirmed(runner, met, sites)
            return listing.Lists(engine, count, tuple(models), tuple(refused), tuple(late))
        finally:
            await quick.pool.close()
            await service.pool.close()

    made = asyncio.run(go())
    listing.save(made)
    print(
        f"{len(made.refused)} of {made.options} options and values were refused with all of {len(made.models)} models"
    )
    print(f"{len(made.late)} launches are refused after their arguments were accepted")
    return 0


def report(engine: EngineOption = "0.5.18", format_: FormatOption = Format.TEXT) -> int:
    """Say how many sites of start-up are reached, and why the others are not, from what the search stored."""
    from app.triggers import model, scope
    from app.triggers.reasons import SAID

    reached = {trigger.place for trigger in model.load(model.file(engine))}
    rows = scope.complete(scope.load(scope.file(engine)), _sites(engine), reached)
    if format_ is Format.JSON:
        options.print_json({"engine": engine, "sites": rows})
        return 0
    for title, kind in (
        ("The stages' own files", lambda row: scope.is_named(row["path"])),
        ("Every function that start-up was seen to enter", lambda row: row["entered"]),
    ):
        print(f"{title}\n{'':22}{'sites':>8}{'reached':>9}{'':>8}{'unreachable':>12}{'not yet':>9}")
        for one in scope.counts(rows, kind):
            share = f"{one.reached / max(one.sites, 1):.1%}"
            print(f"{one.group:22}{one.sites:8}{one.reached:9}{share:>8}{one.unreachable:12}{one.left:9}")
        print()
    print("Not reached, and what shows it")
    for reason, said in SAID.items():
        print(f"{sum(not row['reached'] and row['reason'] == reason for row in rows):6}  {reason}: {said}")
    return 0


def _now(text: str) -> None:
    print(text, flush=True)


def _service(workers: int) -> CheckService:
    """Return a service that waits patiently and remembers nothing."""
    from app.check import hardware
    from app.check.cache import OutcomeCache
    from app.check.catalogue import catalogue
    from app.check.install import Engines
    from app.check.pool import CHECK_LIMITS, Bounds, SandboxPool
    from app.check.service import CheckService

    chosen = options.settings()
    bounds = Bounds(
        workers=workers, waiting=100_000, engines=5, wait_s=3600.0, start_s=600.0,
        limits=replace(CHECK_LIMITS, wall_s=60.0, cpu_s=60), confined=not chosen.unsafe_no_sandbox,
    )  # fmt: skip
    engines = Engines(chosen.cache_dir / "engines", chosen.check_engine)
    return CheckService(SandboxPool(bounds), engines, catalogue(), hardware.profiles(), cache=OutcomeCache(0))


def _sites(version: str, *, early: bool = False, late: bool = False) -> list[Site]:
    from app.store import places
    from app.triggers import scope
    from app.triggers.model import Site

    with options.filled() as store, store.reading() as connection:
        rows = places.raised_under(connection, version=version, folder=FOLDER)
    return [
        Site(row.record, row.path, row.line, row.end_line, row.function, row.exception, row.title)
        for row in rows
        if (scope.early if early else scope.watched)(row.path) and not (late and scope.early(row.path))
    ]


async def _search(sites: list[Site], stored: list[Trigger], chosen: Chosen) -> None:
    from app.check.options import Options
    from app.triggers import scope
    from app.triggers.proposals import Proposer
    from app.triggers.reads import Release
    from app.triggers.runner import Runner
    from app.triggers.search import Search

    watched, plain = _service(chosen.workers), _service(chosen.workers)
    began = time.monotonic()

    def say(text: str) -> None:
        _now(f"{time.monotonic() - began:6.0f} s  {text}")

    try:
        runner = Runner.of(plain, chosen.engine)
        known = await asyncio.to_thread(Options.of, runner.engine)
        proposer = Proposer(Release(runner.engine.release), known, plain.catalogue, plain.profiles)
        found = Search(
            lambda goals: Runner.of(watched, chosen.engine, goals), proposer, sites,
            opened=scope.opened, seed=chosen.seed, say=say,
        )  # fmt: skip
        say(f"{len(found.hunts)} sites")
        keep = Keeper(runner, found, stored)
        await found.survey(short=chosen.early)
        if not chosen.late:
            await found.run([_command(t) for t in stored if t.stage in EARLY], short=True)
        if not chosen.early:
            await found.run([_command(t) for t in stored if t.stage not in EARLY])
        else:
            await found.run(_curated(), short=True)
        say(f"known commands: {found.runner.count} runs, {len(found.reached)} sites")
        for model in chosen.models:
            await found.options(model)
        left = chosen.checks
        while left > 0:
            before = found.runner.count
            await found.hunt(min(left, SLICE), scope.named, scope.early, late=not chosen.early)
            await keep.now()
            left -= max(found.runner.count - before, 1)
            if found.runner.count == before:
                say("nothing is left to try")
                break
    finally:
        await watched.pool.close()
        await plain.pool.close()


class Keeper:
    """Makes what a search has found small and stores it, so that a search can end at any time."""

    def __init__(self, runner: Runner, search: Search, stored: list[Trigger]) -> None:
        self.runner, self.search = runner, search
        self.kept = list(stored)
        self.tried = {trigger.place for trigger in stored}

    async def now(self) -> None:
        """Store what is new."""
        from app.triggers import model, scope
        from app.triggers.replay import smallest

        engine = self.runner.engine.version
        found = {place: command for place, (command, _) in self.search.reached.items() if place not in self.tried}
        self.tried.update(found)
        made = await smallest(
            self.runner, found, self.search.sites, engine
        )  # unwatched it may have raised another site
        for trigger in (*made, *model.load(model.file(engine))):
            if all(trigger.place != kept.place for kept in self.kept):
                self.kept.append(trigger)
        model.save(model.file(engine), self.kept)
        searched = scope.of(self.search, {trigger.place for trigger in self.kept})
        places = {(row["path"], row["line"]) for row in searched}
        before = [row for row in scope.load(scope.file(engine)) if (row["path"], row["line"]) not in places]
        scope.save(engine, [*before, *searched])
        self.search.say(
            f"{len(self.kept)} triggers stored, {len(self.tried - {t.place for t in self.kept})} not raised unwatched"
        )


def _command(trigger: Trigger) -> Command:
    from app.triggers.command import Command

    return Command.read(trigger.command, trigger.hardware, trigger.gpus)


def _curated() -> list[Command]:
    """Return the commands of the curated records that raise their error."""
    from app.check.hardware import DEFAULT
    from app.errors import BadInput
    from app.records.load import load_all
    from app.triggers.command import Command

    found = []
    for record in load_all(options.places().data / "errors" / "sglang"):
        example = record.front.example
        try:
            found.append(Command.read(example.before, example.hardware or DEFAULT))
        except BadInput:
            continue
    return found
