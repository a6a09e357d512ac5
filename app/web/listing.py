"""The list of errors: its parameters, rows, facets and chips. The address is the whole state of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Query

from app.store.queries import MAX_LIMIT, Filters, Page, Summary
from app.web.frame import Head, head_title
from app.web.life import life_range
from app.web.message import Segment, segments

FACET_NAMES = {
    "exception": "Exception",
    "module": "Module",
    "flag": "Flag",
    "release": "Release",
    "kind": "Kind",
    "status": "Status",
    "package": "Package",
}
# Facets that are open at once; a choice in another one opens it too.
OPEN = {"exception", "module"}
MAX_FACET_VALUES = 40
MAX_Q_LENGTH = 1_000

Text = Annotated[str, Query(max_length=400)]


@dataclass(frozen=True, slots=True)
class ListQuery:
    """The query parameters of `/errors` and `/api/errors`. An empty one is as if it were not given."""

    q: Annotated[str, Query(max_length=MAX_Q_LENGTH, description="Words, half words, flags; any text is legal.")] = ""
    package: Text = ""
    release: Text = ""
    exception: Text = ""
    kind: Annotated[str, Query(pattern="^(raise|assert|message)?$")] = ""
    status: Annotated[str, Query(pattern="^(mined|reviewed|withdrawn)?$")] = ""
    flag: Text = ""
    module: Annotated[str, Query(max_length=400, description="A path prefix, such as sglang/srt/mem_cache.")] = ""
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = 50
    cursor: Annotated[
        str, Query(max_length=500, pattern="^[A-Za-z0-9_=-]*$", description="`next` of the page before.")
    ] = ""

    @property
    def filters(self) -> Filters:
        """Return what narrows the list."""
        return Filters(**{field.name: getattr(self, field.name) for field in fields(Filters)})


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a list of records."""

    url: str
    segments: tuple[Segment, ...]
    label: str
    life: str
    where: str


@dataclass(frozen=True, slots=True)
class Choice:
    """One value of a facet; following `url` chooses it, or lets it go where it is chosen."""

    text: str
    count: int
    url: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class Facet:
    """One facet of the list."""

    name: str
    choices: tuple[Choice, ...]
    more: int
    open: bool


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter that is on; `url` is the list without it."""

    name: str
    value: str
    url: str


@dataclass(frozen=True, slots=True)
class ListPage:
    """`/errors`. Fields are the names that `templates/pages/list.html` uses."""

    head: Head
    q: str
    kept: tuple[tuple[str, str], ...]
    chips: tuple[Chip, ...]
    facets: tuple[Facet, ...]
    rows: tuple[Row, ...]
    total: int
    loose: bool
    next_url: str
    clear_url: str
    first: bool


def list_page(query: ListQuery, page: Page) -> ListPage:
    """Return the page of a list."""
    filters = query.filters
    on = {name: value for name, value in asdict(filters).items() if value}
    narrowed = ", ".join(value for value in on.values())
    return ListPage(
        head=Head(
            title=head_title(f"{narrowed}: errors" if narrowed else "All errors"),
            description=f"{page.total:,} errors of published releases{f': {narrowed}' if narrowed else ''}.",
            section="/errors",
            canonical=list_url(filters),
            json=list_url(filters, path="/api/errors"),
            indexed=not filters.q and not query.cursor,
            search=False,
        ),
        q=filters.q,
        kept=tuple((name, value) for name, value in on.items() if name != "q"),
        chips=tuple(
            Chip(FACET_NAMES[name].lower(), value, list_url(replace(filters, **{name: ""})))
            for name, value in on.items()
            if name != "q"
        ),
        facets=tuple(facets(filters, page)),
        rows=tuple(row(summary) for summary in page.items),
        total=page.total,
        loose=page.loose,
        next_url=list_url(filters, cursor=page.next, limit=query.limit) if page.next else "",
        clear_url=list_url(Filters(q=filters.q)),
        first=not query.cursor,
    )


def row(summary: Summary) -> Row:
    """Return a record as a row of a list."""
    return Row(
        url=summary.url,
        segments=segments(summary.parts, hits=summary.hits) if summary.message else (Segment(summary.title),),
        label=summary.exception or summary.kind,
        life=life_range(summary.first, summary.last, summary.gone_since),
        where=f"{summary.module}  {summary.function}",
    )


def facets(filters: Filters, page: Page) -> Sequence[Facet]:
    """Return the facets that offer a choice; a chosen value is always among them."""
    shown = []
    for name, title in FACET_NAMES.items():
        chosen = getattr(filters, name)
        values = dict(page.facets.get(name, {}))
        if chosen and chosen not in values:
            values = {chosen: page.total, **values}
        if not chosen and len(values) < 2:
            continue
        listed = list(values.items())[:MAX_FACET_VALUES]
        if chosen and chosen not in dict(listed):
            listed.insert(0, (chosen, values[chosen]))
        choices = tuple(
            Choice(
                value, count, list_url(replace(filters, **{name: "" if value == chosen else value})), value == chosen
            )
            for value, count in listed
        )
        shown.append(Facet(title, choices, len(values) - len(choices), bool(chosen) or name in OPEN))
    return shown


def list_url(filters: Filters, *, path: str = "/errors", cursor: str = "", limit: int = 50) -> str:
    """Return the address of a list; parameters that are not set are left out."""
    pairs = [(name, value) for name, value in asdict(filters).items() if value]
    if cursor:
        pairs.append(("cursor", cursor))
        if limit != 50:
            pairs.append(("limit", str(limit)))
    return path + (f"?{urlencode(pairs)}" if pairs else "")
