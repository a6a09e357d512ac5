"""`errata identify`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli import options
from app.cli.options import Format, FormatOption

if TYPE_CHECKING:
    from app.match.model import Identification

MAX_TEXT = 1024 * 1024


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(identify)


def identify(
    file: Annotated[str, typer.Argument(metavar="[FILE|-]", help="A file, or - for standard input.")] = "-",
    package: Annotated[str, typer.Option(help="Only records of this package.")] = "",
    release: Annotated[str, typer.Option(help="Only records that this release has.")] = "",
    format_: FormatOption = Format.TEXT,
) -> int:
    """Name the records behind a traceback, a log or a message. Exit code 1: nothing is known."""
    from app.match import answer
    from app.match.identify import identify as identified
    from app.match.index import Index
    from app.store import queries

    text = _text(file)
    with options.filled() as store, store.reading() as connection:
        index = Index(queries.signatures(connection, package=package))
    found = identified(index, text, package=package, release=release)
    if format_ is Format.JSON:
        options.print_json(answer.body(found))
    else:
        print("\n".join(_lines(found)))
    return 0 if found.matches else 1


def _text(file: str) -> str:
    """Return what is to be identified: of more than 1 MiB the end, where a log has its errors.

    Raises: BadInput: the file cannot be read.
    """
    from app.errors import BadInput

    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}") from None
    if len(data) > MAX_TEXT:
        print(f"errata: only the last {MAX_TEXT:,} of {len(data):,} bytes are looked at", file=sys.stderr)
    return data[-MAX_TEXT:].decode("utf-8", "replace")


def _lines(found: Identification) -> list[str]:
    """Return an identification as text."""
    if not found.matches:
        return [found.looks_like or "No record matches."]
    lines: list[str] = []
    for match in found.matches:
        wraps = "  (wraps another error)" if match.wrapper else ""
        lines.append(f"{match.record_id}  {match.score:.2f}  {match.exception}: {match.title}{wraps}")
        lines += [f"    {hole} = {_line(value)}" for hole, value in match.values.items()]
        lines += [f"    - {reason}" for reason in match.reasons]
        if match.also:
            lines.append(f"    same text: {', '.join(match.also)}")
    return lines


def _line(value: str) -> str:
    return " ".join(value.split())[:200]
