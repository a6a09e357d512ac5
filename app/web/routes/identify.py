"""Identify: a pasted text -> records. The text is read, answered and forgotten: it is neither stored nor logged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any
from urllib.parse import parse_qsl

import orjson
from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.errors import BadInput, TooLarge
from app.match import answer
from app.match.identify import identify
from app.match.log import Block
from app.match.model import Identification, Match
from app.store import queries
from app.web import answers
from app.web.frame import Head, Link, head_title
from app.web.matcher import Matcher
from app.web.message import Segment, record_url, segments
from app.web.pages import Pages
from app.web.parts import PagesDep, Parts, PartsDep
from app.web.paste import kind_of
from app.web.problems import Problem

router = APIRouter()

MAX_TEXT = 1024 * 1024
# JSON and forms write some characters as two to six.
_MAX_BODY = 3 * MAX_TEXT + 65_536
_SHOWN_AGAIN = 40_000
_SHOWN_BLOCKS, _SHOWN_FRAMES, _SHOWN_ALSO = 12, 4, 8


class IdentifyRequest(BaseModel):
    """What to identify. `package` and `release` narrow the records that may be named."""

    model_config = ConfigDict(extra="forbid", strict=True)

    text: str
    package: str | None = None
    release: str | None = None


class FrameItem(BaseModel):
    """A frame as it was read; `line` is 0 and texts are "" where the paste does not say."""

    path: str
    line: int
    function: str
    source: str


class BlockItem(BaseModel):
    """An error as it was read. `chained`: "context", "cause", "group", "body" (of HTTP) or ""."""

    exception: str
    message: str
    frames: list[FrameItem]
    chained: str


class MatchItem(BaseModel):
    """A record that the text names. `reasons` says each of `evidence` in a sentence; a `wrapper` wraps another one."""

    id: str
    url: str
    title: str
    exception: str
    message: str
    score: float
    values: dict[str, str]
    evidence: list[str]
    reasons: list[str]
    also: list[str]
    wrapper: bool


class IdentifyBody(BaseModel):
    """The matches, best first; `looks_like` says whose error it seems to be where there are none."""

    matches: list[MatchItem]
    blocks: list[BlockItem]
    looks_like: str | None


@dataclass(frozen=True, slots=True)
class Shown:
    """A match as the page shows it."""

    url: str
    title: str
    exception: str
    segments: tuple[Segment, ...]
    values: Mapping[str, str]
    reasons: tuple[str, ...]
    also: tuple[Link, ...]
    more: int
    strength: str
    wrapper: bool


@dataclass(frozen=True, slots=True)
class ShownBlock:
    """A block as the page shows it: its last frames."""

    exception: str
    message: str
    frames: tuple[str, ...]
    hidden: int
    how: str


@dataclass(frozen=True, slots=True)
class IdentifyPage:
    """`/identify`. Fields are the names that `templates/pages/identify.html` uses."""

    head: Head
    text: str
    asked: bool
    matches: tuple[Shown, ...]
    blocks: tuple[ShownBlock, ...]
    looks_like: str
    release: str
    releases: tuple[str, ...]


def matcher(request: Request) -> Matcher:
    """Return the matcher of the application that answers a request."""
    found: Matcher = request.app.state.matcher
    return found


MatcherDep = Annotated[Matcher, Depends(matcher)]
_REQUEST = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": IdentifyRequest.model_json_schema()},
            "text/plain": {"schema": {"type": "string"}},
        },
    }
}
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    413: {"model": Problem, "description": "Over 1 MiB"},
    422: {"model": Problem, "description": "Malformed"},
    503: {"model": Problem, "description": "The index is not there yet"},
}


@router.post(
    "/api/identify", tags=["identify"], response_model=IdentifyBody, responses=_PROBLEMS, openapi_extra=_REQUEST
)
async def identify_json(request: Request, matcher: MatcherDep) -> Response:
    """Name the records behind a traceback, a log or a message. The text is not kept."""
    asked = _request(request.headers.get("content-type", ""), await _body(request), request.query_params)
    found = await run_in_threadpool(_found, matcher, asked)
    return answers.json(answer.body(found))


@router.get("/identify", include_in_schema=False)
def identify_page(
    parts: PartsDep,
    pages: PagesDep,
    matcher: MatcherDep,
    text: Annotated[str, Query(max_length=20_000)] = "",
    release: Annotated[str, Query(max_length=60)] = "",
) -> Response:
    """Show the form, or the answer to a short text."""
    return _page(parts, pages, matcher, text, release)


@router.post("/identify", include_in_schema=False)
async def identify_posted(request: Request, parts: PartsDep, pages: PagesDep, matcher: MatcherDep) -> Response:
    """Show the answer to a posted form; the box of `/` calls its field `q`."""
    form = await _form(request)
    text = form.get("text", form.get("q", ""))
    _limit(text)
    return await run_in_threadpool(_page, parts, pages, matcher, text, form.get("release", "")[:60])


async def _body(request: Request) -> bytes:
    """Return the body of a request.

    Raises: TooLarge: it is over the limit; the rest is not read.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BODY:
            raise _too_large()
    return bytes(body)


async def _form(request: Request) -> dict[str, str]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        async with request.form(max_files=0, max_fields=10, max_part_size=MAX_TEXT + 1) as form:
            return {name: value for name, value in form.items() if isinstance(value, str)}
    body = (await _body(request)).decode("ascii", "replace")
    return dict(parse_qsl(body, keep_blank_values=True, errors="replace", max_num_fields=10))


def _request(content_type: str, body: bytes, query: Mapping[str, str]) -> IdentifyRequest:
    """Return what a body asks, JSON or plain text.

    Raises: BadInput: it is neither.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded":  # what `curl -d` says of anything
        kind = "application/json" if body.lstrip().startswith(b'{"text"') else "text/plain"
    if kind in ("application/json", ""):
        try:
            asked = IdentifyRequest.model_validate(orjson.loads(body))
        except orjson.JSONDecodeError:
            raise BadInput("The body is not JSON. Send it as text/plain, or as JSON with a field `text`.") from None
        except ValidationError as error:
            fields = [{"loc": list(e["loc"]), "msg": e["msg"]} for e in error.errors(include_input=False)]
            raise BadInput(
                "The body is malformed: it has the fields text, package and release.", errors=fields
            ) from None
    elif kind == "text/plain":
        asked = IdentifyRequest(
            text=body.decode("utf-8", "replace"), package=query.get("package"), release=query.get("release")
        )
    else:
        raise BadInput("Send application/json with a field `text`, or text/plain.")
    _limit(asked.text)
    return asked


def _limit(text: str) -> None:
    if len(text) > MAX_TEXT or len(text.encode("utf-8", "replace")) > MAX_TEXT:
        raise _too_large()


def _too_large() -> TooLarge:
    return TooLarge(f"The text is over {MAX_TEXT:,} bytes. Paste the part round the error.", limit=MAX_TEXT)


def _found(matcher: Matcher, asked: IdentifyRequest) -> Identification:
    found = identify(matcher.index(), asked.text, package=asked.package or "", release=asked.release or "")
    if not found.matches and not found.looks_like and kind_of(asked.text) == "command":
        return replace(found, looks_like="This is a launch command, not an error: /check says whether it starts.")
    return found


def _page(parts: Parts, pages: Pages, matcher: Matcher, text: str, release: str) -> Response:
    asked = bool(text.strip())
    found = _found(matcher, IdentifyRequest(text=text, release=release)) if asked else Identification()
    with parts.store.reading() as connection:
        versions = dict.fromkeys(r.version for r in reversed(queries.releases(connection)))
    head = Head(
        title=head_title("Identify an error"),
        description="Paste a traceback, a log or a message: Errata names the record behind it and says why.",
        section="/identify",
        canonical="/identify",
        indexed=not asked,
    )
    page = IdentifyPage(
        head=head,
        text=text[:_SHOWN_AGAIN],
        asked=asked,
        matches=tuple(_shown(match) for match in found.matches),
        blocks=tuple(_shown_block(block) for block in found.blocks[:_SHOWN_BLOCKS]),
        looks_like=found.looks_like,
        release=release,
        releases=tuple(versions),
    )
    return pages.response(page, headers={"cache-control": "no-store"} if asked else None)


def _shown(match: Match) -> Shown:
    also = tuple(Link(place, f"/errors/{i}") for i, place in zip(match.also, match.also_places, strict=True))[
        :_SHOWN_ALSO
    ]
    return Shown(
        url=record_url(match.record_id, match.values),
        title=match.title,
        exception=match.exception,
        segments=segments(match.parts, values=match.values),
        values=match.values,
        reasons=match.reasons,
        also=also,
        more=len(match.also) - len(also),
        strength=_strength(match.score),
        wrapper=match.wrapper,
    )


def _strength(score: float) -> str:
    return "sure" if score >= 0.9 else "likely" if score >= 0.7 else "possible"


_HOW = {
    "context": "raised while the one before was handled",
    "cause": "raised from the one before",
    "group": "one of a group",
    "body": "found in an HTTP body",
}


def _shown_block(block: Block) -> ShownBlock:
    frames = tuple(f"{f.path}, line {f.line}, in {f.function}" for f in block.frames[-_SHOWN_FRAMES:])
    return ShownBlock(
        exception=block.exception,
        message=block.message[:600],
        frames=frames,
        hidden=len(block.frames) - len(frames),
        how=_HOW.get(block.chained, ""),
    )
