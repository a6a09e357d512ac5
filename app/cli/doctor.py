"""`errata doctor`: is everything there that the product needs?"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

import typer

from app.cli import options
from app.cli.options import Format, FormatOption

if TYPE_CHECKING:
    from app.store.engine import Store

State = Literal["fine", "missing", "broken"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    state: State
    text: str


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(doctor)


def doctor(format_: FormatOption = Format.TEXT) -> int:
    """Look at settings, folders, database, search index, releases, ledgers and curated records."""
    with options.opened() as store:
        findings = [finding for check in CHECKS for finding in _guarded(check, store)]
    if format_ is Format.JSON:
        options.print_json({"findings": [asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            print(f"{finding.state:8} {finding.name:16} {finding.text}")
    return 0 if all(finding.state == "fine" for finding in findings) else 3


def _guarded(check: Callable[[Store], Iterator[Finding]], store: Store) -> Iterator[Finding]:
    """Run one check; one that fails is a finding and does not hide the others."""
    try:
        yield from check(store)
    except Exception as error:
        yield Finding(check.__name__.strip("_"), "broken", f"{type(error).__name__}: {error}")


def _python(_store: Store) -> Iterator[Finding]:
    fine = sys.version_info >= (3, 11)
    yield Finding("python", "fine" if fine else "broken", sys.version.split()[0])


def _folders(_store: Store) -> Iterator[Finding]:
    chosen = options.settings()
    for name, folder, mode in (("cache", chosen.cache_dir, os.W_OK), ("data", chosen.data_dir, os.R_OK)):
        if not folder.is_dir():
            yield Finding(name, "missing", f"{folder} is not there")
        else:
            fine = os.access(folder, mode)
            yield Finding(name, "fine" if fine else "broken", f"{folder}{'' if fine else ' is not writable'}")


def _database(store: Store) -> Iterator[Finding]:
    from app.store import migrate, queries

    if not migrate.exists(store):
        yield Finding("database", "missing", "there is none: run `errata ingest`")
        return
    if not migrate.is_current(store):
        yield Finding("database", "broken", "its schema is of another version: run `errata ingest`")
        return
    with store.reading() as connection:
        size = queries.counts(connection)
        yield Finding(
            "database", "fine" if size.records else "missing", f"{size.records:,} records, {size.reviewed} reviewed"
        )
        words = queries.records(connection, queries.Filters(q="not"), limit=1)
        yield Finding("search index", "fine" if words.total else "broken", f"{words.total:,} records say 'not'")


def _releases(store: Store) -> Iterator[Finding]:
    from app.lineage.ledger import load
    from app.store import migrate, queries, sources

    places = options.places()
    pinned = sources.pinned(places.data)
    ingested: set[tuple[str, str]] = set()
    if migrate.exists(store) and migrate.is_current(store):
        with store.reading() as connection:
            ingested = {(release.package, release.version) for release in queries.releases(connection)}
    absent = [f"{one.package} {one.version}" for one in pinned if (one.package, one.version) not in ingested]
    text = f"not ingested: {', '.join(absent)}" if absent else f"all {len(pinned)} pinned ones ingested"
    yield Finding("releases", "missing" if absent else "fine", text)
    for package in sorted({one.package for one in pinned}):
        covered = load(places.ledger(package)).releases
        open_ = [one.version for one in pinned if one.package == package and one.version not in covered]
        text = f"{package}: does not cover {', '.join(open_)}" if open_ else f"{package}: covers all pinned releases"
        yield Finding("ledger", "missing" if open_ else "fine", text)


def _curated(store: Store) -> Iterator[Finding]:
    from app.store import curation

    report = curation.check(None, options.places().data / "errors")
    text = f"{report.records} records, {len(report.problems)} problems"
    yield Finding("curated records", "broken" if report.problems else "fine", text)


CHECKS = (_python, _folders, _database, _releases, _curated)
