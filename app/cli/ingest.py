"""`errata ingest`, `errata releases`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli import options
from app.cli.options import Format, FormatOption

if TYPE_CHECKING:
    from app.store.queries import Release
    from app.store.sources import Wanted


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(ingest)
    app.command()(releases)


def ingest(
    packages: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PACKAGE==VERSION]...", help="None: the releases of data/releases.toml."),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--from", metavar="DIR", help="A folder of archives, or one unpacked source tree.")
    ] = None,
    format_: FormatOption = Format.TEXT,
) -> int:
    """Mine releases into the database. A second run does nothing."""
    from app.cli.progress import reporting
    from app.errors import BadInput
    from app.store import sources
    from app.store.lock import only_one
    from app.web.frame import Site
    from app.web.prerender import prerender

    where, chosen = options.places(), options.settings()
    if folder is not None and not packages:
        raise BadInput("--from: name the release that the folder holds, for example httpx==0.28.1")
    wanted = [sources.wanted(text, folder) for text in packages] if packages else list(sources.pinned(where.data))
    by_package: dict[str, list[Wanted]] = {}
    for one in dict.fromkeys(wanted):
        by_package.setdefault(one.package, []).append(one)
    with options.opened() as store, only_one(store.url), reporting() as progress:
        for group in by_package.values():
            outcome = sources.ingest_package(store, where, group, progress)
            progress.say(_said(group[0].package, outcome))
            for record, why in outcome.unmatched.items() if outcome else ():
                progress.say(f"  not used: curated record {record}: {why}")
        prerender(
            store,
            Site(chosen.base_url.rstrip("/")),
            processes=chosen.ingest_processes,
            progress=lambda done, total: progress("rendering pages", done, total),
        )
    return releases(format_)


def _said(package: str, outcome: object) -> str:
    from app.store.ingest import Outcome

    if isinstance(outcome, Outcome):
        return f"{package}: {outcome.records:,} records from {outcome.sites:,} sites"
    return f"{package}: nothing to do"


def releases(format_: FormatOption = Format.TEXT) -> int:
    """List the ingested releases and what mining found in them."""
    from app.store import queries

    with options.filled() as store, store.reading() as connection:
        found = queries.releases(connection)
    if format_ is Format.JSON:
        options.print_json({"releases": [_json(release) for release in found]})
    else:
        _print_table(found)
    return 0


def _json(release: Release) -> dict[str, object]:
    from dataclasses import asdict

    failed = [{"path": path, "why": why} for path, why in release.failed]
    return asdict(release) | {"failed": failed, "share": round(release.share, 4)}


def _print_table(found: tuple[Release, ...]) -> None:
    header = ("package", "release", "files", "lines", "failed", "sites", "records", "raises", "with text")
    rows = [
        (r.package, r.version, f"{r.files:,}", f"{r.lines:,}", str(len(r.failed)), f"{r.sites:,}", f"{r.records:,}",
         f"{r.raises:,}", f"{r.share:.1%}")
        for r in found
    ]  # fmt: skip
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in (header, *rows):
        cells = [cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))]
        print("  ".join(cells).rstrip())
    for release in found:
        for path, why in release.failed:
            print(f"{release.package} {release.version}: not read: {path}: {why}", file=sys.stderr)
