"""Rendered pages, kept by the web layer, and the reads that it makes for every request of a record.

These statements go straight to the driver: a record is answered in tens of microseconds, and building a statement
would cost more than running it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection

from app.store import sqlite
from app.store.engine import Store
from app.store.queries import StoredDocument


@dataclass(frozen=True, slots=True)
class KeptPage:
    """A record's rendered page. `etag` is its document's now; `fingerprint` says from what the page was rendered."""

    etag: str
    fingerprint: str
    body: bytes


class RecordReader:
    """One connection for one thread's reads of whole records, outside any transaction."""

    def __init__(self, store: Store) -> None:
        self._connection = store.reader()

    def document(self, record_id: str) -> StoredDocument | None:
        """Return the stored document of a record's own id; None for an alias too."""
        rows = sqlite.query_rows(
            self._connection,
            "SELECT d.body, d.etag FROM record AS r JOIN document AS d ON d.record_key = r.key WHERE r.id = ?",
            (record_id,),
        )
        return StoredDocument(record_id, rows[0][0], rows[0][1]) if rows else None

    def page(self, record_id: str, kind: str) -> KeptPage | None:
        """Return a record's rendered page of one kind, if there is one."""
        rows = sqlite.query_rows(
            self._connection,
            "SELECT d.etag, p.fingerprint, p.body FROM page AS p JOIN record AS r ON r.id = p.id "
            "JOIN document AS d ON d.record_key = r.key WHERE p.id = ? AND p.kind = ?",
            (record_id, kind),
        )
        return KeptPage(*rows[0]) if rows else None

    def version(self) -> int:
        """Return a number that changes when another connection has committed."""
        return sqlite.data_version(self._connection)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def licences(connection: Connection) -> dict[str, str]:
    """Return the licence of each package's source, "" where it is not known."""
    return dict(sqlite.query_rows(connection, "SELECT name, license FROM package ORDER BY name"))


def record_ids(connection: Connection, *, start: int = 0, limit: int) -> list[str]:
    """Return ids of records in their default order."""
    statement = "SELECT id FROM record ORDER BY key LIMIT ? OFFSET ?"
    return [row[0] for row in sqlite.query_rows(connection, statement, (limit, start))]


def stale(connection: Connection, *, kind: str, fingerprint: str) -> list[str]:
    """Return the ids of records whose kept page of this kind is absent or was rendered from something else.

    Shape: a page's own fingerprint is `fingerprint`, a colon and its document's etag.
    """
    statement = (
        "SELECT r.id FROM record AS r JOIN document AS d ON d.record_key = r.key "
        "LEFT JOIN page AS p ON p.id = r.id AND p.kind = ? "
        "WHERE p.fingerprint IS NULL OR p.fingerprint <> ? || ':' || d.etag ORDER BY r.key"
    )
    return [row[0] for row in sqlite.query_rows(connection, statement, (kind, fingerprint))]


def keep(connection: Connection, kind: str, rows: Iterable[tuple[str, str, bytes]]) -> None:
    """Keep rendered pages: rows of (record id, fingerprint, body). Connection of `Store.writing()`."""
    sqlite.replace_many(
        connection, "page", ("id", "kind", "fingerprint", "body"), ((i, kind, print_, body) for i, print_, body in rows)
    )


def drop_orphans(connection: Connection) -> None:
    """Drop pages whose record is gone. Connection of `Store.writing()`."""
    connection.exec_driver_sql("DELETE FROM page WHERE id NOT IN (SELECT id FROM record)")
