"""Lists of launches that were run: options that no model started with, and refusals that come late."""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from starlette.responses import Response

from app.errors import NotFound
from app.store import queries
from app.triggers import lists, model
from app.triggers.lists import LateRefusal, Lists, Refusal, RefusedOption
from app.web import answers
from app.web.frame import Head, head_title
from app.web.parts import PagesDep, PartsDep

router = APIRouter()
RELEASE = Query(max_length=40, description="A release of SGLang; none: the newest that was run.")
_OPTIONS, _LATE = "/launches/refused-flags", "/launches/late-refusals"


@dataclass(frozen=True, slots=True)
class Shown:
    """A refusal as the page shows it. `record_url` is "" where no record has the place."""

    exception: str
    message: str
    place: str
    models: int
    record_url: str
    command: str
    hardware: str
    check_url: str


@dataclass(frozen=True, slots=True)
class Flag:
    """An option, with its value, that every model was refused with. `url` leads to its errors, or is ""."""

    text: str
    url: str
    refusals: tuple[Shown, ...]
    more: int


@dataclass(frozen=True, slots=True)
class Late:
    """A launch that a late stage refuses. `passed` has the stages before it, with their milliseconds."""

    title: str
    exception: str
    place: str
    record_url: str
    command: str
    hardware: str
    check_url: str
    passed: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """The launches that one stage refuses."""

    name: str
    anchor: str
    launches: tuple[Late, ...]


@dataclass(frozen=True, slots=True)
class RefusedFlagsPage:
    """The page. Fields are the names that `templates/pages/refusedflags.html` uses."""

    head: Head
    engine: str
    releases: tuple[str, ...]
    tried: int
    models: tuple[str, ...]
    flags: tuple[Flag, ...]


@dataclass(frozen=True, slots=True)
class LateRefusalsPage:
    """The page. Fields are the names that `templates/pages/laterefusals.html` uses."""

    head: Head
    engine: str
    releases: tuple[str, ...]
    total: int
    stages: tuple[Stage, ...]


@router.get("/api" + _OPTIONS, tags=["launches"])
def refused_flags_json(release: Annotated[str, RELEASE] = "") -> Response:
    """List the flags that SGLang refused with every model they were tried with, each alone."""
    found = _lists(release)
    body: dict[str, Any] = {
        "engine": {"package": "sglang", "version": found.engine}, "tried": found.options, "models": list(found.models),
        "items": [asdict(one) for one in found.refused],
    }  # fmt: skip
    return answers.json(body)


@router.get("/api" + _LATE, tags=["launches"])
def late_refusals_json(release: Annotated[str, RELEASE] = "") -> Response:
    """List launches whose arguments SGLang accepts and that the model, the pools or what follows them refuse."""
    found = _lists(release)
    body: dict[str, Any] = {
        "engine": {"package": "sglang", "version": found.engine},
        "items": [asdict(one) for one in found.late],
    }
    return answers.json(body)


@router.get(_OPTIONS, include_in_schema=False)
def refused_flags_page(parts: PartsDep, pages: PagesDep, release: Annotated[str, RELEASE] = "") -> Response:
    """Show the flags that no model started with."""
    found = _lists(release)
    with parts.store.reading() as connection:
        known = queries.flags(connection)
    head = Head(
        title=head_title(f"Flags that no model of {len(found.models)} starts with, SGLang {found.engine}"),
        description=f"{len(found.refused)} flags and values that SGLang {found.engine} refused, each alone, with every"
        f" one of {len(found.models)} models.",
        section="/check",
        canonical=_OPTIONS,
        json=f"/api{_OPTIONS}?{urlencode({'release': found.engine})}",
    )
    flags = tuple(_flag(one, found.engine, known) for one in found.refused)
    return pages.response(RefusedFlagsPage(head, found.engine, _releases(), found.options, found.models, flags))


@router.get(_LATE, include_in_schema=False)
def late_refusals_page(pages: PagesDep, release: Annotated[str, RELEASE] = "") -> Response:
    """Show launches that are refused after their arguments were accepted."""
    found = _lists(release)
    head = Head(
        title=head_title(f"Launches that SGLang {found.engine} refuses late"),
        description=f"{len(found.late)} launches whose arguments SGLang {found.engine} accepts and that the model, the"
        " memory pools or what follows them refuse.",
        section="/check",
        canonical=_LATE,
        json=f"/api{_LATE}?{urlencode({'release': found.engine})}",
    )
    stages = tuple(
        Stage(name, name.replace(" ", "-"), tuple(_late(one, found.engine) for one in same))
        for name, same in groupby(found.late, key=lambda one: one.stage)
    )
    return pages.response(LateRefusalsPage(head, found.engine, _releases(), len(found.late), stages))


def _releases() -> tuple[str, ...]:
    """Return the releases that were run, newest first."""
    return tuple(
        sorted(lists.known(model.FOLDER), key=lambda version: [int(p) for p in version.split(".") if p.isdigit()])[::-1]
    )


def _lists(release: str) -> Lists:
    known = _releases()
    if not known or (release and release not in known):
        raise NotFound(
            f"No launches of SGLang {release[:40]} were run; of these they were: {', '.join(known) or 'none'}."
        )
    path = lists.file(release or known[0], model.FOLDER)
    return _read(path, path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=8)
def _read(path: Path, stamp: int) -> Lists:
    return lists.load(path)


_SHOWN = 3


def _flag(one: RefusedOption, engine: str, known: Any) -> Flag:
    refusals = tuple(_shown(refusal, engine) for refusal in one.refusals[:_SHOWN])
    url = f"/flags/{one.option}" if one.option in known else ""
    return Flag(f"{one.option} {one.value}".strip(), url, refusals, len(one.refusals) - len(refusals))


def _shown(one: Refusal, engine: str) -> Shown:
    return Shown(
        one.exception, one.message, one.place, one.models, f"/errors/{one.record}" if one.record else "", one.command,
        one.hardware, _check_url(one, engine),
    )  # fmt: skip


def _late(one: LateRefusal, engine: str) -> Late:
    passed = tuple((name, f"{ms:,.0f} ms") for name, ms in one.stages.items())
    return Late(
        one.title, one.exception, one.place, f"/errors/{one.record}", one.command, one.hardware,
        _check_url(one, engine), passed,
    )  # fmt: skip


def _check_url(one: Refusal | LateRefusal, engine: str) -> str:
    return "/check?" + urlencode({"command": one.command, "engine": engine, "hardware": one.hardware})
