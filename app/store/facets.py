"""Facets as bit sets over `record.key`: any combination of filters is counted by a few ANDs."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Literal
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine

from app.store import sqlite

DIMENSIONS = ("exception", "kind", "status", "flag", "module", "release", "package")

_KEPT_FOLDERS = 32
_BITS = [[bit for bit in range(8) if byte >> bit & 1] for byte in range(256)]


def bits(keys: Iterable[int]) -> int:
    """Return the set of keys as an integer: bit k is set where k is in it."""
    listed = list(keys)
    if not listed:
        return 0
    field = bytearray(max(listed) // 8 + 1)
    for key in listed:
        field[key >> 3] |= 1 << (key & 7)
    return int.from_bytes(field, "little")


def keys(of: int, *, after: int = -1) -> Iterator[int]:
    """Yield the keys of a set that are greater than `after`, in order."""
    start = after + 1
    base = start & ~7
    data = (of >> base).to_bytes(max(0, of.bit_length() - base) // 8 + 1, "little") if of.bit_length() > base else b""
    for offset, byte in enumerate(data):
        for bit in _BITS[byte]:
            key = base + offset * 8 + bit
            if key >= start:
                yield key


def among(listed: Iterable[int], of: int) -> list[int]:
    """Return the keys of a list that are in a set, in their order."""
    data = of.to_bytes(of.bit_length() // 8 + 1, "little")
    end = len(data) * 8
    return [key for key in listed if key < end and data[key >> 3] >> (key & 7) & 1]


def packed(of: int) -> bytes:
    """Return a set as bytes for the database."""
    return zlib.compress(of.to_bytes(of.bit_length() // 8 + 1, "little"), 6)


def unpacked(data: bytes) -> int:
    """Return the set that `packed` wrote."""
    return int.from_bytes(zlib.decompress(data), "little")


def ancestors(path: str) -> Iterator[str]:
    """Yield a path and the folders above it, the outermost first."""
    steps = path.split("/")
    for end in range(1, len(steps) + 1):
        yield "/".join(steps[:end])


class FacetIndex:
    """All facets of one generation of the database, read when first asked for."""

    def __init__(self, generation: str) -> None:
        self.generation = generation
        self._values: dict[str, dict[str, int]] = {}
        self._totals: dict[str, dict[str, int]] = {}
        self._below: dict[str, list[str]] = {}
        self._exceptions_of: Sequence[str] = ()
        self._folders_of: dict[tuple[str, ...], Sequence[str]] = {}
        self._flags_of: Mapping[int, tuple[str, ...]] | None = None
        self._everything = 0

    def values(self, connection: Connection, dimension: str) -> Mapping[str, int]:
        """Return the set of every value of a dimension, the most frequent value first."""
        found = self._values.get(dimension)
        if found is None:
            statement = "SELECT value, bits, total FROM facet WHERE dimension = ? ORDER BY total DESC, value"
            rows = sqlite.query_rows(connection, statement, (dimension,))
            self._totals[dimension] = {value: total for value, _, total in rows}
            found = self._values[dimension] = {value: unpacked(data) for value, data, _ in rows}
        return found

    def totals(self, connection: Connection, dimension: str) -> Mapping[str, int]:
        """Return the number of records of every value, the most frequent first."""
        self.values(connection, dimension)
        return self._totals[dimension]

    def exceptions_of(self, connection: Connection) -> Sequence[str]:
        """Return the exception of every record by key.

        Counting the hits of a search by their values costs less than an AND with the set of every value.
        """
        if not self._exceptions_of:
            self._exceptions_of = _by_key(connection, "exception")
        return self._exceptions_of

    def folders_of(self, connection: Connection, folders: Sequence[str]) -> Sequence[str]:
        """Return by key which of these folders or files, all of one depth, holds the record; "" where none does."""
        name = tuple(folders)
        found = self._folders_of.get(name)
        if found is None:
            depth = folders[0].count("/") + 1 if folders else 0
            shown = {folder: folder for folder in folders}
            modules = _by_key(connection, "module")
            found = [shown.get("/".join(module.split("/", depth)[:depth]), "") for module in modules]
            if len(self._folders_of) >= _KEPT_FOLDERS:
                self._folders_of.clear()
            self._folders_of[name] = found
        return found

    def flags_of(self, connection: Connection) -> Mapping[int, tuple[str, ...]]:
        """Return the options of every record that names one, by key."""
        if self._flags_of is None:
            collected: dict[int, tuple[str, ...]] = {}
            for key, flag in sqlite.query_rows(connection, "SELECT record_key, flag FROM record_flag"):
                collected[key] = (*collected.get(key, ()), sys.intern(flag))
            self._flags_of = collected
        return self._flags_of

    def below(self, connection: Connection, folder: str) -> list[str]:
        """Return the folders and files right below one; "" is the top."""
        if not self._below:
            for path in self.values(connection, "module"):
                self._below.setdefault(path.rpartition("/")[0], []).append(path)
        return self._below.get(folder, [])

    def all(self, connection: Connection) -> int:
        """Return the set of all records."""
        if not self._everything:
            for of in self.values(connection, "kind").values():
                self._everything |= of
        return self._everything


def _by_key(connection: Connection, column: Literal["exception", "module"]) -> list[str]:
    rows = sqlite.query_rows(connection, f"SELECT key, {column} FROM record ORDER BY key")
    listed = [""] * (rows[-1][0] + 1 if rows else 1)
    for key, value in rows:
        listed[key] = sys.intern(value)
    return listed


_indices: WeakKeyDictionary[Engine, FacetIndex] = WeakKeyDictionary()
_lock = Lock()


def index(connection: Connection, generation: str) -> FacetIndex:
    """Return the facets of this generation; the former one is dropped."""
    with _lock:
        found = _indices.get(connection.engine)
        if found is None or found.generation != generation:
            found = _indices[connection.engine] = FacetIndex(generation)
        return found


def rebuild(connection: Connection) -> None:
    """Write the facets of all records anew (the writing connection)."""
    sets: dict[tuple[str, str], list[int]] = {}
    read = sqlite.query_rows
    rows = read(connection, "SELECT r.key, r.exception, r.kind, r.status, r.module, p.name FROM record AS r "
                            "JOIN package AS p ON p.id = r.package_id")  # fmt: skip
    for key, exception, kind, status, module, package in rows:
        for name in (("exception", exception), ("kind", kind), ("status", status), ("package", package)):
            sets.setdefault(name, []).append(key)
        for folder in ancestors(module):
            sets.setdefault(("module", folder), []).append(key)
    for key, flag in read(connection, "SELECT record_key, flag FROM record_flag"):
        sets.setdefault(("flag", flag), []).append(key)
    placed = "SELECT s.record_key, l.version FROM site AS s JOIN release AS l ON l.id = s.release_id"
    for key, version in read(connection, placed):
        sets.setdefault(("release", version), []).append(key)
    connection.exec_driver_sql("DELETE FROM facet")
    packed_rows = ((d, value[:400], len(found), packed(bits(found))) for (d, value), found in sets.items() if value)
    sqlite.insert_many(connection, "facet", ("dimension", "value", "total", "bits"), packed_rows)
