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
    from app.triggers.search import Search

EngineOption = Annotated[str, typer.Option(help="A release of SGLang, such as 0.5.18.")]
FOLDER = "sglang/srt/"


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a search was asked for."""

    engine: str
    checks: int
    seed: int
    workers: int
    models: tuple[str, ...]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Commands that raise the errors of a release.")
    group.command()(search)
    group.command()(replay)
    group.command()(lists)
    group.command()(report)
    app.add_typer(group, name="triggers")


def search(
    engine: EngineOption = "0.5.18",
    checks: Annotated[int, typer.Option(help="Checks that the search may run after its survey.")] = 4000,
    seed: Annotated[int, typer.Option(help="Of the choices that are drawn.")] = 1,
    workers: Annotated[int, typer.Option(help="Checks at once.")] = 2,
    models: Annotated[list[str] | None, typer.Option("--model", help="Models that get every option once.")] = None,
) -> int:
    """Look for commands that raise sites which no stored command raises, and store the smallest of them."""
    from app.triggers import model, scope
    from app.triggers.replay import smallest
    from app.triggers.runner import Runner
    from app.triggers.search import FIRST

    sites = _sites(engine)
    stored = model.load(model.file(engine))
    searched = asyncio.run(_searched(sites, stored, Chosen(engine, checks, seed, workers, tuple(models or (FIRST,)))))
    known = {trigger.place for trigger in stored}
    found = {place: command for place, (command, _) in searched.reached.items() if place not in known}
    print(f"{len(found)} new sites are made small")

    async def small() -> list[model.Trigger]:
        service = _service(workers)
        try:
            return await smallest(Runner.of(service, engine), found, searched.sites, engine)
        finally:
            await service.pool.close()

    triggers = asyncio.run(small())
    model.save(model.file(engine), [*stored, *triggers])
    scope.save(engine, scope.of(searched, {t.place for t in [*stored, *triggers]}))
    print(f"{len(stored) + len(triggers)} triggers, {len(found) - len(triggers)} were not raised again unwatched")
    return 0


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
    engine: EngineOption = "0.5.18", workers: Annotated[int, typer.Option(help="Checks at once.")] = 2
) -> int:  # fmt: skip
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
        service = _service(workers)
        try:
            runner = Runner.of(service, engine)
            known = await asyncio.to_thread(Options.of, runner.engine)
            proposer = Proposer(Release(runner.engine.release), known, service.catalogue, service.profiles)
            models = proposer.one_an_architecture(FIRST)
            count, refused = await listing.refused_options(runner, proposer, models, sites, print)
            late = await listing.late_refusals(runner, stored, sites)
            return listing.Lists(engine, count, tuple(models), tuple(refused), tuple(late))
        finally:
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
    from app.triggers import scope
    from app.triggers.reasons import SAID

    rows = scope.load(scope.file(engine))
    if format_ is Format.JSON:
        options.print_json({"engine": engine, "sites": rows})
        return 0
    for title, kind in (
        ("The stages' own files", lambda row: scope.is_named(row["path"])),
        ("Every function that start-up was seen to enter", lambda row: row["entered"]),
    ):
        print(f"{title}\n{'':22}{'sites':>8}{'reached':>9}{'':>8}{'unreachable':>12}{'not yet':>9}")
        for one in scope.counts(rows, kind):
            share = f"{one.reached / one.sites:.1%}"
            print(f"{one.group:22}{one.sites:8}{one.reached:9}{share:>8}{one.unreachable:12}{one.left:9}")
        print()
    print("Not reached, and what shows it")
    for reason, said in SAID.items():
        print(f"{sum(not row['reached'] and row['reason'] == reason for row in rows):6}  {reason}: {said}")
    return 0


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


def _sites(version: str) -> list[Site]:
    from app.store import places
    from app.triggers import scope
    from app.triggers.model import Site

    with options.filled() as store, store.reading() as connection:
        rows = places.raised_under(connection, version=version, folder=FOLDER)
    return [
        Site(row.record, row.path, row.line, row.end_line, row.function, row.exception, row.title)
        for row in rows
        if scope.watched(row.path)
    ]


async def _searched(sites: list[Site], stored: list[Trigger], chosen: Chosen) -> Search:
    from app.check.options import Options
    from app.triggers import scope
    from app.triggers.proposals import Proposer
    from app.triggers.reads import Release
    from app.triggers.runner import Runner
    from app.triggers.search import Search

    service = _service(chosen.workers)
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {text}", flush=True)

    try:
        plain = Runner.of(service, chosen.engine).engine
        known = await asyncio.to_thread(Options.of, plain)
        proposer = Proposer(Release(plain.release), known, service.catalogue, service.profiles)
        found = Search(
            lambda goals: Runner.of(service, chosen.engine, goals), proposer, sites,
            opened=scope.opened, seed=chosen.seed, say=say,
        )  # fmt: skip
        say(f"{len(found.hunts)} sites")
        await found.survey()
        await found.run(_known(stored))
        say(f"known commands: {found.runner.count} runs, {len(found.reached)} sites")
        for model in chosen.models:
            await found.options(model)
        await found.hunt(chosen.checks, scope.named, scope.early)
        return found
    finally:
        await service.pool.close()


def _known(stored: list[Trigger]) -> list[Command]:
    """Return the stored commands and those of the curated records that raise their error."""
    from app.check.hardware import DEFAULT
    from app.errors import BadInput
    from app.records.load import load_all
    from app.triggers.command import Command

    texts = [(t.command, t.hardware, t.gpus) for t in stored]
    for record in load_all(options.places().data / "errors" / "sglang"):
        texts.append((record.front.example.before, record.front.example.hardware or DEFAULT, 0))
    found = []
    for text, hardware, gpus in texts:
        try:
            found.append(Command.read(text, hardware, gpus))
        except BadInput:
            continue
    return found
