"""Connections to the database: many readers, one writer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

from sqlalchemy import Connection, Engine

from app.store import sqlite


class Store:
    """A database and how to talk to it. Safe to share between threads; `close` when done."""

    def __init__(self, url: str) -> None:
        self.url = url

    @cached_property
    def engine(self) -> Engine:
        """Return the writing engine (ingest, migrations)."""
        file = sqlite.path(self.url)
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
        return sqlite.engine(self.url, read_only=False)

    @cached_property
    def _readers(self) -> Engine:
        return sqlite.engine(self.url, read_only=True)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Lend a read-only connection: it sees one state of the database and never waits for a writer."""
        with self._readers.connect() as connection, sqlite.snapshot(connection):
            yield connection

    def reader(self) -> Connection:
        """Return a read-only connection that the caller keeps and closes: each statement sees the newest state."""
        return self._readers.connect()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Lend the one writing connection: commits at the end, rolls back on an exception."""
        with self.engine.begin() as connection:
            yield connection

    def close(self) -> None:
        """Close every pooled connection."""
        for name in ("engine", "_readers"):
            made = self.__dict__.pop(name, None)
            if made is not None:
                made.dispose()
