"""What commands share: options, settings, the store, output."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from app.settings import Settings
    from app.store.engine import Store
    from app.store.sources import Places


class Format(StrEnum):
    """How a result is printed."""

    TEXT = "text"
    JSON = "json"


FormatOption = Annotated[Format, typer.Option("--format", help="text, or json: the API's body.")]


def settings() -> Settings:
    """Return the settings of the environment."""
    from app.settings import Settings

    return Settings.from_environment()


def places() -> Places:
    """Return where files are found and kept."""
    from app.store.sources import Places

    chosen = settings()
    return Places(data=chosen.data_dir, cache=chosen.cache_dir)


@contextmanager
def opened() -> Iterator[Store]:
    """Open the database of the settings, which may be empty still."""
    from app.store.engine import Store

    store = Store(settings().database_url)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def filled() -> Iterator[Store]:
    """Open a database that holds something.

    Raises: Unavailable: nothing was ingested yet.
    """
    from app.errors import Unavailable
    from app.store import migrate

    with opened() as store:
        if not migrate.exists(store) or not migrate.is_current(store):
            raise Unavailable("the database is empty or of another version: run `errata ingest` first")
        yield store


def print_json(value: Any) -> None:
    """Print a value as JSON, bytes as the JSON that they are."""
    import orjson

    body = value if isinstance(value, bytes) else orjson.dumps(value, option=orjson.OPT_INDENT_2)
    sys.stdout.flush()
    sys.stdout.buffer.write(body + b"\n")
    sys.stdout.buffer.flush()
