"""Reads of single records: document, address, place in one release. Each is one or two statements."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import orjson
from sqlalchemy import Connection

from app.errors import NotFound
from app.store import sqlite, titles
from app.store.document import Excerpt
from app.store.origin import Origin
from app.store.search import Query, hits
from app.store.stored import read_wording, unpacked_excerpt
from app.store.values import SitePlace, StoredDocument, Summary

_ID = re.compile(r"[0-9a-f]{16}")
_SUMMARY = (
    "SELECT r.key, r.id, p.name, r.kind, r.exception, r.title, r.message, r.parts, r.status, r.module, r.function, "
    "r.flags, r.first, r.last, r.gone_since FROM record AS r JOIN package AS p ON p.id = r.package_id "
)


def generation(connection: Connection) -> str:
    """Return a token that changes with every ingest: caches and ETags hang on it. "" before the first one."""
    rows = sqlite.query_rows(connection, "SELECT value FROM meta WHERE name = 'generation'")
    return str(rows[0][0]) if rows else ""


def canonical(connection: Connection, record_id: str) -> str | None:
    """Return the record's own id for an id or alias; None where there is no such record."""
    if not _ID.fullmatch(record_id):
        return None
    own = sqlite.query_rows(connection, "SELECT id FROM record WHERE id = ?", (record_id,))
    return str(own[0][0]) if own else _by_alias(connection, record_id)


def document(connection: Connection, record_id: str) -> StoredDocument:
    """Return the stored document of an id or alias.

    Raises: NotFound: no record has this id.
    """
    for name in (record_id, None):
        own = name or (canonical(connection, record_id) if _ID.fullmatch(record_id) else None)
        if own is None:
            break
        statement = "SELECT d.body, d.etag FROM record AS r JOIN document AS d ON d.record_key = r.key WHERE r.id = ?"
        rows = sqlite.query_rows(connection, statement, (own,))
        if rows:
            return StoredDocument(own, *rows[0])
    raise no_record(record_id)


def no_record(record_id: str) -> NotFound:
    """Return the error for an id that no record has."""
    return NotFound(f"no record has the id {record_id[:40]!r}")


def _by_alias(connection: Connection, record_id: str) -> str | None:
    statement = "SELECT r.id FROM alias AS a JOIN record AS r ON r.key = a.record_key WHERE a.alias = ?"
    rows = sqlite.query_rows(connection, statement, (record_id,))
    return str(rows[0][0]) if rows else None


def site_history(connection: Connection, record_id: str, version: str) -> SitePlace:
    """Return a record's place and excerpt in one release.

    Raises: NotFound: no such record, or that release does not have it.
    """
    own = canonical(connection, record_id)
    if own is None:
        raise no_record(record_id)
    rows = sqlite.query_rows(
        connection,
        "SELECT s.path, s.line, s.end_line, s.function, w.body, s.excerpt_line, e.body, p.name, p.repository, p.host, "
        "p.source_root, p.tag FROM record AS r JOIN release AS l ON l.package_id = r.package_id AND l.version = ? "
        "JOIN site AS s ON s.record_key = r.key AND s.release_id = l.id JOIN wording AS w ON w.id = s.wording_id "
        "JOIN excerpt AS e ON e.id = s.excerpt_id JOIN package AS p ON p.id = r.package_id WHERE r.id = ?",
        (version, own),
    )
    if not rows:
        raise NotFound(f"release {version[:40]!r} does not have the record {own}, or was not ingested")
    return _place(own, version, rows[0])


def _place(own: str, version: str, row: Sequence[Any]) -> SitePlace:
    path, line, end_line, function, wording, excerpt_line, excerpt, *origin_row = row
    origin = Origin(*origin_row)
    values = read_wording(wording)
    text = unpacked_excerpt(excerpt)
    return SitePlace(
        id=own,
        version=version,
        path=origin.repository_path(path),
        line=line,
        end_line=end_line,
        function=function,
        message=titles.primary(values["template"], values["variants"]).text,
        guards=values["guards"],
        excerpt=Excerpt(ref=origin.ref(version), start_line=excerpt_line, text=text) if text else None,
        url=origin.link(origin.ref(version), path, line) or "",
    )


def summaries(connection: Connection, keys: Sequence[int], query: Query | None = None) -> list[Summary]:
    """Return the list rows of these records, in the order of `keys`, hits of a query marked. One statement."""
    if not keys:
        return []
    marks = ", ".join("?" * len(keys))
    rows = sqlite.query_rows(connection, f"{_SUMMARY} WHERE r.key IN ({marks})", keys)
    by_key = {row[0]: row for row in rows}
    return [_summary(by_key[key], query) for key in keys if key in by_key]


def _summary(row: Sequence[Any], query: Query | None) -> Summary:
    _, name, package, kind, exception, title, message, parts, status, module, function, flags, *releases = row
    first, last, gone_since = releases
    return Summary(
        id=name,
        package=package,
        kind=kind,
        exception=exception,
        title=title,
        message=message,
        parts=tuple(orjson.loads(parts)),
        status=status,
        module=module,
        function=function,
        flags=tuple(orjson.loads(flags)),
        first=first,
        last=last,
        gone_since=gone_since,
        hits=hits(query, message) if query else (),
    )
