"""What matching needs of every record."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import orjson
from sqlalchemy import Connection

from app.store import sqlite
from app.store.values import Seen, Signature

_STATEMENT = (
    "SELECT r.key, r.id, p.name, r.kind, r.exception, r.title, r.message, r.parts, r.first, r.last, "
    "l.version, s.path, s.line, s.function, s.wording_id FROM record AS r JOIN package AS p ON p.id = r.package_id "
    "JOIN site AS s ON s.record_key = r.key JOIN release AS l ON l.id = s.release_id {where}ORDER BY r.key, l.position"
)


def signatures(connection: Connection, *, package: str = "") -> Iterator[Signature]:
    """Yield the signatures of all records in the default order. Two statements."""
    wordings = {
        number: orjson.loads(body) for number, body in sqlite.query_rows(connection, "SELECT id, body FROM wording")
    }
    where = "WHERE p.name = ? " if package else ""
    rows = sqlite.query_rows(connection, _STATEMENT.format(where=where), (package,) if package else ())
    for _, group in groupby(rows, key=lambda row: row[0]):
        yield _signature(list(group), wordings)


def _signature(rows: list[Any], wordings: dict[int, Any]) -> Signature:
    _, record_id, package, kind, exception, title, message, parts, first, last, *_ = rows[0]
    texts = dict.fromkeys([tuple(orjson.loads(parts))])
    for number in dict.fromkeys(row[14] for row in reversed(rows)):
        body = wordings[number]
        texts[tuple(body["parts"])] = None
        for variant, _, _ in body["variants"]:
            texts[tuple(variant)] = None
    texts.pop(("",), None)
    return Signature(
        record_id, package, kind, exception, title, message, tuple(texts), tuple(_seen(rows, wordings)), first, last
    )


def _seen(rows: list[Any], wordings: dict[int, Any]) -> Iterator[Seen]:
    def agreed(row: Any) -> tuple[str, str, str, str]:
        body = wordings[row[14]]
        return row[11], row[13], body["statement"], body["condition"]

    for (path, function, statement, condition), group in groupby(rows, key=agreed):
        run = list(group)
        versions = tuple(row[10] for row in run)
        yield Seen(versions, path, function, statement, condition, tuple(row[12] for row in run))
