"""Errors as answers: an RFC 9457 problem document for programs, a page for readers. One handler for all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus

import orjson
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from app.errors import BadInput, Broken, ErrataError
from app.web.frame import Head, Link, head_title
from app.web.negotiate import best
from app.web.pages import Pages

MEDIA_TYPE = "application/problem+json"


class Problem(BaseModel):
    """A problem document (RFC 9457). `request_id` is the one of the answer's X-Request-ID; more members may follow."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    request_id: str


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a request got no answer, whatever raised it."""

    status: int
    title: str
    detail: str
    extra: Mapping[str, object] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProblemPage:
    """An error as a page. Fields are the names that `templates/pages/problem.html` uses."""

    head: Head
    fault: Fault
    request_id: str
    near: Sequence[Link]


def fault(raised: Exception) -> Fault:
    """Return any exception of a request as a fault that may be shown."""
    if isinstance(raised, ErrataError):
        return Fault(raised.status, raised.title, raised.detail, raised.extra)
    if isinstance(raised, RequestValidationError):
        # Where and what, but not the value: it is the reader's text.
        errors = [{"where": [str(part) for part in e["loc"]], "what": e["msg"]} for e in raised.errors()]
        detail = f"{' '.join(errors[0]['where'])}: {errors[0]['what']}" if errors else "The request is malformed."
        return Fault(BadInput.status, BadInput.title, detail, {"errors": errors})
    if isinstance(raised, HTTPException):
        status = HTTPStatus(raised.status_code)
        detail = "There is nothing at this address." if status == 404 else str(raised.detail)
        return Fault(status, status.phrase, detail, headers=raised.headers or {})
    return fault(Broken("This is a fault of the site."))


def problem_response(scope: Scope, shown: Fault) -> Response:
    """Return a fault as a problem document."""
    body = {
        "type": "about:blank",
        "title": shown.title,
        "status": shown.status,
        "detail": shown.detail,
        "instance": scope["path"],
        "request_id": scope.get("state", {}).get("request_id", ""),
        **shown.extra,
    }
    return Response(
        orjson.dumps(body, default=str), status_code=shown.status, media_type=MEDIA_TYPE, headers=dict(shown.headers)
    )


_FOR_MACHINES = ("/api/", "/healthz", "/readyz", "/metrics", "/openapi.json")


def wants_page(request: Request) -> bool:
    """Claim that the client is a reader: outside the API, and it prefers HTML."""
    path = request.url.path
    if path.startswith(_FOR_MACHINES) or path.endswith(".md"):
        return False
    return best(request.headers.get("accept", ""), ("text/html", "application/json", MEDIA_TYPE)) == "text/html"


def install(app: FastAPI, pages: Pages, near: Callable[[str], Sequence[Link]]) -> None:
    """Let every error of the application end in one handler; `near` finds links for the path of a 404."""

    def answer(request: Request, raised: Exception) -> Response:
        shown = fault(raised)
        if not wants_page(request):
            return problem_response(request.scope, shown)
        page = ProblemPage(
            head=Head(head_title(shown.title), shown.detail, indexed=False),
            fault=shown,
            request_id=request.scope.get("state", {}).get("request_id", ""),
            near=near(request.url.path) if shown.status == 404 else (),
        )
        return pages.response(page, status=shown.status, headers=shown.headers)

    for kind in (ErrataError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, answer)
