"""The value of one curated file. `docs/records.md` describes the format for those who write one."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Id = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
Option = Annotated[str, StringConstraints(pattern=r"^--?[A-Za-z0-9][A-Za-z0-9_.-]*$")]
Link = Annotated[str, StringConstraints(pattern=r"^https://[^\s<>\"]+$")]


class Value(BaseModel):
    """A frozen value that is read strictly."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class PinnedSource(Value):
    """The place a record was written from: a commit or tag, a path in the repository, lines."""

    ref: Text
    ref_date: Annotated[str, StringConstraints(pattern=r"^\d{4}-\d{2}-\d{2}$")] | None = None
    path: Text
    line: Annotated[int, Field(ge=1)]
    end_line: Annotated[int, Field(ge=1)] | None = None


class Provenance(Value):
    """Who made the analysis and where a fault in it is reported."""

    analysis: Text
    report_url: Link | None = None


class Example(Value):
    """What meets the error and what does not.

    Shape: `engines` and `hardware` say where a run is meant to prove it, `solution` which numbered solution `after`
           carries out.
    """

    before: Text
    after: Text
    engines: Annotated[list[Text], Field(max_length=30)] = []
    hardware: Text | None = None
    solution: Annotated[int, Field(ge=1)] | None = None


class Related(Value):
    """Another record and why it is worth reading."""

    id: Id
    why: Text


class FrontMatter(Value):
    """What stands between the `+++` lines."""

    id: Id
    package: Text
    kind: Literal["raise", "assert", "message"]
    exception: str
    message: str
    function: Text
    path: Text | None = None
    title: Text
    status: Literal["reviewed", "withdrawn"]
    flags: list[Option] | None = None
    source: PinnedSource | None = None
    provenance: Provenance
    example: Example
    related: Annotated[list[Related], Field(max_length=20)] = []


class Body(Value):
    """What stands under the headings, Markdown with soft line breaks folded."""

    meaning: Text
    trigger: Text
    situations: Annotated[list[Text], Field(min_length=1)]
    solutions: Annotated[list[Text], Field(min_length=1)]
    strategy: Text
    code: Text
    prevention: Annotated[list[Text], Field(min_length=1)]
    not_verified: Text | None = None


class CuratedRecord(Value):
    """One curated file. `file` is its name, `slug` the readable half of that."""

    file: str
    slug: str
    front: FrontMatter
    body: Body
