"""What machines ask: health, metrics, static files, robots and the sitemap."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response

from app.errors import NotFound, Unavailable
from app.store import pages as kept
from app.store import queries
from app.store.queries import Filters
from app.web import answers
from app.web.assets import IMMUTABLE
from app.web.parts import PartsDep
from app.web.problems import Problem

router = APIRouter()


class Readiness(BaseModel):
    """What `/readyz` answers when everything is there."""

    status: Literal["ok"]
    checks: dict[str, str]


@router.get("/healthz", tags=["health"])
def healthz() -> dict[str, str]:
    """Answer while the process lives."""
    return {"status": "ok"}


@router.get(
    "/readyz",
    tags=["health"],
    response_model=Readiness,
    responses={503: {"model": Problem, "description": "A part is not ready; `checks` says which"}},
)
def readyz(request: Request, parts: PartsDep) -> Response:
    """Answer 200 when requests can be served: database, search index and what else was registered as a part."""
    checks: dict[str, str] = {}
    try:
        with parts.store.reading() as connection:
            checks["database"] = "ok" if queries.generation(connection) else "nothing was ingested"
            queries.records(connection, Filters(q="error"), limit=1)
            checks["search"] = "ok"
    except Exception as error:
        checks.setdefault("database", type(error).__name__)
        checks.setdefault("search", type(error).__name__)
    for name, check in request.app.state.ready_checks.items():
        checks[name] = check()
    if any(state != "ok" for state in checks.values()):
        raise Unavailable("Not everything that is needed is there.", checks=checks)
    return answers.json({"status": "ok", "checks": checks})


@router.get("/metrics", include_in_schema=False)
def metrics(parts: PartsDep) -> Response:
    """Return the counts of this process for Prometheus."""
    return Response(generate_latest(parts.telemetry.registry), headers={"content-type": CONTENT_TYPE_LATEST})


@router.get("/static/{name}", include_in_schema=False)
def static(name: str, parts: PartsDep) -> Response:
    """Return a static file."""
    asset = parts.assets.served(f"/static/{name}")
    if asset is None:
        raise NotFound("There is no such file.")
    return Response(asset.body, media_type=asset.media_type, headers={"cache-control": IMMUTABLE})


@router.get("/robots.txt", include_in_schema=False)
def robots(request: Request, parts: PartsDep) -> Response:
    """Say what crawlers may read: everything but searches and what takes a reader's text."""
    lines = ["User-agent: *", "Disallow: /go", "Disallow: /errors?", "Disallow: /api/"]
    lines.append(f"Sitemap: {_base(request, parts.site.url)}/sitemap.xml")
    return PlainTextResponse("\n".join(lines) + "\n")


_RECORDS_A_PAGE = 20_000


@router.get("/sitemap.xml", include_in_schema=False)
def sitemap(request: Request, parts: PartsDep, page: Annotated[int, Query(ge=0, le=10_000)] = 0) -> Response:
    """Return the addresses of all records: an index, or with `page` one part of it."""
    base = _base(request, parts.site.url)
    with parts.store.reading() as connection:
        total = queries.counts(connection).records
        parts_needed = -(-total // _RECORDS_A_PAGE)
        if page == 0:
            return _xml("sitemapindex", "sitemap", (f"{base}/sitemap.xml?page={n}" for n in range(1, parts_needed + 1)))
        if page > parts_needed:
            raise NotFound("The sitemap has no such part.")
        ids = kept.record_ids(connection, start=(page - 1) * _RECORDS_A_PAGE, limit=_RECORDS_A_PAGE)
    return _xml("urlset", "url", (f"{base}/errors/{record_id}" for record_id in ids))


def _xml(root: str, item: str, locations: Any) -> Response:
    from xml.sax.saxutils import escape

    body = "".join(f"<{item}><loc>{escape(location)}</loc></{item}>\n" for location in locations)
    namespace = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return Response(
        f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="{namespace}">\n{body}</{root}>\n',
        media_type="application/xml",
    )


def _base(request: Request, url: str) -> str:
    if url:
        return url
    host = request.headers.get("host", "")
    # The header is the client's: only what can be a host name goes into an answer.
    if not host or not all(c.isalnum() or c in "-.:[]" for c in host):
        raise HTTPException(400, "The Host header is malformed.")
    return f"{request.url.scheme}://{host}"
