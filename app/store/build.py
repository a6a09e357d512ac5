"""Records and documents of one package, made from lineages, mined sites and curated files. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.lineage.chains import Lineage
from app.lineage.identity import folded_code, identity_text
from app.mine.model import MinedRelease, Site, Template
from app.records.load import RecordError
from app.records.model import CuratedRecord, FrontMatter, PinnedSource
from app.records.runs import PASSED, Run, Runs, fresh
from app.records.slug import slug
from app.store import document as doc
from app.store import titles
from app.store.life import history
from app.store.origin import Origin
from app.store.related import Neighbour, Relations

DERIVED = "derived from source"
Trigger = Callable[[Site], str | None]


@dataclass(frozen=True, slots=True)
class Record:
    """One record with everything that its document is made from.

    Shape: `sites` maps the index of a release to the site there, oldest first; `best` is the release whose site
    stands for the record: the newest, or for a pinned place the nearest. `title` is the reviewer's, else derived.
    """

    id: str
    aliases: tuple[str, ...]
    sites: Mapping[int, Site]
    best: int
    curated: CuratedRecord | None
    title: str
    message: Template

    @property
    def site(self) -> Site:
        """Return the site that stands for the record."""
        return self.sites[self.best]

    @property
    def newest(self) -> int:
        """Return the index of the newest release that has it."""
        return max(self.sites)

    @property
    def status(self) -> doc.Status:
        """Return the record's status."""
        return self.curated.front.status if self.curated else "mined"

    @property
    def flags(self) -> tuple[str, ...]:
        """Return the options that the record names: the reviewer's list where there is one."""
        if self.curated and self.curated.front.flags is not None:
            return tuple(self.curated.front.flags)
        return self.site.flags


@dataclass(frozen=True, slots=True)
class PackageBuild:
    """All records of one package in the default order (the better one first) and how to write their documents.

    Shape: `elsewhere` maps ids of other packages' records to (title, exception). `strict`: everything that curated
    records speak of is there, so that an unknown id is a fault; else it is left out. `runs` are what was run of the
    curated records' examples.
    """

    origin: Origin
    versions: tuple[str, ...]
    records: tuple[Record, ...]
    trigger: Trigger
    elsewhere: Mapping[str, tuple[str, str]]
    strict: bool
    runs: Runs

    def documents(self) -> Iterator[doc.Document]:
        """Yield the document of each record, in order.

        Raises: RecordError: a curated record names a related id that no record has.
        """
        relations = Relations([_neighbour(record) for record in self.records])
        known = {record.id: (record.title, record.site.exception) for record in self.records}
        known |= {alias: known[record.id] for record in self.records for alias in record.aliases}
        for index, record in enumerate(self.records):
            yield self._document(record, self._related(record, index, relations, known))

    def _document(self, record: Record, related: tuple[doc.Related, ...]) -> doc.Document:
        site = record.site
        message = record.message
        past = history(self.origin, self.versions, record.sites)
        body = record.curated.body if record.curated else None
        made = fresh(self.runs, record.id, record.curated.front.example) if record.curated else ()
        life = {self.versions[release] for release in record.sites}
        proven = tuple(run for run in made if run.good and run.engine in life)
        return doc.Document(
            id=record.id,
            url=f"/errors/{record.id}",
            slug=record.curated.slug if record.curated else slug(record.title),
            aliases=record.aliases,
            package=doc.PackageName(name=self.origin.package, repository=self.origin.repository or None),
            kind=site.kind,
            exception=site.exception,
            title=record.title,
            message=message.text,
            parts=message.parts,
            variants=_variants(site),
            condition=site.condition,
            module=site.path,
            status=record.status,
            meaning=body.meaning if body else None,
            trigger=body.trigger if body else self.trigger(site),
            situations=tuple(body.situations) if body else (),
            source=self._source(record),
            guards=site.guards,
            flags=record.flags,
            solutions=_solutions(self.origin.package, record.curated, past, proven, made),
            example=_example(record.curated, proven),
            defence=_defence(record.curated),
            not_verified=body.not_verified if body else None,
            history=past,
            related=related,
            provenance=self._provenance(record),
        )

    def _source(self, record: Record) -> doc.Source:
        site = record.site
        ref = self.origin.ref(self.versions[record.best])
        excerpt = doc.Excerpt(ref=ref, start_line=site.excerpt_line, text=site.excerpt) if site.excerpt else None
        pinned = record.curated.front.source if record.curated else None
        if pinned is None:
            path, line, end_line, date = site.path, site.line, site.end_line, None
        else:
            ref, date, path = pinned.ref, pinned.ref_date, self.origin.wheel_path(pinned.path)
            line, end_line = pinned.line, pinned.end_line or pinned.line
        return doc.Source(
            path=self.origin.repository_path(path),
            line=line,
            end_line=end_line,
            function=site.function,
            ref=ref,
            ref_date=date,
            url=self.origin.link(ref, path, line),
            excerpt=excerpt,
        )

    def _provenance(self, record: Record) -> doc.Provenance:
        pinned = record.curated.front.source if record.curated else None
        ref = pinned.ref if pinned else self.origin.ref(self.versions[record.best])
        stated = record.curated.front.provenance if record.curated else None
        return doc.Provenance(
            analysis=stated.analysis if stated else DERIVED,
            source=f"{self.origin.repository or self.origin.package}@{ref}",
            report_url=stated.report_url if stated else None,
        )

    def _related(
        self, record: Record, index: int, relations: Relations, known: Mapping[str, tuple[str, str]]
    ) -> tuple[doc.Related, ...]:
        chosen: dict[str, doc.Related] = {}
        for stated in record.curated.front.related if record.curated else ():
            found = known.get(stated.id) or self.elsewhere.get(stated.id)
            if found is not None:
                chosen[stated.id] = doc.Related(id=stated.id, title=found[0], exception=found[1], why=stated.why)
            elif self.strict:
                file = record.curated.file if record.curated else ""
                raise RecordError(f"{self.origin.package}/{file}: related: no record has the id {stated.id}")
        for other, why in relations.of(index):
            near = self.records[other]
            near_by = doc.Related(id=near.id, title=near.title, exception=near.site.exception, why=why)
            chosen.setdefault(near.id, near_by)
        return tuple(chosen.values())


def records(
    releases: Sequence[MinedRelease], lineages: Sequence[Lineage], curated: Mapping[str, CuratedRecord]
) -> tuple[Record, ...]:
    """Return the records of a package in the default order: reviewed first, then what the newest release has."""
    made = [_record(releases, lineage, curated.get(lineage.id)) for lineage in lineages]
    newest = len(releases) - 1
    return tuple(sorted(made, key=lambda r: (r.status == "mined", r.newest != newest, r.site.path, r.site.line, r.id)))


def _record(releases: Sequence[MinedRelease], lineage: Lineage, curated: CuratedRecord | None) -> Record:
    sites = {r: releases[r].sites[i] for r, i in lineage.sites}
    best = max(sites)
    if curated is not None and curated.front.source is not None:
        # The release whose place is nearest to the pinned one shows the text that the reviewer read.
        front, pinned = curated.front, curated.front.source
        best = min(sites, key=lambda r: _distance(sites[r], front, pinned, r))
    site = sites[best]
    title = curated.front.title if curated else titles.title(site)
    return Record(lineage.id, lineage.aliases, sites, best, curated, title, titles.message(site))


def _distance(site: Site, front: FrontMatter, pinned: PinnedSource, release: int) -> tuple[bool, bool, int, int]:
    """Return how far a site is from a curated record's place; of equals the newest is the nearest."""
    other_text = folded_code(identity_text(site)) != folded_code(front.message)
    elsewhere = not pinned.path.endswith(site.path)
    return other_text, elsewhere, abs(site.line - pinned.line), -release


def _neighbour(record: Record) -> Neighbour:
    site = record.site
    return Neighbour(identity_text(site) if site.template else "", site.path, site.function, record.flags)


def _variants(site: Site) -> tuple[doc.TextVariant, ...]:
    return tuple(
        doc.TextVariant(
            message=variant.template.text, parts=variant.template.parts, path=variant.path, function=variant.function
        )
        for variant in site.variants
    )


def _solutions(
    package: str, curated: CuratedRecord | None, past: doc.History, proven: Sequence[Run], made: Sequence[Run]
) -> tuple[doc.Solution, ...]:
    """Return the solutions with the runs that carried them out: the example's `after`, `before` after an upgrade."""
    gone = past.gone_since
    carried_out = curated.front.example.solution if curated else None
    upgraded = tuple(_verified(run, run.before) for run in made if run.engine == gone and run.before == PASSED)
    solutions: list[doc.Solution] = []
    for number, text in enumerate(curated.body.solutions if curated else (), start=1):
        upgrade = upgraded if gone and gone in text and text.startswith("Upgrade") else ()
        carried = tuple(_verified(run, run.after) for run in proven) if number == carried_out else ()
        solutions.append(doc.Solution(text=text, verified=(*carried, *upgrade)))
    # A run that met another error there shows that only the wording or the place has changed.
    refuted = any(run.engine == gone and run.before != PASSED for run in made)
    if gone and not refuted and not any(gone in solution.text for solution in solutions):
        text = f"Upgrade {package} to {gone} or later: this error is gone since {gone}."
        solutions.append(doc.Solution(text=text, derived=True, verified=upgraded))
    return tuple(solutions)


def _verified(run: Run, happened: str) -> doc.Verified:
    return doc.Verified(engine=run.engine, run=happened, date=run.date, hardware=run.hardware)


def _example(curated: CuratedRecord | None, proven: Sequence[Run]) -> doc.Example | None:
    if curated is None:
        return None
    example = curated.front.example
    return doc.Example(
        before=example.before,
        after=example.after,
        engines=tuple(example.engines),
        hardware=example.hardware,
        solution=example.solution,
        verified=tuple(
            doc.VerifiedExample(
                engine=run.engine, before=run.before, after=run.after, date=run.date, hardware=run.hardware
            )
            for run in proven
        ),
    )


def _defence(curated: CuratedRecord | None) -> doc.Defence | None:
    if curated is None:
        return None
    body = curated.body
    return doc.Defence(strategy=body.strategy, code=body.code, prevention=tuple(body.prevention))
