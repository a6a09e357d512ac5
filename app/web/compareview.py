"""A comparison of releases as a reader meets it: a row a release, what changed between neighbours. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from app.web.diff import Piece, halves

WORDS = {"pass": "starts", "fail": "refused", "unknown": "not decided"}
_SHOWN = 300


@dataclass(frozen=True, slots=True)
class RowView:
    """One release. `said` is its error or why it is undecided, `record` the page of the error's record.

    Shape: `again` says what became of the command with the options of that release; `tokens` are then of it.
    """

    version: str
    verdict: str
    word: str
    said: str
    record: str
    record_title: str
    again: str
    tokens: str
    change: str


@dataclass(frozen=True, slots=True)
class StepView:
    """What changed from one release to the next, in sentences."""

    old: str
    new: str
    flags: tuple[str, ...]
    defaults: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class MigratedView:
    """The command in the words of the newest release, what was changed in it, and what became of it there."""

    version: str
    command: str
    pieces: tuple[Piece, ...]
    changes: tuple[str, ...]
    verdict: str
    word: str
    said: str


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """A whole comparison. Fields are what `partials/comparison.html` uses."""

    line: str
    machine: str
    rows: tuple[RowView, ...]
    steps: tuple[StepView, ...]
    migrated: MigratedView | None
    command: str
    elapsed: str


def comparison_view(body: Mapping[str, Any]) -> ComparisonView:
    """Return the view of what `POST /api/check/compare` answers."""
    rows = tuple(_rows(body))
    hardware = body["hardware"]
    return ComparisonView(
        line=_line(rows),
        machine=f"{hardware['gpus']} x {hardware['title']}" if hardware else "",
        rows=rows,
        steps=tuple(step for one in body["steps"] if (step := _step(one)).flags or step.defaults),
        migrated=_migrated(body["migrated"], body["command"]) if body["migrated"] else None,
        command=body["command"],
        elapsed=f"{body['elapsed_ms'] / 1000:.1f} s",
    )


def _line(rows: tuple[RowView, ...]) -> str:
    counted = [(word, [row.version for row in rows if row.verdict == verdict]) for verdict, word in WORDS.items()]
    return "; ".join(f"{word} on {', '.join(versions)}" for word, versions in counted if versions)


def _rows(body: Mapping[str, Any]) -> Iterator[RowView]:
    changes = {step["to"]: step["tokens"] for step in body["steps"]}
    for row in body["engines"]:
        again = row["rewritten"]
        error = (again and again["error"]) or row["error"] or {}
        record = error.get("record") or {}
        tokens = again["tokens"] if again and again["verdict"] == "pass" else row["tokens"]
        yield RowView(
            version=row["version"],
            verdict=row["verdict"],
            word=WORDS[row["verdict"]],
            said=_said(row),
            record=record.get("url", ""),
            record_title=record.get("title", ""),
            again=_again(again) if again else "",
            tokens="" if tokens is None else f"{tokens:,}",
            change=_change(changes.get(row["version"])),
        )


def _again(rewritten: Mapping[str, Any]) -> str:
    said = _said(rewritten)
    return f"with this release's options: {WORDS[rewritten['verdict']]}" + (f", {said}" if said else "")


def _said(row: Mapping[str, Any]) -> str:
    error = row.get("error")
    if error is None:
        return row.get("reason") or ""
    text = f"{error['exception']}: {error['message'] or error['condition'] or 'no message'}"
    return _shown(re.sub(r"\s+", " ", text))


def _change(tokens: Mapping[str, int] | None) -> str:
    """Return how a capacity differs from the release before; "" where it does not, or one is not known."""
    if not tokens or not tokens["before"] or tokens["before"] == tokens["after"]:
        return ""
    share = tokens["after"] / tokens["before"] - 1
    return f"{share:+.1%}" if abs(share) >= 0.0005 else f"{tokens['after'] - tokens['before']:+,}"


def _step(step: Mapping[str, Any]) -> StepView:
    return StepView(
        old=step["from"],
        new=step["to"],
        flags=tuple(_flag(change) for change in step["flags"]),
        defaults=tuple((one["name"], _shown(one["before"]), _shown(one["after"])) for one in step["defaults"]),
    )


def _flag(change: Mapping[str, Any]) -> str:
    words = {"new": "is new", "value not accepted": "is a value that is not accepted any more"}
    instead = f"; use {change['instead']}" if change["instead"] else ""
    return f"{change['flag']} {words.get(change['what'], 'is ' + change['what'])}{instead}"


def _migrated(found: Mapping[str, Any], asked: str) -> MigratedView:
    _, pieces = halves(asked, found["command"])
    changes = [
        f"{step['before']} becomes {step['after']}: {step['why']}"
        if step["after"]
        else f"{step['before']} is left out: {step['why']}"
        for step in found["changes"]
    ]
    return MigratedView(
        version=found["engine"],
        command=found["command"],
        pieces=tuple(pieces),
        changes=(*changes, *([found["edit"]] if found["edit"] else [])),
        verdict=found["verdict"],
        word=WORDS[found["verdict"]],
        said=_said(found),
    )


def _shown(value: object) -> str:
    text = "not set" if value is None else str(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
