"""Comparisons: one launch command over several releases, as JSON, as a stream and as a page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import Response, StreamingResponse

from app.check.compare import ENGINES_LIMIT, Comparer
from app.check.service import Question
from app.errors import BadInput, ErrataError
from app.web import answers, events, problems
from app.web.checks import Checks
from app.web.compareview import ComparisonView, comparison_view
from app.web.frame import Head, head_title
from app.web.negotiate import best
from app.web.parts import PagesDep
from app.web.problems import Fault
from app.web.routes.check import PROBLEMS, CheckBody, CheckForm, ChecksDep, body_of, check_form

router = APIRouter()


class CompareBody(CheckBody):
    """A launch command to run on several releases. Only `command` is required."""

    engines: list[str] = Field(
        [], max_length=ENGINES_LIMIT, description="Releases of SGLang; none: all that are installed."
    )


class CompareAnswer(BaseModel):
    """What became of a launch command on each release, and what changed from one to the next."""

    model_config = ConfigDict(extra="allow")

    command: str
    hardware: dict[str, Any] | None
    engines: list[dict[str, Any]]
    steps: list[dict[str, Any]]
    migrated: dict[str, Any] | None
    elapsed_ms: float


@dataclass(frozen=True, slots=True)
class ComparePage:
    """The page. Fields are the names that `templates/pages/compare.html` uses."""

    head: Head
    form: CheckForm
    versions: tuple[str, ...]
    comparison: ComparisonView | None
    fault: Fault | None


@router.post(
    "/api/check/compare",
    tags=["check"],
    response_model=CompareAnswer,
    responses=PROBLEMS,
    openapi_extra={
        "requestBody": {"required": True, "content": {"application/json": {"schema": CompareBody.model_json_schema()}}}
    },
)
async def compare_json(request: Request, checks: ChecksDep) -> Response:
    """Run a launch command on several releases and tell what changed between them. Streams like a check."""
    try:
        body = CompareBody.model_validate_json(await body_of(request))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"][:1])) or "body"
        raise BadInput(f"{where}: {first['msg']}", where=where) from None
    question = body.question()
    if best(request.headers.get("accept", ""), ("application/json", events.MEDIA_TYPE)) == events.MEDIA_TYPE:
        return _stream(request, checks, question, body.engines, lambda found: found)
    return answers.json(await _comparer(request, checks).compare(question, body.engines))


@router.get("/check/compare", include_in_schema=False)
async def compare_page(checks: ChecksDep, pages: PagesDep) -> Response:
    """Show the form."""
    return pages.response(_page(checks, CheckForm()))


@router.post("/check/compare", include_in_schema=False)
async def compare_posted(request: Request, checks: ChecksDep, pages: PagesDep) -> Response:
    """Show the comparison of a posted form, or stream it to the page's script."""
    try:
        given = parse_qs((await body_of(request)).decode(), keep_blank_values=True, max_num_fields=40)
    except ValueError:
        raise BadInput("The form could not be read.") from None
    form = check_form({name: values[-1] for name, values in given.items()})
    question = form.question()
    if best(request.headers.get("accept", ""), ("text/html", events.MEDIA_TYPE)) == events.MEDIA_TYPE:

        def part(body: dict[str, Any]) -> dict[str, str]:
            return {"html": pages.part("partials/comparison.html", comparison=comparison_view(body))}

        return _stream(request, checks, question, [], part)
    try:
        body = await _comparer(request, checks).compare(question)
    except ErrataError as error:
        shown = problems.fault(error)
        return pages.response(_page(checks, form, fault=shown), status=shown.status)
    return pages.response(_page(checks, form, comparison=comparison_view(body)))


def _comparer(request: Request, checks: Checks) -> Comparer:
    """Return the one comparer of the application: it runs one comparison at a time."""
    state, service = request.app.state, checks.service()
    found: Comparer | None = getattr(state, "comparer", None)
    if found is None or found.service is not service:
        found = state.comparer = Comparer(service)
    return found


def _page(
    checks: Checks, form: CheckForm, *, comparison: ComparisonView | None = None, fault: Fault | None = None
) -> ComparePage:
    head = Head(
        head_title("Compare releases"),
        "Runs one SGLang launch command on every installed release: verdicts, flags, defaults and capacity.",
        section="/check",
        canonical="/check/compare",
        search=False,
    )
    versions = tuple(engine.version for engine in checks.engines.installed())
    return ComparePage(head, form, versions, comparison, fault)


def _stream(
    request: Request, checks: Checks, question: Question, engines: list[str],
    render: Callable[[dict[str, Any]], dict[str, Any]],
) -> StreamingResponse:  # fmt: skip
    """Return a `release` as each ends, and at the end one `answer` or `problem`."""

    async def work(say: events.Say) -> None:
        comparer = _comparer(request, checks)
        body = await comparer.compare(question, engines, lambda row: say(("release", row)))
        say(("answer", render(body)))

    return events.response(request, work)
