"""`errata show`, `errata search`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli import options
from app.cli.options import Format, FormatOption

if TYPE_CHECKING:
    from app.store.document import Document, History

WIDTH = 100


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(show)
    app.command()(search)


def show(
    record_id: Annotated[str, typer.Argument(metavar="ID", help="16 hex digits; an alias will do.")],
    format_: FormatOption = Format.TEXT,
) -> int:
    """Show one record."""
    from app.store import queries
    from app.store.document import Document

    with options.filled() as store, store.reading() as connection:
        found = queries.document(connection, record_id.lower())
    if format_ is Format.JSON:
        options.print_json(found.body)
    else:
        print("\n".join(_lines(Document.model_validate_json(found.body))))
    return 0


def search(
    words: Annotated[
        list[str], typer.Argument(metavar="WORDS...", help="Words, half words, options; after -- dashes.")
    ],
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many records at most.")] = 20,
    format_: FormatOption = Format.TEXT,
) -> int:
    """Search records. Exit code 1: nothing found."""
    from app.store import queries

    with options.filled() as store, store.reading() as connection:
        page = queries.records(connection, queries.Filters(q=" ".join(words)), limit=limit)
    if format_ is Format.JSON:
        from app.web.forms import list_body

        options.print_json(list_body(page))
    else:
        for item in page.items:
            life = f"{item.first} - {item.last}" if item.first != item.last else item.first
            print(f"{item.id}  {item.exception or item.kind}: {_fitted(item.message or item.title)}")
            print(f"{'':16}  {item.module}, {item.function}, {life}")
        print(f"{page.total:,} records" + (", none with all words" if page.loose else ""))
    return 0 if page.items else 1


def _fitted(text: str) -> str:
    return textwrap.shorten(text, WIDTH, placeholder=" ...")


def _lines(document: Document) -> Iterator[str]:
    from app.web import proofs

    yield f"{document.exception or document.kind}: {document.message or document.condition}"
    yield f"{document.title} [{document.status}, {document.id}]"
    yield from _section("What it means", document.meaning)
    if document.source is not None:
        source = document.source
        yield from _section("Source", f"{source.path}:{source.line} in {source.function} ({source.ref})")
    numbered = [f"{n}. {s.text}{' (derived)' if s.derived else ''}" for n, s in enumerate(document.solutions, start=1)]
    yield from _section("Solutions", *numbered)
    if document.example is not None:
        yield from ("", "Before:", document.example.before.rstrip(), "After:", document.example.after.rstrip())
        yield from proofs.of_example(document.example.verified)
        yield from _section("Not verified here", document.not_verified)
    yield from _section("When it happens", document.trigger, *(f"- {situation}" for situation in document.situations))
    yield from _section("Options", " ".join(document.flags))
    yield from _section("Life", life(document.history))
    yield from _section("Related", *(f"{r.id} {r.title} ({r.why})" for r in document.related))


def life(history: History) -> str:
    """Return the life of a record in words."""
    if history.first is None:
        return "in no release that was read"
    since = f"{history.first} or earlier" if history.first_is_bound else history.first
    until = f"gone since {history.gone_since}" if history.gone_since else f"still in {history.last}"
    return f"since {since}; {until}"


def _section(title: str, *texts: str | None) -> Iterator[str]:
    told = [text for text in texts if text]
    if told:
        yield ""
        yield f"{title}:"
        for text in told:
            yield textwrap.fill(text, WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
