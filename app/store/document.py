"""The one view of a record: what `GET /api/errors/{id}` returns, what pages and Markdown are rendered from."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from app.mine.model import Kind

Status = Literal["mined", "reviewed", "withdrawn"]
What = Literal["moved", "reworded", "guard changed", "gone", "back"]
Detail = Literal["line", "file", "function"]


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PackageName(_Value):
    """The package a record belongs to; `repository` is "owner/name" or null where it is not known."""

    name: str
    repository: str | None = None


class Excerpt(_Value):
    """Lines of source. `ref` says whose they are; it may be another release than the pinned one."""

    ref: str
    start_line: int
    text: str


class Source(_Value):
    """Where the error is raised. `path` is the path in the repository, `url` is null where no link can be made."""

    path: str
    line: int
    end_line: int
    function: str
    ref: str
    ref_date: str | None = None
    url: str | None = None
    excerpt: Excerpt | None = None


class Verified(_Value):
    """A stored run that verified a solution."""

    engine: str
    run: str
    date: str
    hardware: str


class Solution(_Value):
    """One thing to do. `derived` marks what was concluded from releases and not written by a reviewer."""

    text: str
    derived: bool = False
    verified: tuple[Verified, ...] = ()


class VerifiedExample(_Value):
    """A stored run of both halves of an example."""

    engine: str
    before: str
    after: str
    date: str
    hardware: str


class Example(_Value):
    """Commands or code that meets the error, and the same without it: `after` carries out solution `solution`."""

    before: str
    after: str
    engines: tuple[str, ...] = ()
    hardware: str | None = None
    solution: int | None = None
    verified: tuple[VerifiedExample, ...] = ()


class Defence(_Value):
    """How a caller guards against the error."""

    strategy: str
    code: str
    prevention: tuple[str, ...] = ()


class Place(_Value):
    """Where the error is in one ingested release. `path` is the path in the repository."""

    version: str
    path: str
    line: int
    end_line: int
    function: str
    url: str | None = None


class Change(_Value):
    """What differs in `version` from the ingested release before it.

    Shape: `detail` is set for "moved" (the greatest move: file, then function, then line); `old` and `new` hold
    both texts for "reworded", both places for a move of file or function, both guards for "guard changed".
    """

    version: str
    what: What
    detail: Detail | None = None
    old: str | None = None
    new: str | None = None


class History(_Value):
    """The life of a record across the ingested releases of its package, oldest first.

    Shape: `ingested` names all of them, `releases` holds the place in each one that has the error. `first_is_bound`:
    the earliest ingested release already has it. `gone_since` is the first release without it, after the last with it.
    """

    first: str | None
    first_is_bound: bool
    last: str | None
    gone_since: str | None
    releases: tuple[Place, ...]
    changes: tuple[Change, ...]
    ingested: tuple[str, ...]


class Related(_Value):
    """Another record and why it is worth reading."""

    id: str
    title: str
    exception: str
    why: str


class Provenance(_Value):
    """Where the record's facts come from and where a fault in it can be reported."""

    analysis: str
    source: str
    report_url: str | None = None


class TextVariant(_Value):
    """Another text that the same site carries, and where that text is written (wheel path)."""

    message: str
    parts: tuple[str, ...]
    path: str
    function: str


class Document(_Value):
    """One record, with exactly the shape of `GET /api/errors/{id}`; what is not known is null or empty.

    Shape: beside INTERFACE's keys: `slug` for the long address, `parts` (literal, hole, literal, ...) of `message`,
    `variants` where the site carries several texts, `condition` of an assert, `module` (the wheel path) and
    `not_verified` (why the engine cannot raise it).
    """

    id: str
    url: str
    slug: str
    aliases: tuple[str, ...]
    package: PackageName
    kind: Kind
    exception: str
    title: str
    message: str
    parts: tuple[str, ...]
    variants: tuple[TextVariant, ...] = ()
    condition: str = ""
    module: str
    status: Status
    meaning: str | None = None
    trigger: str | None = None
    situations: tuple[str, ...] = ()
    source: Source | None
    guards: tuple[str, ...]
    flags: tuple[str, ...]
    solutions: tuple[Solution, ...] = ()
    example: Example | None = None
    defence: Defence | None = None
    not_verified: str | None = None
    history: History
    related: tuple[Related, ...] = ()
    provenance: Provenance
