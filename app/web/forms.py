"""The API's bodies as they are documented in OpenAPI, and made from the store's values."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel

from app.store.queries import Page, Summary


class ListItem(BaseModel):
    """A record in a list; `gone_since` is null while the newest release that was read has it."""

    id: str
    url: str
    package: str
    kind: Literal["raise", "assert", "message"]
    exception: str
    title: str
    message: str
    status: Literal["mined", "reviewed", "withdrawn"]
    module: str
    function: str
    flags: list[str]
    first: str
    last: str
    gone_since: str | None
    hits: list[tuple[int, int]]


class ListBody(BaseModel):
    """A page of a list. `next` is the cursor of the page after it; `loose`: no record has all the words."""

    items: list[ListItem]
    next: str | None
    total: int
    facets: dict[str, dict[str, int]]
    loose: bool


class SuggestionItem(BaseModel):
    """One line under the search box."""

    kind: Literal["record", "flag", "release", "module"]
    text: str
    url: str
    note: str


class SuggestionBody(BaseModel):
    """What the words typed so far could mean, best first."""

    suggestions: list[SuggestionItem]


def list_body(page: Page) -> dict[str, Any]:
    """Return the body of `GET /api/errors` (the shape of `ListBody`)."""
    return {
        "items": [list_item(summary) for summary in page.items],
        "next": page.next,
        "total": page.total,
        "facets": {name: dict(values) for name, values in page.facets.items()},
        "loose": page.loose,
    }


def list_item(summary: Summary) -> dict[str, Any]:
    """Return a record as it stands in a list (the shape of `ListItem`)."""
    return {
        "id": summary.id,
        "url": summary.url,
        "package": summary.package,
        "kind": summary.kind,
        "exception": summary.exception,
        "title": summary.title,
        "message": summary.message,
        "status": summary.status,
        "module": summary.module,
        "function": summary.function,
        "flags": list(summary.flags),
        "first": summary.first,
        "last": summary.last,
        "gone_since": summary.gone_since or None,
        "hits": [list(hit) for hit in summary.hits],
    }
