"""`errata new-record`, `errata lint`: for those who write curated records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from app.cli import options
from app.cli.options import Format, FormatOption

if TYPE_CHECKING:
    from app.records.skeleton import MinedFacts
    from app.store.document import Document


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("new-record")(new_record)
    app.command()(lint)


def new_record(
    record_id: Annotated[str, typer.Argument(metavar="ID", help="The record that is to get an analysis.")],
    stdout: Annotated[bool, typer.Option("--stdout", help="Print the file and write none.")] = False,
) -> int:
    """Write the skeleton of a curated record, everything mined filled in."""
    from app.errors import BadInput
    from app.records.skeleton import skeleton
    from app.records.slug import slug
    from app.store import queries
    from app.store.document import Document

    with options.filled() as store, store.reading() as connection:
        document = Document.model_validate_json(queries.document(connection, record_id.lower()).body)
    text = skeleton(_facts(document))
    if stdout:
        print(text, end="")
        return 0
    folder = options.places().curated(document.package.name)
    if there := sorted(folder.glob(f"{document.id}-*.md")):
        raise BadInput(f"{there[0].name}: the record has a curated file already")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{document.id}-{slug(document.title)}.md"
    path.write_text(text, encoding="utf-8")
    print(path)
    return 0


def _facts(document: Document) -> MinedFacts:
    from app.cli.records import life
    from app.records.skeleton import MinedFacts

    return MinedFacts(
        id=document.id,
        package=document.package.name,
        kind=document.kind,
        exception=document.exception,
        message=document.message or document.condition,
        function=document.source.function if document.source else "",
        path=document.module,
        title=document.title,
        flags=document.flags,
        trigger=document.trigger or "",
        guards=document.guards,
        releases=life(document.history),
        report_url=document.provenance.report_url or "",
    )


def lint(format_: FormatOption = Format.TEXT) -> int:
    """Check every curated record against its format and, where releases were ingested, against them and its runs.

    Exit code 1: there is something to mend.
    """
    from app.check.examples import is_launch
    from app.check.install import recipes
    from app.store import curation, migrate
    from app.store.examples import Runner

    with options.opened() as store:
        usable = migrate.exists(store) and migrate.is_current(store)
        runner = Runner(recipes(), is_launch)
        report = curation.check(store if usable else None, options.places().data / "errors", runner)
    if format_ is Format.JSON:
        options.print_json({"records": report.records, "problems": report.problems, "notes": report.notes})
    else:
        for line in (*report.problems, *(f"note: {note}" for note in report.notes)):
            print(line)
        print(f"{report.records} curated records, {len(report.problems)} problems")
    return 1 if report.problems else 0
