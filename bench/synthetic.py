"""Databases of any number of records whose words are spread as in the mined ones, to see how search grows."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import orjson
from sqlalchemy import Connection

from app.store import facets, migrate, sqlite
from app.store.engine import Store
from app.store.queries import Signature

_WORD = re.compile(r"\w+")
_CHANGED = 0.3
_INVENTED = 0.02
_RECORD = "key id package_id kind exception title message parts status module function flags first last gone_since"


def build(source: Store, file: Path, records: int, *, seed: int = 1) -> Store:
    """Return a database of `records` records; an existing file is used as it is.

    Each record is a mined one in which a third of the words are exchanged for words of other records, drawn as often as
    they occur, and some for words that no other record has: a vocabulary grows with its corpus.
    """
    store = Store(f"sqlite:///{file}")
    if file.exists():
        return store
    with source.reading() as connection:
        mined = sqlite.query_rows(
            connection, "SELECT kind, exception, title, message, parts, status, module, function, flags FROM record"
        )
        words = [word for row in mined for word in _WORD.findall(row[3])]
    draw = random.Random(seed)
    migrate.upgrade(store)
    with store.writing() as connection:
        sqlite.prepare_bulk(connection)
        connection.exec_driver_sql("INSERT INTO package VALUES (1, 'synthetic', 'a/b', '', '', '', '', '')")
        for start in range(1, records + 1, 50_000):
            rows = list(_records(draw, mined, words, range(start, min(start + 50_000, records + 1))))
            sqlite.insert_many(connection, "record", _RECORD.split(), rows)
            sqlite.insert_many(
                connection,
                "record_flag",
                ("flag", "record_key"),
                ((f, r[0]) for r in rows for f in orjson.loads(str(r[11]))),
            )
            sqlite.index_records(connection, map(_search_row, rows))
        facets.rebuild(connection)
        connection.exec_driver_sql("INSERT INTO meta VALUES ('generation', 'synthetic')")
        sqlite.finish_bulk(connection)
    return store


def queries(connection: Connection, count: int, *, seed: int = 2) -> list[str]:
    """Return what readers type: two or three words of a message, the last one often half; a flag; a path."""
    rows = sqlite.query_rows(connection, "SELECT message, flags, module FROM record WHERE message <> ''")
    draw = random.Random(seed)
    found: list[str] = []
    while len(found) < count:
        message, flags, module = draw.choice(rows)
        words = [word for word in _WORD.findall(message) if len(word) > 2]
        kind = draw.random()
        if kind < 0.1 and flags != "[]":
            found.append(draw.choice(orjson.loads(flags)))
        elif kind < 0.2:
            found.append(" ".join(module.rsplit("/", 1)[-1].split("_")[:2]))
        elif len(words) >= 3:
            start = draw.randrange(len(words) - 2)
            chosen = words[start : start + draw.choice((2, 3))]
            if draw.random() < 0.4:
                chosen[-1] = chosen[-1][: max(3, len(chosen[-1]) // 2)]
            found.append(" ".join(chosen))
    return found


def signatures(mined: Sequence[Signature], count: int, *, seed: int = 3) -> Iterator[Signature]:
    """Yield records for the index of identify: mined ones, in whose text words are exchanged in the same way."""
    sayers = [s for s in mined if s.texts]
    words = [word for s in sayers for part in s.texts[0][0::2] for word in _WORD.findall(part)]
    draw = random.Random(seed)
    for key in range(count):
        signature = draw.choice(sayers)
        text = tuple(
            _WORD.sub(lambda match: _exchanged(draw, words, match[0]), part) if n % 2 == 0 else part
            for n, part in enumerate(signature.texts[0])
        )
        yield replace(signature, record_id=f"{key:016x}", texts=(text,), seen=signature.seen[-1:])


def _records(
    draw: random.Random, mined: list[tuple[str, ...]], words: list[str], keys: range
) -> Iterator[tuple[object, ...]]:
    for key in keys:
        kind, exception, title, message, _, status, module, function, flags = draw.choice(mined)
        text = _WORD.sub(lambda match: _exchanged(draw, words, match[0]), message)
        parts = orjson.dumps([text]).decode()
        yield (
            key, f"{key:016x}", 1, kind, exception, title, text, parts, status, module, function, flags, "1", "1", "",
        )  # fmt: skip


def _exchanged(draw: random.Random, words: list[str], word: str) -> str:
    chance = draw.random()
    if chance < _INVENTED:
        return f"w{draw.getrandbits(40):x}"
    return draw.choice(words) if chance < _CHANGED else word


def _search_row(row: tuple[object, ...]) -> tuple[object, ...]:
    key, title, message, module, function, flags = row[0], row[5], row[6], row[9], row[10], row[11]
    names = " ".join(orjson.loads(str(flags)))
    return (key, title, message, names, function, module, "", "")
