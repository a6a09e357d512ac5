"""Lineages: records as chains of sites through releases."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from packaging.version import InvalidVersion, Version

from app.lineage.identity import folded, folded_code, identity_text, site_ids
from app.lineage.ledger import Ledger, Section
from app.lineage.links import links
from app.mine.model import MinedRelease, Site


@dataclass(frozen=True, slots=True)
class Pin:
    """A curated record's claim on a site. `message` is the template's text, "" path fits any, `line` breaks ties."""

    id: str
    exception: str
    message: str
    function: str
    path: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Lineage:
    """One record: its id, the other ids it answers to, and its site in each release that has it.

    Shape: `sites` holds (index of the release, index of the site in it), oldest first.
    """

    id: str
    aliases: tuple[str, ...]
    sites: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Lineages:
    """All records of a package, by id, and why a pin (by its id) fits no site or several."""

    records: tuple[Lineage, ...]
    unmatched: Mapping[str, str] = field(default_factory=dict)


def version_key(version: str) -> tuple[int, Version | str]:
    """Return a sort key: PEP 440 order, and before it what is no PEP 440 version, by text."""
    try:
        return (1, Version(version))
    except InvalidVersion:
        return (0, version)


def lineages(
    repository: str, releases: Sequence[MinedRelease], *, ledger: Ledger | None = None, pins: Iterable[Pin] = ()
) -> Lineages:
    """Return the records of a package.

    Shape: `releases` are of one package, oldest first (`version_key`), each version once.
    """
    chains = _Chains(repository, releases, ledger or Ledger())
    chains.join_ids()
    chains.join_links()
    return chains.lineages(pins)


def extended(ledger: Ledger, repository: str, releases: Sequence[MinedRelease]) -> Ledger:
    """Return the ledger with a section for the releases that it does not cover; unchanged where it covers all."""
    new = tuple(release.version for release in releases if release.version not in ledger.releases)
    if not new:
        return ledger
    found = lineages(repository, releases, ledger=ledger).records
    rows = {a: record.id for record in found for a in record.aliases if a not in ledger.records}
    return Ledger.of((*ledger.sections, Section(new, rows)))


@dataclass(slots=True)
class _Chain:
    """A record in the making: site index by release index. `decided`: the ledger gave its id.

    Shape: `kept` is the chain that this one was joined to.
    """

    id: str
    decided: bool
    sites: dict[int, int]
    kept: _Chain | None = None


class _Chains:
    """All chains of a package. A chain never holds two sites of one release."""

    def __init__(self, repository: str, releases: Sequence[MinedRelease], ledger: Ledger) -> None:
        self.repository = repository
        self.releases = releases
        self.ledger = ledger
        self.ids = [site_ids(repository, release.sites) for release in releases]
        self.of: list[list[_Chain]] = []
        self.named: dict[str, _Chain] = {}

    def join_ids(self) -> None:
        """Join equal site ids of all releases, which the ledger may have declared equal.

        Ids come before links, so that a site that is gone for some releases and comes back is one record.
        """
        chains = self.named
        decided = set(self.ledger.records.values())
        for r, ids in enumerate(self.ids):
            covered = self.releases[r].version in self.ledger.releases
            row: list[_Chain] = [None] * len(ids)  # type: ignore[list-item]
            # Of two sites whose ids the ledger gives to one record, the later name of it goes on with the record.
            for i in sorted(range(len(ids)), key=lambda i: ids[i] == self.ledger.record(ids[i])):
                name = self.ledger.record(ids[i])
                chain = chains.get(name)
                if chain is None:
                    chain = chains[name] = _Chain(name, name in decided, {})
                elif r in chain.sites:
                    name = _again(ids[i])
                    chain = chains.setdefault(name, _Chain(name, False, {}))
                chain.decided |= covered
                chain.sites[r] = i
                row[i] = chain
            self.of.append(row)

    def join_links(self) -> None:
        """Join chains along the links of neighbouring releases, unless the ledger decides both releases."""
        for r in range(1, len(self.releases)):
            pair = (self.releases[r - 1].version, self.releases[r].version)
            if not self.ledger.releases.issuperset(pair):
                self._join_neighbours(r)

    def _join_neighbours(self, r: int) -> None:
        older = [i for i, chain in enumerate(self.of[r - 1]) if r not in chain.sites]
        newer = [i for i, chain in enumerate(self.of[r]) if r - 1 not in chain.sites]
        before, after = self.releases[r - 1].sites, self.releases[r].sites
        for link in links([before[i] for i in older], [after[i] for i in newer]):
            self._join(self.of[r - 1][older[link.older]], self.of[r][newer[link.newer]])

    def _join(self, older: _Chain, newer: _Chain) -> None:
        if older is newer or (older.decided and newer.decided) or older.sites.keys() & newer.sites.keys():
            return
        keep, drop = (newer, older) if newer.decided else (older, newer)
        if not keep.decided:
            keep, drop = sorted((older, newer), key=lambda chain: min(chain.sites))
        for r, i in drop.sites.items():
            keep.sites[r] = i
            self.of[r][i] = keep
        self.named[drop.id] = keep
        drop.kept = keep

    def _answering(self, site_id: str) -> _Chain:
        """Return the chain that a site id answers to. A site that the ledger parted from its id is not it."""
        chain = self.named[self.ledger.record(site_id)]
        while chain.kept is not None:
            chain = chain.kept
        return chain

    def lineages(self, pins: Iterable[Pin]) -> Lineages:
        """Return the finished records, pinned ids in place."""
        pinned, unmatched = self._pinned(pins)
        named: dict[str, list[str]] = {}
        for alias, name in self.ledger.records.items():
            named.setdefault(name, []).append(alias)
        unique = {id(chain): chain for row in self.of for chain in row}
        records = [self._lineage(chain, pinned.get(chain.id, chain.id), named) for chain in unique.values()]
        return Lineages(tuple(sorted(records, key=lambda record: record.id)), unmatched)

    def _lineage(self, chain: _Chain, name: str, named: Mapping[str, list[str]]) -> Lineage:
        own = {self.ids[r][i] for r, i in chain.sites.items()}
        own = {alias for alias in own if self._answering(alias) is chain}
        # Ids that the ledger knows from releases that were not ingested answer too.
        aliases = (own | set(named.get(chain.id, ())) | {chain.id}) - {name}
        return Lineage(name, tuple(sorted(aliases)), tuple(sorted(chain.sites.items())))

    def _pinned(self, pins: Iterable[Pin]) -> tuple[dict[str, str], dict[str, str]]:
        places = self._places()
        pinned: dict[str, str] = {}
        unmatched: dict[str, str] = {}
        by_id = {chain.id: chain for row in self.of for chain in row}
        for pin in pins:
            chain, problem = self._fitting(pin, places)
            if chain is None:
                unmatched[pin.id] = problem
                # Where only later releases were ingested the text may have changed: the id still says which.
                chain = by_id.get(pin.id)
            if chain is not None and pinned.setdefault(chain.id, pin.id) != pin.id:
                unmatched[pin.id] = f"its site is pinned by {pinned[chain.id]} already"
        return pinned, unmatched

    def _places(self) -> dict[tuple[str, str, str], list[tuple[int, int]]]:
        places: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
        for r, release in enumerate(self.releases):
            for i, site in enumerate(release.sites):
                for text in _texts(site):
                    places.setdefault((site.exception, text, site.function), []).append((r, i))
        return places

    def _fitting(
        self, pin: Pin, places: Mapping[tuple[str, str, str], list[tuple[int, int]]]
    ) -> tuple[_Chain | None, str]:
        """Return the one chain that a pin means, or why there is none."""
        found = places.get((pin.exception, folded_code(pin.message), pin.function), [])
        found = [(r, i) for r, i in found if pin.path in ("", self._site(r, i).path)]
        chains = {id(self.of[r][i]): self.of[r][i] for r, i in found}
        if not chains:
            return None, "no site of an ingested release has its exception, message and function"
        if len(chains) > 1 and pin.line:
            r, i = min(found, key=lambda place: abs(self._site(*place).line - pin.line))
            return self.of[r][i], ""
        if len(chains) > 1:
            lines = ", ".join(f"{self._site(r, i).path}:{self._site(r, i).line}" for r, i in found[:4])
            return None, f"{len(chains)} records fit it ({lines}): add path, or [source] line"
        return next(iter(chains.values())), ""

    def _site(self, r: int, i: int) -> Site:
        return self.releases[r].sites[i]


def _texts(site: Site) -> set[str]:
    """Return the texts by which a curated record may name a site, folded to the last space."""
    texts = {folded_code(identity_text(site))}
    texts.update(folded_code(folded(variant.template)) for variant in site.variants)
    return texts


def _again(site_id: str) -> str:
    return hashlib.sha256(f"again {site_id}".encode()).hexdigest()[:16]
