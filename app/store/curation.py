"""Curated files against what was ingested: does each find its site, do its facts agree, do its relations exist."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection

from app.lineage.identity import folded_code
from app.lineage.ledger import load as load_ledger
from app.records.load import survey
from app.records.model import CuratedRecord
from app.records.runs import Runs
from app.records.runs import load as load_runs
from app.store import examples, queries, sqlite
from app.store.engine import Store
from app.store.examples import Runner
from app.store.values import Signature


@dataclass(frozen=True, slots=True)
class Report:
    """What is wrong with the curated files, and what is worth knowing."""

    records: int
    problems: tuple[str, ...]
    notes: tuple[str, ...]


def check(store: Store | None, folder: Path, runner: Runner | None = None) -> Report:
    """Check the curated files of every package below a folder; without a store only their form.

    Shape: `runner` says which examples must have stored runs, and on which releases; None: none must.
    """
    problems: list[str] = []
    notes: list[str] = []
    count = 0
    for package in sorted(path for path in folder.glob("*") if path.is_dir()):
        records, broken = survey(package)
        problems += broken
        count += len(records)
        if store is None or not _is_complete(store, folder.parent / "lineage" / f"{package.name}.tsv", package.name):
            notes.append(f"{package.name}: not compared with the sources, since not all its releases are ingested")
            continue
        with store.reading() as connection:
            found = _Comparison(connection, package.name, records)
            problems += found.problems()
            notes += found.notes()
            if runner is not None:
                problems += found.unproven(load_runs(folder.parent / "runs" / f"{package.name}.jsonl"), runner)
    return Report(count, tuple(problems), tuple(notes))


def _is_complete(store: Store, ledger: Path, package: str) -> bool:
    """Tell whether every release is there that curated records may speak of: those of the ledger, else any."""
    with store.reading() as connection:
        ingested = {release.version for release in queries.releases(connection, package=package)}
    return bool(ingested) and load_ledger(ledger).releases <= ingested


class _Comparison:
    """The curated records of one package beside its signatures."""

    def __init__(self, connection: Connection, package: str, records: Sequence[CuratedRecord]) -> None:
        self.connection = connection
        self.package = package
        self.records = [record for record in records if record.front.status != "withdrawn"]
        self.by_function: dict[tuple[str, str], list[Signature]] = {}
        names = {record.front.function for record in records}
        for signature in queries.signatures(connection, package=package):
            for function in {seen.function for seen in signature.seen} & names:
                self.by_function.setdefault((signature.exception, function), []).append(signature)

    def problems(self) -> Iterator[str]:
        """Yield what must be mended."""
        for record in self.records:
            where = f"{self.package}/{record.file}"
            sites = self._sites(record)
            if not sites:
                near = self._near(record)
                yield f"{where}: message: no ingested release has this exception, message and function{near}"
            if sites and all(site.kind != record.front.kind for site in sites):
                yield f"{where}: kind: {record.front.kind!r}, but the source has a {sites[0].kind!r}"
            for related in record.front.related:
                if not self._known(related.id):
                    yield f"{where}: related: no record has the id {related.id}"

    def notes(self) -> Iterator[str]:
        """Yield which mined record stands behind an id that is not its own yet."""
        for record in self.records:
            for site in self._sites(record):
                if site.record_id != record.front.id:
                    yield f"{self.package}/{record.file}: its site is the mined record {site.record_id}"

    def unproven(self, runs: Runs, runner: Runner) -> Iterator[str]:
        """Yield which examples lack a run, or have one that shows something else than the record says."""
        lives = {record.front.id: examples.life(self.connection, record.front.id) for record in self.records}
        for problem in examples.problems(self.records, lives, runs, runner):
            yield f"{self.package}/{problem}"

    def _sites(self, record: CuratedRecord) -> list[Signature]:
        front = record.front
        wanted = folded_code(front.message)
        return [
            signature
            for signature in self.by_function.get((front.exception, front.function), ())
            if wanted in _texts(signature)
            and (not front.path or any(seen.path == front.path for seen in signature.seen))
        ]

    def _near(self, record: CuratedRecord) -> str:
        there = self.by_function.get((record.front.exception, record.front.function), [])
        texts = sorted({signature.message for signature in there if signature.message})
        return f"; that function says {texts[0][:150]!r}" if texts else ""

    def _known(self, record_id: str) -> bool:
        ours = any(record.front.id == record_id for record in self.records)
        rows = sqlite.query_rows(
            self.connection,
            "SELECT 1 FROM record WHERE id = ? UNION ALL SELECT 1 FROM alias WHERE alias = ?",
            (record_id, record_id),
        )
        return ours or bool(rows)


def _texts(signature: Signature) -> set[str]:
    texts = {"".join(p if i % 2 == 0 else "{" + p + "}" for i, p in enumerate(parts)) for parts in signature.texts}
    if not texts:
        texts = {seen.condition for seen in signature.seen}
    return {folded_code(text) for text in texts}
