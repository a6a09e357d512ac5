"""Reads of packages, releases and options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import orjson
from sqlalchemy import Connection

from app.errors import NotFound
from app.store import facets, sqlite
from app.store.reads import generation, summaries
from app.store.values import Counts, Flag, Package, Release, ReleaseChanges, Summary

_RELEASE = (
    "SELECT p.name, l.version, l.sha256, l.files, l.lines, l.failed, l.omitted, l.sites, l.records, l.raises, "
    "l.templated, l.id, l.position FROM release AS l JOIN package AS p ON p.id = l.package_id "
)
_PACKAGE = "SELECT id, name, repository, host, license FROM package "
_FACET_VALUES = 30


def releases(connection: Connection, *, package: str = "") -> tuple[Release, ...]:
    """Return the ingested releases, by package, oldest first."""
    where = "WHERE p.name = ? " if package else ""
    rows = sqlite.query_rows(connection, f"{_RELEASE}{where}ORDER BY p.name, l.position", (package,) if package else ())
    return tuple(map(_release, rows))


def _release(row: Sequence[Any]) -> Release:
    package, version, sha256, files, lines, failed, omitted, *numbers = row[:11]
    files_failed = tuple((path, why) for path, why in orjson.loads(failed))
    return Release(package, version, sha256, files, lines, files_failed, orjson.loads(omitted), *numbers)


def packages(connection: Connection) -> tuple[Package, ...]:
    """Return all packages by name."""
    rows = sqlite.query_rows(connection, f"{_PACKAGE}ORDER BY name")
    return tuple(_package(connection, row) for row in rows)


def package(connection: Connection, owner: str, name: str) -> Package:
    """Return the package whose repository is owner/name.

    Raises: NotFound: no such package.
    """
    rows = sqlite.query_rows(connection, f"{_PACKAGE}WHERE repository = ?", (f"{owner}/{name}",))
    if not rows:
        raise NotFound(f"no package of the repository {f'{owner}/{name}'[:80]!r} was ingested")
    return _package(connection, rows[0])


def _package(connection: Connection, row: Sequence[Any]) -> Package:
    _, name, repository, host, license_ = row
    index = facets.index(connection, generation(connection))
    own = index.values(connection, "package").get(name, 0)
    counted = {
        dimension: _counts(index.values(connection, dimension), own)
        for dimension in ("kind", "status", "exception", "flag")
    }
    newest_first = tuple(reversed(releases(connection, package=name)))
    return Package(name, repository, host, license_, newest_first, own.bit_count(), counted)


def _counts(values: Mapping[str, int], under: int) -> dict[str, int]:
    counted = {value: n for value, of in values.items() if (n := (of & under).bit_count())}
    return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:_FACET_VALUES])


def flag(connection: Connection, flag: str, *, limit: int = 200) -> Flag:
    """Return an option string ("--tp-size"; the dashes may be left out) with its records.

    Raises: NotFound: no record names it.
    """
    index = facets.index(connection, generation(connection))
    values = index.values(connection, "flag")
    name = flag if flag in values else "--" + flag.lstrip("-")
    if name not in values:
        raise NotFound(f"no error names the option {flag[:60]!r}")
    field, spellings = _option(connection, name)
    keys = list(islice(facets.keys(values[name]), limit))
    return Flag(name, spellings, field, tuple(summaries(connection, keys)), values[name].bit_count())


def _option(connection: Connection, name: str) -> tuple[str, tuple[str, ...]]:
    """Return the configuration field of an option and its other spellings, as the newest release has them."""
    rows = sqlite.query_rows(connection, "SELECT options FROM release ORDER BY position DESC, package_id")
    for (options,) in rows:
        for field, strings in orjson.loads(options).items():
            if name in strings:
                return field, tuple(string for string in strings if string != name)
    return "", ()


def flags(connection: Connection, *, package: str = "") -> Mapping[str, int]:
    """Return every option string that a record names, with the number of records, the most frequent first."""
    index = facets.index(connection, generation(connection))
    if not package:
        return dict(index.totals(connection, "flag"))
    own = index.values(connection, "package").get(package, 0)
    counted = {value: n for value, of in index.values(connection, "flag").items() if (n := (of & own).bit_count())}
    return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))


def release(connection: Connection, version: str, *, package: str = "", limit: int = 100) -> ReleaseChanges:
    """Return what one release changed. Without `package` the first package that has this version is taken.

    Shape: "moved" holds moves of file or function only; lines move in nearly every record.
    Raises: NotFound: the release was not ingested.
    """
    where = "WHERE l.version = ?" + (" AND p.name = ?" if package else "")
    values = (version, package) if package else (version,)
    rows = sqlite.query_rows(connection, f"{_RELEASE}{where} ORDER BY p.id LIMIT 1", values)
    if not rows:
        raise NotFound(f"the release {version[:60]!r} was not ingested")
    found = _release(rows[0])
    release_id, position = rows[0][11:]
    versions = [other.version for other in releases(connection, package=found.package)]
    counts_, lists = _changes(connection, release_id, limit)
    return ReleaseChanges(
        release=found,
        before=versions[position - 1] if position else "",
        after=versions[position + 1] if position + 1 < len(versions) else "",
        new=lists["new"],
        moved=lists["moved"],
        reworded=lists["reworded"],
        removed=lists["gone"],
        counts={"removed" if name == "gone" else name: n for name, n in counts_.items()},
    )


def _changes(
    connection: Connection, release_id: int, limit: int
) -> tuple[dict[str, int], dict[str, tuple[Summary, ...]]]:
    """Return number and first records of each kind of change."""
    totals: dict[str, int] = {}
    lists: dict[str, tuple[Summary, ...]] = {}
    for name, also in (("new", "back"), ("moved", "moved"), ("reworded", "reworded"), ("gone", "gone")):
        where = "FROM change WHERE release_id = ? AND what IN (?, ?)"
        totals[name] = sqlite.query_rows(connection, f"SELECT COUNT(*) {where}", (release_id, name, also))[0][0]
        found = sqlite.query_rows(
            connection, f"SELECT record_key {where} ORDER BY record_key LIMIT ?", (release_id, name, also, limit)
        )
        lists[name] = tuple(summaries(connection, [row[0] for row in found]))
    return totals, lists


def counts(connection: Connection) -> Counts:
    """Return the size of the database. One statement."""
    row = sqlite.query_rows(
        connection,
        "SELECT (SELECT COUNT(*) FROM package), (SELECT COUNT(*) FROM release), (SELECT COUNT(*) FROM record), "
        "(SELECT COALESCE(SUM(total), 0) FROM facet WHERE dimension = 'status' AND value = 'reviewed'), "
        "(SELECT COALESCE(SUM(sites), 0) FROM release)",
    )[0]
    return Counts(*row)


def repository(connection: Connection, package: str) -> str:
    """Return a package's repository, "" where it is not known or the package was never ingested."""
    rows = sqlite.query_rows(connection, "SELECT repository FROM package WHERE name = ?", (package,))
    return str(rows[0][0]) if rows else ""
