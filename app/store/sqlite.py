"""What is SQLite's own: pragmas, WAL, bulk speed and the FTS5 index. Nothing else in `app` may know SQLite."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url

from app.errors import BadInput

# Reading: 256 MiB of the file are mapped, so that a warm page costs no copy. Writing: a checkpoint each 8,000 pages.
_PRAGMAS = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA busy_timeout = 10000",
    "PRAGMA synchronous = NORMAL",
    "PRAGMA mmap_size = 1073741824",
    "PRAGMA cache_size = -32000",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA trusted_schema = OFF",
)
SEARCH_COLUMNS = ("title", "message", "flags", "function", "module", "meaning", "words")
# `prefix` keeps an own index of the first 2..5 letters of every word: a half word then costs what a whole one does.
_CREATE_SEARCH = (
    f"CREATE VIRTUAL TABLE search USING fts5({', '.join(SEARCH_COLUMNS)}, "
    "tokenize = 'unicode61 remove_diacritics 2', prefix = '2 3 4 5')"
)


def engine(url: str, *, read_only: bool) -> Engine:
    """Return an engine for a SQLite URL; the writing one puts the file into WAL mode, so that readers never wait.

    Raises: BadInput: the URL is not SQLite's.
    """
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        raise BadInput(f"ERRATA_DATABASE_URL: {parsed.get_backend_name()!r} is not supported; sqlite:///PATH is")
    made = create_engine(parsed, isolation_level="AUTOCOMMIT" if read_only else None, pool_size=16, max_overflow=32)

    @event.listens_for(made, "connect")
    def _connected(connection: Any, _record: object) -> None:
        cursor = connection.cursor()
        for pragma in _PRAGMAS:
            cursor.execute(pragma)
        if read_only:
            cursor.execute("PRAGMA query_only = ON")
        else:
            cursor.execute("PRAGMA journal_mode = WAL")
            # pysqlite would begin a transaction only at the first INSERT; a writer begins its own (below).
            connection.isolation_level = None
        cursor.close()

    if not read_only:

        @event.listens_for(made, "begin")
        def _begin(connection: Connection) -> None:
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    return made


def path(url: str) -> Path | None:
    """Return the file behind a SQLite URL; None for a database in memory."""
    database = make_url(url).database
    return Path(database) if database and database != ":memory:" else None


@contextmanager
def snapshot(connection: Connection) -> Iterator[None]:
    """Let all statements see one state: that of the first of them."""
    driver = _driver(connection)
    driver.execute("BEGIN")
    try:
        yield
    finally:
        driver.execute("ROLLBACK")


def schema_version(connection: Connection) -> str:
    """Return the revision that the database is at; "" where it is empty."""
    if not query_rows(connection, "SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'"):
        return ""
    return str(query_rows(connection, "SELECT version_num FROM alembic_version")[0][0])


def create_search(execute: Any) -> None:
    """Create the search index through a function that executes SQL (a migration's)."""
    execute(_CREATE_SEARCH)


def drop_search(execute: Any) -> None:
    """Drop the search index."""
    execute("DROP TABLE search")


def is_own_table(name: str) -> bool:
    """Tell whether a table belongs to the search index and not to the models."""
    return name == "search" or name.startswith("search_")


def prepare_bulk(connection: Connection) -> None:
    """Let one big transaction use more memory and check foreign keys once, at its commit."""
    connection.exec_driver_sql("PRAGMA cache_size = -256000")
    connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")


def finish_bulk(connection: Connection) -> None:
    """Refresh the statistics that the planner uses (inside the transaction)."""
    connection.exec_driver_sql("PRAGMA analysis_limit = 1000")
    connection.exec_driver_sql("ANALYZE")


def shrink_log(connection: Connection) -> None:
    """Move the write-ahead log into the file as far as readers allow."""
    # Straight to the driver: through the engine it would begin a transaction, in which nothing can be moved.
    _driver(connection).execute("PRAGMA wal_checkpoint(PASSIVE)")


def index_records(connection: Connection, rows: Iterable[tuple[Any, ...]]) -> None:
    """Add rows (record key, then SEARCH_COLUMNS) to the search index."""
    marks = ", ".join("?" * (1 + len(SEARCH_COLUMNS)))
    statement = f"INSERT INTO search(rowid, {', '.join(SEARCH_COLUMNS)}) VALUES ({marks})"
    _driver(connection).executemany(statement, rows)


def forget_records(connection: Connection, *, first: int, last: int) -> None:
    """Remove the records with keys first..last from the search index."""
    connection.exec_driver_sql("DELETE FROM search WHERE rowid BETWEEN ? AND ?", (first, last))


def merge_index(connection: Connection) -> None:
    """Merge the segments of the search index, so that a query reads one of each."""
    connection.exec_driver_sql("INSERT INTO search(search) VALUES ('optimize')")


def matching(connection: Connection, terms: Sequence[str], *, limit: int) -> list[int]:
    """Return the keys of records that have all terms, in key order, at most `limit`.

    Shape: a term is any text; its words must follow one another and the last one may be a half word.
    """
    expression = " AND ".join(map(_phrase, filter(str.strip, map(_quotable, terms))))
    if not expression:
        return []
    statement = "SELECT rowid FROM search WHERE search MATCH ? ORDER BY rowid LIMIT ?"
    return [row[0] for row in _driver(connection).execute(statement, (expression, limit))]


def insert_many(connection: Connection, table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
    """Insert plain tuples: three times as fast as through the compiled statement, and there are 200,000 of them."""
    marks = ", ".join("?" * len(columns))
    _driver(connection).executemany(f'INSERT INTO "{table}" ({", ".join(columns)}) VALUES ({marks})', rows)


def query_rows(connection: Connection, statement: str, values: Sequence[Any] = ()) -> list[Any]:
    """Return all rows of a statement straight from the driver: for the reads that every request makes."""
    return _driver(connection).execute(statement, values).fetchall()


def replace_many(connection: Connection, table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
    """Insert plain tuples; a row with the same primary key is replaced."""
    marks = ", ".join("?" * len(columns))
    _driver(connection).executemany(f'REPLACE INTO "{table}" ({", ".join(columns)}) VALUES ({marks})', rows)


def data_version(connection: Connection) -> int:
    """Return a number that changes when another connection has committed."""
    return int(_driver(connection).execute("PRAGMA data_version").fetchone()[0])


def _phrase(term: str) -> str:
    """Return a term of the index's query language; a last word of one letter is no half word, it would fit all."""
    return f'"{term}"' if len(term.rsplit(maxsplit=1)[-1]) == 1 else f'"{term}" *'


_NOT_WORD = re.compile(r'["\x00]')


def _quotable(term: str) -> str:
    return _NOT_WORD.sub(" ", term)


def _driver(connection: Connection) -> sqlite3.Connection:
    driver = connection.connection.dbapi_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver
