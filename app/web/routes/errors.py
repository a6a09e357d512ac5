"""Records: lists, pages, JSON and Markdown."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import RedirectResponse, Response

from app.errors import NotFound
from app.store import pages as kept
from app.store import queries
from app.store.document import Document
from app.web import answers
from app.web.forms import ListBody, SuggestionBody, list_body
from app.web.listing import ListQuery, list_page
from app.web.message import reader_values
from app.web.negotiate import best
from app.web.parts import PagesDep, Parts, PartsDep
from app.web.plain import record_markdown
from app.web.problems import Problem
from app.web.record import record_page

router = APIRouter()
_ID = re.compile(r"[0-9a-f]{16}")
_PROBLEMS: dict[int | str, dict[str, Any]] = {422: {"model": Problem, "description": "Malformed"}}
_NOT_FOUND: dict[int | str, dict[str, Any]] = {404: {"model": Problem, "description": "No such record"}}
ListQueryDep = Annotated[ListQuery, Depends()]


@router.get("/api/errors", tags=["errors"], response_model=ListBody, responses=_PROBLEMS)
def errors_json(query: ListQueryDep, parts: PartsDep) -> Response:
    """List records: search, filters and facets."""
    return answers.json(list_body(_page(parts, query)))


@router.get("/api/errors/{record_id}", tags=["errors"], response_model=Document, responses=_NOT_FOUND)
def error_json(record_id: str, parts: PartsDep) -> Response:
    """Return one record, by its id or by one of its aliases."""
    stored = _stored(parts, record_id)
    return Response(stored.body, media_type="application/json", headers={"etag": f'"{stored.etag}"'})


@router.get("/api/suggestions", tags=["errors"], response_model=SuggestionBody, responses=_PROBLEMS)
def suggestions_json(parts: PartsDep, q: Annotated[str, Query(max_length=1_000)] = "") -> Response:
    """Return what the words typed so far could mean."""
    with parts.store.reading() as connection:
        found = queries.suggestions(connection, q)
    return answers.json(
        {"suggestions": [{"kind": s.kind, "text": s.text, "url": s.url, "note": s.note} for s in found]}
    )


@router.get("/errors", include_in_schema=False)
def errors_page(query: ListQueryDep, parts: PartsDep, pages: PagesDep) -> Response:
    """Show a list of records."""
    return pages.response(list_page(query, _page(parts, query)))


@router.get(
    "/errors/{record_id}.md",
    tags=["errors"],
    response_class=Response,
    responses={200: {"content": {"text/markdown": {"schema": {"type": "string"}}}}, **_NOT_FOUND},
)
def error_markdown(record_id: str, parts: PartsDep) -> Response:
    """Return one record as Markdown."""
    document = Document.model_validate_json(_stored(parts, record_id).body)
    return answers.markdown(record_markdown(document, site_url=parts.site.url))


@router.get("/errors/{record_id}", include_in_schema=False)
@router.get("/errors/{record_id}/{slug}", include_in_schema=False)
def error_page(request: Request, record_id: str, parts: PartsDep, pages: PagesDep) -> Response:
    """Show one record; an alias leads to the record's own address."""
    stored = _stored(parts, record_id)
    if stored.id != record_id:
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"/errors/{stored.id}{query}", status_code=308)
    document = Document.model_validate_json(stored.body)
    if best(request.headers.get("accept", ""), ("text/html", "text/markdown")) == "text/markdown":
        return answers.markdown(record_markdown(document, site_url=parts.site.url))
    release = request.query_params.get("release", "")
    with parts.store.reading() as connection:
        place = queries.site_history(connection, stored.id, release) if release else None
        licence = kept.licences(connection).get(document.package.name, "")
    page = record_page(document, place=place, values=reader_values(request.query_params.multi_items()), licence=licence)
    return pages.response(page, headers={"vary": "accept"})


def _page(parts: Parts, query: ListQuery) -> queries.Page:
    with parts.store.reading() as connection:
        return queries.records(connection, query.filters, cursor=query.cursor, limit=query.limit)


def _stored(parts: Parts, record_id: str) -> queries.StoredDocument:
    # The id is not repeated in the answer: anything could stand in its place in the address.
    if not _ID.fullmatch(record_id):
        raise NotFound("No record has this id: an id is 16 characters of 0-9 and a-f.")
    with parts.store.reading() as connection:
        return queries.document(connection, record_id)
