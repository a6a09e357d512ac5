"""The ledger: the committed file that decides which record the sites of pinned releases belong to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from app.errors import Broken

_ID = re.compile(r"[0-9a-f]{16}")
_COVERS = "# releases "
_HEADER = """# Which record a site id belongs to, where it is not its own. Made by `errata ledger`, never edited by
# hand; a later release appends a section. Columns: site id, record id (docs/decisions/0001-identity.md).
"""


@dataclass(frozen=True, slots=True)
class Section:
    """What one run appended: the releases it covered and the ids it decided."""

    releases: tuple[str, ...]
    records: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Ledger:
    """A package's ledger. A site id that it does not name is the id of its own record."""

    sections: tuple[Section, ...] = ()
    records: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def of(cls, sections: tuple[Section, ...]) -> Ledger:
        """Return the ledger that these sections make."""
        records: dict[str, str] = {}
        for section in sections:
            records |= section.records
        return cls(sections, MappingProxyType(records))

    @property
    def releases(self) -> frozenset[str]:
        """Return the releases whose links the ledger decides."""
        return frozenset(version for section in self.sections for version in section.releases)

    def record(self, site_id: str) -> str:
        """Return the id of the record that a site id belongs to."""
        return self.records.get(site_id, site_id)


def load(path: Path) -> Ledger:
    """Read a ledger; a missing file is an empty ledger.

    Raises: Broken: a line is not two ids, or an id is decided twice.
    """
    if not path.exists():
        return Ledger()
    sections: list[tuple[tuple[str, ...], dict[str, str]]] = []
    seen: set[str] = set()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith(_COVERS):
            sections.append((tuple(line.removeprefix(_COVERS).split()), {}))
        elif not line.startswith("#"):
            alias, record = _row(line, f"{path.name}, line {number}")
            if not sections or alias in seen:
                raise Broken(f"{path.name}, line {number}: {alias} is decided twice or before any '# releases' line")
            seen.add(alias)
            sections[-1][1][alias] = record
    return Ledger.of(tuple(Section(releases, MappingProxyType(rows)) for releases, rows in sections))


def text(ledger: Ledger) -> str:
    """Return the file's text."""
    lines = [_HEADER]
    for section in ledger.sections:
        lines.append(_COVERS + " ".join(section.releases) + "\n")
        lines += [f"{alias}\t{record}\n" for alias, record in sorted(section.records.items())]
    return "".join(lines)


def _row(line: str, where: str) -> tuple[str, str]:
    fields = line.split("\t")
    if len(fields) != 2 or not all(map(_ID.fullmatch, fields)):
        raise Broken(f"{where}: expected two ids of 16 hex digits with a tab between, found {line[:60]!r}")
    return fields[0], fields[1]
