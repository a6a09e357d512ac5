"""Mined releases and curated files -> the derived tables of one package, in one transaction."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

import orjson
from sqlalchemy import Connection

from app.lineage.chains import Pin, lineages
from app.lineage.ledger import Ledger
from app.mine.model import MinedRelease, Site
from app.records.load import RecordError
from app.records.model import CuratedRecord
from app.records.runs import Runs
from app.store import build, facets, life, search, sqlite, stored
from app.store.document import Document
from app.store.engine import Store
from app.store.origin import Origin

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class PackageInput:
    """All that the rows of one package are made from.

    Shape: `releases` are oldest first; `release_keys` says from what each was mined, `key` from what everything was
    made. `strict`: every release that the curated records speak of is there, so that each must find its site.
    """

    origin: Origin
    releases: tuple[MinedRelease, ...]
    release_keys: Mapping[str, str]
    curated: tuple[CuratedRecord, ...]
    ledger: Ledger
    key: str
    strict: bool
    trigger: build.Trigger
    runs: Runs = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredPackage:
    """From what the rows of a package were made, release by release."""

    key: str
    release_keys: Mapping[str, str]
    sha256: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an ingest wrote, and the curated records that found no site among these releases."""

    records: int
    sites: int
    unmatched: Mapping[str, str]


def stored_package(connection: Connection, name: str) -> StoredPackage | None:
    """Return from what a package's rows were made; None where it was never ingested."""
    found = sqlite.query_rows(connection, "SELECT id, key FROM package WHERE name = ?", (name,))
    if not found:
        return None
    rows = sqlite.query_rows(
        connection, "SELECT version, key, sha256 FROM release WHERE package_id = ? ORDER BY position", (found[0][0],)
    )
    return StoredPackage(found[0][1], {v: key for v, key, _ in rows}, {v: sha for v, _, sha in rows})


def stored_origin(connection: Connection, name: str) -> Origin:
    """Return the origin of a package that was ingested before."""
    statement = "SELECT name, repository, host, source_root, tag, license FROM package WHERE name = ?"
    return Origin(*sqlite.query_rows(connection, statement, (name,))[0])


def ingest(store: Store, package: PackageInput, progress: Progress) -> Outcome:
    """Replace a package's rows. Readers see the former state until the one commit at the end.

    Raises: RecordError: a curated record finds no site, or names a record that is not there.
    """
    releases = tuple(replace(r, sites=tuple(map(stored.storable, r.sites))) for r in package.releases)
    package = replace(package, releases=releases)
    progress("linking releases", 0, 1)
    made, unmatched = _build(package)
    with store.writing() as connection:
        sqlite.prepare_bulk(connection)
        made = replace(made, elsewhere=_elsewhere(connection, package.origin.package))
        _Writer(connection, package, made, progress).write()
        sqlite.finish_bulk(connection)
        _set_generation(connection)
    with store.engine.connect() as connection:
        sqlite.shrink_log(connection)
    return Outcome(len(made.records), sum(len(r.sites) for r in package.releases), unmatched)


def _build(package: PackageInput) -> tuple[build.PackageBuild, Mapping[str, str]]:
    origin = package.origin
    curated = {record.front.id: record for record in package.curated}
    pins = [_pin(origin, record) for record in package.curated]
    found = lineages(origin.repository or origin.package, package.releases, ledger=package.ledger, pins=pins)
    unmatched = {name: why for name, why in found.unmatched.items() if curated[name].front.status != "withdrawn"}
    if package.strict and unmatched:
        lines = (f"{origin.package}/{curated[name].file}: message: {why}" for name, why in unmatched.items())
        raise RecordError("\n".join(lines))
    records = build.records(package.releases, found.records, curated)
    versions = tuple(release.version for release in package.releases)
    made = build.PackageBuild(origin, versions, records, package.trigger, {}, package.strict, package.runs)
    return made, unmatched


def _pin(origin: Origin, record: CuratedRecord) -> Pin:
    front = record.front
    line = front.source.line if front.source else 0
    path = origin.wheel_path(front.path) if front.path else ""
    return Pin(front.id, front.exception, front.message, front.function, path, line)


def _elsewhere(connection: Connection, package: str) -> dict[str, tuple[str, str]]:
    rows = sqlite.query_rows(
        connection,
        "SELECT r.id, r.title, r.exception FROM record AS r JOIN package AS p ON p.id = r.package_id "
        "WHERE p.name <> ? AND r.status <> 'mined'",
        (package,),
    )
    return {name: (title, exception) for name, title, exception in rows}


def _set_generation(connection: Connection) -> None:
    rows = sqlite.query_rows(connection, "SELECT name, key FROM package ORDER BY name")
    value = hashlib.sha256(orjson.dumps(rows)).hexdigest()[:16]
    connection.exec_driver_sql("DELETE FROM meta WHERE name = 'generation'")
    sqlite.insert_many(connection, "meta", ("name", "value"), [("generation", value)])


_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_INDEXED = 4000


class _Writer:
    """The rows of one package, table by table."""

    def __init__(
        self, connection: Connection, package: PackageInput, made: build.PackageBuild, progress: Progress
    ) -> None:
        self.connection = connection
        self.package = package
        self.made = made
        self.progress = progress
        self.package_id = 0
        self.release_ids: list[int] = []
        self.first_key = 1

    def write(self) -> None:
        """Write all of it."""
        self._forget()
        self._write_package()
        self._write_records()
        self._write_sites()
        self._write_changes()
        self._write_documents()
        self._write_search()
        self.progress("counting facets", 0, 1)
        facets.rebuild(self.connection)

    def _insert(self, table: str, columns: str, rows: Iterator[tuple[object, ...]]) -> None:
        sqlite.insert_many(self.connection, table, columns.split(), rows)

    def _forget(self) -> None:
        """Delete the package's rows, those first that others refer to last."""
        run = self.connection.exec_driver_sql
        found = sqlite.query_rows(
            self.connection,
            "SELECT p.id, MIN(r.key), MAX(r.key) FROM package AS p LEFT JOIN record AS r ON r.package_id = p.id "
            "WHERE p.name = ? GROUP BY p.id",
            (self.package.origin.package,),
        )
        for package_id, first, last in found:
            if first is not None:
                self.progress("dropping the former rows", 0, 1)
                sqlite.forget_records(self.connection, first=first, last=last)
                for table in ("site", "change", "record_flag", "alias", "document"):
                    run(f"DELETE FROM {table} WHERE record_key BETWEEN ? AND ?", (first, last))
                run("DELETE FROM record WHERE key BETWEEN ? AND ?", (first, last))
                run("DELETE FROM wording WHERE id NOT IN (SELECT wording_id FROM site)")
                run("DELETE FROM excerpt WHERE id NOT IN (SELECT excerpt_id FROM site)")
            run("DELETE FROM release WHERE package_id = ?", (package_id,))
            run("DELETE FROM package WHERE id = ?", (package_id,))

    def _write_package(self) -> None:
        origin = self.package.origin
        self.package_id = self._next("package", "id")
        row = (self.package_id, origin.package, origin.repository, origin.host, origin.source_root, origin.tag,
               origin.license, self.package.key)  # fmt: skip
        self._insert("package", "id name repository host source_root tag license key", iter([row]))
        first = self._next("release", "id")
        self.release_ids = [first + position for position in range(len(self.package.releases))]
        self._insert(
            "release",
            "id package_id position version key sha256 files lines failed options omitted sites records raises "
            "templated",
            (self._release_row(position, release) for position, release in enumerate(self.package.releases)),
        )

    def _release_row(self, position: int, release: MinedRelease) -> tuple[object, ...]:
        raises = [site for site in release.sites if site.kind == "raise"]
        return (
            self.release_ids[position], self.package_id, position, release.version,
            self.package.release_keys[release.version], release.sha256, release.files, release.lines,
            orjson.dumps(release.failed).decode(), orjson.dumps(release.options).decode(),
            orjson.dumps(release.omitted).decode(), len(release.sites),
            sum(position in record.sites for record in self.made.records), len(raises),
            sum(bool(site.template) for site in raises),
        )  # fmt: skip

    def _write_records(self) -> None:
        self.first_key = self._free_keys(len(self.made.records))
        versions = self.made.versions
        self._insert(
            "record",
            "key id package_id kind exception title message parts status module function flags first last gone_since "
            "words",
            (
                (
                    key, r.id, self.package_id, r.site.kind, r.site.exception, r.title, r.message.text,
                    orjson.dumps(r.message.parts).decode(), r.status, r.site.path, r.site.function,
                    orjson.dumps(r.flags).decode(), versions[min(r.sites)], versions[r.newest],
                    versions[r.newest + 1] if r.newest + 1 < len(versions) else "", _scored_words(r),
                )
                for key, r in self._keyed()
            ),
        )  # fmt: skip
        self._insert("alias", "alias record_key", ((a, key) for key, r in self._keyed() for a in r.aliases))
        self._insert("record_flag", "flag record_key", ((f, key) for key, r in self._keyed() for f in set(r.flags)))

    def _keyed(self) -> Iterator[tuple[int, build.Record]]:
        return enumerate(self.made.records, start=self.first_key)

    def _write_sites(self) -> None:
        wordings = _Numbers(self._next("wording", "id"))
        excerpts = _Numbers(self._next("excerpt", "id"))
        rows = [
            (
                key, self.release_ids[r], site.path, site.line, site.end_line, site.function,
                wordings.of(stored.wording(site)), excerpts.of(site.excerpt), site.excerpt_line,
            )
            for key, record in self._keyed()
            for r, site in record.sites.items()
        ]  # fmt: skip
        self.progress("writing sites", 0, len(rows))
        self._insert("wording", "id body", ((number, body) for body, number in wordings.items()))
        self._insert("excerpt", "id body", ((n, stored.packed_excerpt(text)) for text, n in excerpts.items()))
        columns = "record_key release_id path line end_line function wording_id excerpt_id excerpt_line"
        self._insert("site", columns, iter(rows))

    def _write_changes(self) -> None:
        rows: dict[tuple[int, str, int], str] = {}
        for key, record in self._keyed():
            for r, what, detail in _changes(record.sites, len(self.release_ids)):
                rows[self.release_ids[r], what, key] = detail
        self._insert("change", "release_id what record_key detail", ((*name, detail) for name, detail in rows.items()))

    def _write_documents(self) -> None:
        total = len(self.made.records)

        def rows() -> Iterator[tuple[object, ...]]:
            for done, document in enumerate(self.made.documents()):
                if done % 500 == 0:
                    self.progress("writing documents", done, total)
                body = body_of(document)
                yield self.first_key + done, body, hashlib.sha256(body).hexdigest()[:20]

        self._insert("document", "record_key body etag", rows())
        self.progress("writing documents", total, total)

    def _write_search(self) -> None:
        self.progress("writing the search index", 0, len(self.made.records))
        sqlite.index_records(self.connection, (self._search_row(key, r) for key, r in self._keyed()))

    def _search_row(self, key: int, record: build.Record) -> tuple[object, ...]:
        site = record.site
        meaning = record.curated.body.meaning if record.curated else ""
        said = " ".join((record.message.text, *(v.template.text for v in site.variants), site.condition))
        names = " ".join((site.exception, site.function, site.path))
        return (
            key, record.title, said[:_INDEXED], " ".join(record.flags), f"{site.exception} {site.function}", site.path,
            meaning, " ".join(_CAMEL.findall(names)),
        )  # fmt: skip

    def _next(self, table: str, column: str) -> int:
        rows = sqlite.query_rows(self.connection, f"SELECT COALESCE(MAX({column}), 0) + 1 FROM {table}")
        return int(rows[0][0])

    def _free_keys(self, count: int) -> int:
        """Return the first key of the lowest free run: bit sets stay short however often packages are replaced."""
        taken = sqlite.query_rows(self.connection, "SELECT MIN(key), MAX(key) FROM record GROUP BY package_id")
        edges = sorted([(0, 0), *((low, high) for low, high in taken)])
        for (_, end), (start, _) in pairwise(edges):
            if start - end > count:
                return int(end) + 1
        return int(edges[-1][1]) + 1


def _scored_words(record: build.Record) -> str:
    site = record.site
    return search.scored_words(
        flags=record.flags,
        title=record.title,
        message=record.message.text[:_INDEXED],
        names=f"{site.exception} {site.function}",
        module=site.path,
    )


class _Numbers:
    """Numbers for texts, equal for equal texts."""

    def __init__(self, first: int) -> None:
        self._first = first
        self._numbers: dict[str, int] = {}

    def of(self, text: str) -> int:
        return self._numbers.setdefault(text, self._first + len(self._numbers))

    def items(self) -> Iterator[tuple[str, int]]:
        return iter(self._numbers.items())


def body_of(document: Document) -> bytes:
    """Return the bytes of `GET /api/errors/{id}`."""
    return document.model_dump_json().encode()


def _changes(sites: Mapping[int, Site], releases: int) -> Iterator[tuple[int, str, str]]:
    """Yield (index of the release, what, detail) of what happened to a record.

    A move by lines only is left out: it is true of nearly every record in every release, and no list shows it.
    """
    present = sorted(sites)
    if present[0] > 0:
        yield present[0], "new", ""
    for before, after in pairwise(present):
        old, new = sites[before], sites[after]
        if after > before + 1:
            yield before + 1, "gone", ""
            yield after, "back", ""
        detail = life.move(old, new)
        if detail in ("file", "function"):
            yield after, "moved", detail
        if life.reworded(old, new):
            yield after, "reworded", ""
        if life.guard_changed(old, new):
            yield after, "guard changed", ""
    if present[-1] + 1 < releases:
        yield present[-1] + 1, "gone", ""
