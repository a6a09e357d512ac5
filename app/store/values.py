"""What reads of the database return: frozen values, never rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from app.mine.model import Kind
from app.store.document import Excerpt, Status


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """The stored bytes of one `Document`. `id` is the record's own id, also where an alias was asked for."""

    id: str
    body: bytes
    etag: str


@dataclass(frozen=True, slots=True)
class Filters:
    """What a list is narrowed by; "" is no filter. `module` is a path prefix ("sglang/srt/mem_cache")."""

    q: str = ""
    package: str = ""
    release: str = ""
    exception: str = ""
    kind: str = ""
    status: str = ""
    flag: str = ""
    module: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """One row of a list.

    Shape: `parts` are literal, hole, literal, ... of `message`; `hits` are (start, end) in `message` of what `q`
    found; `first` and `last` are ingested releases; `gone_since` is "" while the newest release has it.
    """

    id: str
    package: str
    kind: Kind
    exception: str
    title: str
    message: str
    parts: tuple[str, ...]
    status: Status
    module: str
    function: str
    flags: tuple[str, ...]
    first: str
    last: str
    gone_since: str
    hits: tuple[tuple[int, int], ...] = ()

    @property
    def url(self) -> str:
        """Return the record's address."""
        return f"/errors/{self.id}"


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a list. `facets` maps each of `FACETS` to counts, greatest first, under the other filters.

    Shape: `loose` says that no record has all words of `q` and the page holds those that have some.
    """

    items: tuple[Summary, ...]
    next: str | None
    total: int
    facets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    loose: bool = False


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One line under the search box: a record, a flag, a release or a module."""

    kind: Literal["record", "flag", "release", "module"]
    text: str
    url: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Release:
    """One ingested release and its counts.

    Shape: `failed` are (path, why) of files that do not parse; `omitted` counts by reason what is no site; `templated`
    of `raises` raise sites have a text.
    """

    package: str
    version: str
    sha256: str
    files: int
    lines: int
    failed: tuple[tuple[str, str], ...]
    omitted: Mapping[str, int]
    sites: int
    records: int
    raises: int
    templated: int

    @property
    def share(self) -> float:
        """Return the share of raise sites that have a template, 0..1."""
        return self.templated / self.raises if self.raises else 0.0


@dataclass(frozen=True, slots=True)
class ReleaseChanges:
    """What one release changed against the ingested one before it ("" where there is none).

    Shape: each list is capped, `counts` holds the full numbers by the same names (new, moved, reworded, removed).
    """

    release: Release
    before: str
    after: str
    new: tuple[Summary, ...]
    moved: tuple[Summary, ...]
    reworded: tuple[Summary, ...]
    removed: tuple[Summary, ...]
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Package:
    """A package, its releases newest first, and how many records it has by status and kind."""

    name: str
    repository: str
    host: str
    license: str
    releases: tuple[Release, ...]
    records: int
    facets: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Flag:
    """A command-line option, its other spellings, the configuration field and the records that name it."""

    flag: str
    spellings: tuple[str, ...]
    field: str
    records: tuple[Summary, ...]
    total: int


@dataclass(frozen=True, slots=True)
class SitePlace:
    """A record's place and excerpt in one release; `url` is "" where no link can be made."""

    id: str
    version: str
    path: str
    line: int
    end_line: int
    function: str
    message: str
    guards: tuple[str, ...]
    excerpt: Excerpt | None
    url: str


@dataclass(frozen=True, slots=True)
class Seen:
    """Where a record was in a run of neighbouring releases that agree on all of this. `path` is the wheel path."""

    versions: tuple[str, ...]
    path: str
    function: str
    statement: str
    condition: str
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Signature:
    """What matching needs of one record.

    Shape: `texts` are the parts (literal, hole, ...) of every text that any release of it carries, the primary
    one first; empty for a bare assert.
    """

    record_id: str
    package: str
    kind: Kind
    exception: str
    title: str
    message: str
    texts: tuple[tuple[str, ...], ...]
    seen: tuple[Seen, ...]
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class Counts:
    """The size of the database."""

    packages: int
    releases: int
    records: int
    reviewed: int
    sites: int
