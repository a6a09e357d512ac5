"""`errata ledger`: write down which record the sites of the ingested releases belong to."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli import options


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(ledger)


def ledger(
    package: Annotated[str, typer.Argument(metavar="PACKAGE")],
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit code 1 where a release is missing.")
    ] = False,
) -> int:
    """Append the pinned releases that a package's ledger does not cover yet. All of them must be ingested."""
    from app.errors import NotFound
    from app.lineage import ledger as ledgers
    from app.lineage.chains import extended
    from app.store import queries, sources, stored

    places = options.places()
    path = places.ledger(package)
    before = ledgers.load(path)
    pinned = [one.version for one in sources.pinned(places.data) if one.package == package]
    with options.filled() as store, store.reading() as connection:
        there = {release.version for release in queries.releases(connection, package=package)}
        if not pinned or not there.issuperset(pinned):
            raise NotFound(
                f"{package}: the pinned releases are not all ingested: {', '.join(pinned) or 'none is pinned'}"
            )
        releases = [stored.mined_release(connection, package, version) for version in pinned]
        repository = queries.repository(connection, package)
    after = extended(before, repository or package, releases)
    new = len(after.records) - len(before.records)
    if not check and after is not before:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(ledgers.text(after), encoding="utf-8")
    covered = len(after.releases) - len(before.releases)
    print(f"{path.name}: {covered} releases and {new:,} ids {'missing' if check else 'added'}")
    return 1 if check and after is not before else 0
