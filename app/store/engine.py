"""Connections to the database: many readers, one writer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine


class Store:
    """A database and how to talk to it. Safe to share between threads; `close` when done."""

    def __init__(self, url: str) -> None:
        self.url = url

    @property
    def engine(self) -> Engine:
        """Return the engine behind it (migrations and tests only)."""
        raise NotImplementedError

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Lend a read-only connection: it sees one state of the database and never waits for a writer."""
        raise NotImplementedError
        yield

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Lend the one writing connection: commits at the end, rolls back on an exception."""
        raise NotImplementedError
        yield

    def close(self) -> None:
        """Close every pooled connection."""
        raise NotImplementedError
