"""Checks: JSON, a stream of stages, the page, and what limits are in force."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import Response, StreamingResponse

from app.check.command import COMMAND_LIMIT
from app.check.service import Question
from app.errors import BadInput, ErrataError, NotFound, TooLarge
from app.store import queries
from app.store.document import Document
from app.web import answers, events, problems
from app.web.checks import Checks, found
from app.web.checkview import AnswerView, answer_view
from app.web.frame import Head, head_title
from app.web.negotiate import best
from app.web.pages import Pages
from app.web.parts import PagesDep, Parts, PartsDep
from app.web.problems import Fault, Problem

BODY_LIMIT = 3 * 1024 * 1024
router = APIRouter()
PROBLEMS: dict[int | str, dict[str, Any]] = {
    413: {"model": Problem, "description": "Too large"},
    422: {"model": Problem, "description": "Not a launch command, or an unknown engine or hardware"},
    429: {"model": Problem, "description": "Too many checks at once"},
    503: {"model": Problem, "description": "No engine, or it cannot be confined"},
    504: {"model": Problem, "description": "Out of time"},
}


class CheckBody(BaseModel):
    """A launch command to check. Only `command` is required; what is left out is chosen, and the answer says how."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    command: str = Field(description=f"What you would type or paste, at most {COMMAND_LIMIT} bytes.")
    engine: str | None = Field(None, max_length=60, description="A release of SGLang; GET /api/engines lists them.")
    hardware: str | None = Field(None, max_length=60, description="A simulated machine; GET /api/hardware lists them.")
    gpus: int | None = Field(None, description="GPUs of one node; default: what the parallel sizes need.")
    config: str | dict[str, Any] | None = Field(
        None, alias="model_config", description="The model's config.json, for a model that is not in the catalogue."
    )
    draft_config: str | dict[str, Any] | None = Field(
        None, alias="draft_model_config", description="The draft model's config.json."
    )
    fixes: bool = Field(False, description="Whether to look for edits that start, where SGLang refuses. Each is run.")
    packages: dict[str, str] = Field({}, description='Optional distributions: a version, or "" for not installed.')
    free_bytes: int | None = Field(None, ge=0, lt=1 << 50, description="Free on each GPU before loading.")
    reserve_bytes: int | None = Field(None, ge=0, lt=1 << 50, description="What communication takes of each GPU.")
    growth_bytes: int | None = Field(None, ge=0, lt=1 << 50, description="What the weights grow by after loading.")

    def question(self) -> Question:
        """Return what is asked."""
        return Question(
            self.command, self.engine or "", self.hardware or "", self.gpus, self.config, self.draft_config,
            self.fixes, self.packages, self.free_bytes, self.reserve_bytes, self.growth_bytes,
        )  # fmt: skip


class StageBody(BaseModel):
    """One stage of start-up."""

    name: str
    outcome: Literal["pass", "fail", "unknown", "not reached"]
    ms: float


class CheckAnswer(BaseModel):
    """What became of a launch command."""

    model_config = ConfigDict(extra="allow")

    verdict: Literal["pass", "fail", "unknown"]
    engine: dict[str, Any]
    hardware: dict[str, Any]
    stages: list[StageBody]
    error: dict[str, Any] | None
    resolved: dict[str, Any]
    pools: dict[str, Any] | None
    warnings: list[str]
    fixes: list[dict[str, Any]]
    elapsed_ms: float
    reason: str | None


def checks(parts: PartsDep) -> Checks:
    """Return the checks of the application that answers a request."""
    return found(parts.checks)


ChecksDep = Annotated[Checks, Depends(checks)]


# -- API ----------------------------------------------------------------------------------------------------


@router.post(
    "/api/check",
    tags=["check"],
    response_model=CheckAnswer,
    responses=PROBLEMS,
    openapi_extra={
        "requestBody": {"required": True, "content": {"application/json": {"schema": CheckBody.model_json_schema()}}}
    },
)
async def check_json(request: Request, checks: ChecksDep) -> Response:
    """Run a launch command through SGLang's start-up on a simulated machine. `Accept: text/event-stream` streams it."""
    question = _question(await body_of(request))
    if best(request.headers.get("accept", ""), ("application/json", events.MEDIA_TYPE)) == events.MEDIA_TYPE:
        return _stream(request, checks, question, lambda body, so_far: None if so_far else ("answer", body))
    return answers.json(await checks.service().check(question))


@router.get("/api/engines", tags=["check"])
async def engines_json(checks: ChecksDep) -> Response:
    """List the installed engines and the state of their processes."""
    return answers.json(checks.service().engines_body())


@router.get("/api/hardware", tags=["check"])
async def hardware_json(checks: ChecksDep) -> Response:
    """List the machines that can be simulated."""
    return answers.json(checks.service().hardware_body())


@router.get("/api/models", tags=["check"])
async def models_json(checks: ChecksDep) -> Response:
    """List the models whose configuration is known."""
    return answers.json(checks.service().models_body())


@router.get("/api/check/limits", tags=["check"])
async def limits_json(checks: ChecksDep) -> Response:
    """Return the limits in force, and what a probe of the sandbox could not do just now."""
    return answers.json(await checks.safety())


async def body_of(request: Request) -> bytes:
    """Return the body, whatever type the client says it has. Raises: TooLarge: it is over BODY_LIMIT."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_LIMIT:
            raise TooLarge(f"The request has more than {BODY_LIMIT} bytes.")
    return bytes(body)


def _question(body: bytes) -> Question:
    try:
        return CheckBody.model_validate_json(body).question()
    except ValidationError as error:
        # Where and what, never the value: it is the reader's text.
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"][:1])) or "body"
        raise BadInput(f"{where}: {first['msg']}", where=where) from None


# -- stream -------------------------------------------------------------------------------------------------

Render = Callable[[dict[str, Any], bool], tuple[str, Any] | None]
"""Makes the event of an answer; called before fixes are looked for with True, where there is something to look for."""


def _stream(request: Request, checks: Checks, question: Question, render: Render) -> StreamingResponse:
    """Return `state`, `stage`, `tried`, and at the end what `render` makes of the answer, or one `problem`."""

    async def work(send: events.Say) -> None:
        def say(event: events.Event | None) -> None:
            if event is not None:
                send(event)

        body = await checks.service().check(
            question,
            on_stage=lambda stage: say(("stage", stage.to_json())),
            on_state=lambda state: say(("state", {"state": state})),
            on_verdict=lambda body: say(render(body, True)),
            on_tried=lambda tried: say(("tried", tried)),
        )
        say(render(body, False))

    return events.response(request, work)


# -- pages --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CheckForm:
    """What stands in the form."""

    command: str = ""
    engine: str = ""
    hardware: str = ""
    gpus: str = ""
    model_config: str = ""
    draft_model_config: str = ""

    def question(self) -> Question:
        """Return what is asked. Raises: BadInput: gpus is no number."""
        gpus = self.gpus.strip()
        if gpus and not (gpus.isascii() and gpus.isdigit() and len(gpus) < 6):
            raise BadInput("The number of GPUs is a whole number.")
        return Question(
            self.command, self.engine, self.hardware, int(gpus) if gpus else None,
            self.model_config.strip() or None, self.draft_model_config.strip() or None, fixes=True,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Example:
    """A command that one click fills in."""

    name: str
    text: str
    command: str
    engine: str = ""
    hardware: str = ""


EXAMPLES = (
    Example(
        "unified",
        "Unified memory on a dense model",
        "python -m sglang.launch_server \\\n  --model-path meta-llama/Llama-3.1-8B-Instruct \\\n"
        "  --attention-backend triton \\\n  --cuda-graph-backend-prefill=disabled \\\n  --enable-unified-memory",
        engine="0.5.18",
    ),
    Example(
        "speculative",
        "Unified memory with a draft model",
        "python -m sglang.launch_server \\\n  --model-path openai/gpt-oss-120b --tp 2 \\\n  --context-length 32768 \\\n"
        "  --attention-backend triton \\\n  --cuda-graph-backend-prefill=disabled \\\n"
        "  --speculative-algorithm DSPARK \\\n  --speculative-draft-model-path SpecForge-export/qwen3-8b-dspark \\\n"
        "  --enable-unified-memory",
        engine="0.5.18",
    ),
    Example("heads", "Heads that do not divide", "sglang serve Qwen/Qwen2.5-7B-Instruct --tp 8"),
    Example("memory", "Too large for the card", "sglang serve Qwen/Qwen3-32B", hardware="rtx-4090-24gb"),
    Example("capacity", "One that starts", "sglang serve Qwen/Qwen3-8B --kv-cache-dtype fp8_e4m3"),
)


@dataclass(frozen=True, slots=True)
class Choice:
    """An entry of a picker."""

    value: str
    text: str


@dataclass(frozen=True, slots=True)
class CheckPage:
    """The page. Fields are the names that `templates/pages/check.html` uses."""

    head: Head
    form: CheckForm
    engines: tuple[Choice, ...]
    hardware: tuple[Choice, ...]
    examples: tuple[Example, ...]
    answer: AnswerView | None
    fault: Fault | None


@dataclass(frozen=True, slots=True)
class SafetyPage:
    """What a check cannot do here. Fields are the names that `templates/pages/safety.html` uses."""

    head: Head
    safety: dict[str, Any]


@router.get("/check", include_in_schema=False)
async def check_page(request: Request, checks: ChecksDep, parts: PartsDep, pages: PagesDep) -> Response:
    """Show the form; with `command` (from the one box) its answer too, with `example` an example filled in."""
    given = request.query_params
    example = next((e for e in EXAMPLES if e.name == given.get("example")), None)
    if example is not None:
        form = CheckForm(example.command, example.engine, example.hardware)
        return pages.response(_page(checks, form))
    form = check_form(dict(given.items()))
    if not form.command:
        return pages.response(_page(checks, form))
    return await _answered(checks, parts, pages, form)


@router.post("/check", include_in_schema=False)
async def check_posted(request: Request, checks: ChecksDep, parts: PartsDep, pages: PagesDep) -> Response:
    """Show the answer of a posted form, or stream its stages to the page's script."""
    body = await body_of(request)
    try:
        given = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=40)
    except ValueError:
        raise BadInput("The form could not be read.") from None
    form = check_form({name: values[-1] for name, values in given.items()})
    if best(request.headers.get("accept", ""), ("text/html", events.MEDIA_TYPE)) == events.MEDIA_TYPE:
        return _stream(request, checks, form.question(), _parts(parts, pages, form.command))
    return await _answered(checks, parts, pages, form)


@router.get("/about/safety", include_in_schema=False)
async def safety_page(checks: ChecksDep, pages: PagesDep) -> Response:
    """Show what a check can and cannot do here, live."""
    head = Head(
        head_title("Safety"),
        "What a submitted launch command can and cannot do on this server: limits, layers, and a live probe.",
        section="/about",
        canonical="/about/safety",
        json="/api/check/limits",
    )
    return pages.response(SafetyPage(head, await checks.safety()))


def check_form(given: dict[str, str]) -> CheckForm:
    """Return what a posted form or an address says."""
    return CheckForm(
        command=(given.get("command") or given.get("q") or "").replace("\r\n", "\n"),
        engine=given.get("engine", "")[:60],
        hardware=given.get("hardware", "")[:60],
        gpus=given.get("gpus", "")[:10],
        model_config=given.get("model_config", ""),
        draft_model_config=given.get("draft_model_config", ""),
    )


async def _answered(checks: Checks, parts: Parts, pages: Pages, form: CheckForm) -> Response:
    try:
        body = await checks.service().check(form.question())
    except ErrataError as error:
        shown = problems.fault(error)
        return pages.response(_page(checks, form, fault=shown), status=shown.status)
    return pages.response(_page(checks, form, answer=_view(parts, body, form.command)))


def _page(
    checks: Checks, form: CheckForm, *, answer: AnswerView | None = None, fault: Fault | None = None
) -> CheckPage:
    service = checks.service()
    default = service.engines.default()
    head = Head(
        head_title("Check a launch command"),
        "Runs an SGLang launch command through a release's own start-up code on a simulated GPU, without any weights.",
        section="/check",
        canonical="/check",
        search=False,
    )
    engines = [Choice(e.version, f"SGLang {e.version}") for e in reversed(service.engines.installed())]
    automatic = Choice("", f"As the command says, else {default}")
    hardware = [Choice(p.name, p.title) for p in service.profiles]
    return CheckPage(head, form, (automatic, *engines), tuple(hardware), EXAMPLES, answer, fault)


def _view(parts: Parts, body: dict[str, Any], asked: str, *, searching: bool = False) -> AnswerView:
    record = (body["error"] or {}).get("record")
    document = None
    if record:
        try:
            with parts.store.reading() as connection:
                document = Document.model_validate_json(queries.document(connection, record["id"]).body)
        except NotFound:
            document = None
    return answer_view(body, document, asked=asked, searching=searching)


def _parts(parts: Parts, pages: Pages, asked: str) -> Render:
    """Return what makes the parts of the page: the answer, and the fixes alone where the answer was shown before."""
    shown = False

    def render(body: dict[str, Any], so_far: bool) -> tuple[str, Any]:
        nonlocal shown
        name, template = ("fixes", "partials/fixes.html") if shown else ("answer", "partials/verdict.html")
        shown = True
        return name, {"html": pages.part(template, answer=_view(parts, body, asked, searching=so_far))}

    return render
