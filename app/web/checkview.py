"""The answer of a check as a reader meets it: one line, the record, the memory, the assumptions. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from app.store.document import Document
from app.web import markdown
from app.web.diff import Piece, halves

BAR_WIDTH = 1000
_WHERE = {
    "arguments": "while it resolves the arguments",
    "checks": "when it checks the arguments",
    "distributed": "when it sets up its process groups",
    "model": "while it builds the model",
    "draft model": "while it builds the draft model",
    "pools": "at pool initialisation",
    "draft pools": "at pool initialisation of the draft worker",
    "attention backends": "when it builds the attention backend",
    "prefix cache": "when it builds the prefix cache",
}
_TRIED = {"pass": "starts", "fail": "refused", "unknown": "not decided"}
_OUTCOMES = {"pass": "passed", "fail": "refused", "unknown": "not decided", "not reached": "not reached"}


@dataclass(frozen=True, slots=True)
class StageView:
    """One stage. `word` says its outcome; `ms` is "" where it was not reached."""

    name: str
    outcome: str
    word: str
    ms: str


@dataclass(frozen=True, slots=True)
class RecordView:
    """What of a record stands inline: its meaning and its first solution."""

    url: str
    title: str
    status: str
    meaning: Markup | None
    solution: Markup | None


@dataclass(frozen=True, slots=True)
class ErrorView:
    """What SGLang said, and where."""

    exception: str
    message: str
    place: str
    condition: str
    guards: tuple[str, ...]
    traceback: str
    record: RecordView | None


@dataclass(frozen=True, slots=True)
class Share:
    """One part of the memory of a GPU. `x` and `width` are in thousandths of the whole."""

    key: str
    name: str
    bytes: int
    text: str
    x: int
    width: int


@dataclass(frozen=True, slots=True)
class Fix:
    """An edit that was run. `pieces` are its command with the new words marked, `removed` the words that are gone."""

    edit: str
    command: str
    verdict: str
    where: str
    pieces: tuple[Piece, ...]
    removed: str


@dataclass(frozen=True, slots=True)
class TriedView:
    """An edit that was run while fixes were looked for, and what became of it."""

    edit: str
    word: str
    said: str


@dataclass(frozen=True, slots=True)
class AnswerView:
    """A whole answer. Fields are what `partials/verdict.html` uses."""

    verdict: str
    line: str
    reason: str
    stages: tuple[StageView, ...]
    error: ErrorView | None
    facts: tuple[tuple[str, str], ...]
    memory: tuple[Share, ...]
    memory_title: str
    resolved: tuple[tuple[str, str, str], ...]
    warnings: tuple[str, ...]
    assumptions: tuple[str, ...]
    uncalibrated: tuple[str, ...]
    fixes: tuple[Fix, ...]
    tried: tuple[TriedView, ...]
    search: str
    searching: bool
    command: str
    elapsed: str


def answer_view(
    body: Mapping[str, Any], document: Document | None = None, *, asked: str = "", searching: bool = False
) -> AnswerView:
    """Return the view of the body of `POST /api/check`.

    Shape: `document` is the record behind its error, `asked` the text as it was submitted; `searching` says that
           fixes are still looked for.
    """
    pools = body["pools"]
    return AnswerView(
        verdict=body["verdict"],
        line=_line(body),
        reason=body["reason"] or "",
        stages=tuple(_stage(stage) for stage in body["stages"]),
        error=_error(body["error"], document) if body["error"] else None,
        facts=_facts(pools) if pools else (),
        memory=shares(pools) if pools else (),
        memory_title=_memory_title(body),
        resolved=_resolved(body["resolved"], body["asked"]),
        warnings=tuple(body["warnings"]),
        assumptions=tuple(body["assumptions"]),
        uncalibrated=tuple(body["uncalibrated"]),
        fixes=tuple(_fix(fix, body, asked) for fix in body["fixes"]),
        tried=tuple(TriedView(t["edit"], _TRIED[t["verdict"]], t["said"]) for t in body.get("tried", ())),
        search=_search(body.get("search")),
        searching=searching,
        command=body["command"],
        elapsed=_elapsed(body),
    )


def _fix(fix: Mapping[str, Any], body: Mapping[str, Any], asked: str) -> Fix:
    """Return a fix with its differences from the command that was asked, as it was written or as it was read."""
    sides = [halves(text, fix["command"]) for text in (asked, body["command"]) if text]
    old, new = min(sides, key=lambda side: sum(len(piece.text) for piece in (*side[0], *side[1]) if piece.change))
    hardware = body["hardware"]
    machine = fix.get("hardware", hardware["title"])
    return Fix(
        fix["edit"], fix["command"], fix["verdict"],
        f"SGLang {fix.get('engine', body['engine']['version'])}, {fix.get('gpus', hardware['gpus'])} × {machine}",
        new, " ".join(piece.text.strip(" \\\n") for piece in old if piece.change),
    )  # fmt: skip


def _search(search: Mapping[str, Any] | None) -> str:
    if search is None:
        return ""
    return f"Edits run: {search['checks']}, in {search['ms'] / 1000:.1f} s. The search ended: {search['ended']}."


def _line(body: Mapping[str, Any]) -> str:
    release = f"SGLang {body['engine']['version']}"
    stopped = next((s["name"] for s in body["stages"] if s["outcome"] in ("fail", "unknown")), "")
    where = _WHERE.get(stopped, f"at {stopped}" if stopped else "")
    if body["verdict"] == "fail":
        return f"{release} refuses this launch {where}".rstrip() + "."
    if body["verdict"] == "pass":
        return f"{release} starts with this command: every stage before serving passed."
    return f"Not decided for {release}{f', {where}' if where else ''}."


def _elapsed(body: Mapping[str, Any]) -> str:
    known = " (this very check was run before)" if body["cached"] else ""
    return f"{body['elapsed_ms'] / 1000:.2f} s{known}"


def _stage(stage: Mapping[str, Any]) -> StageView:
    reached = stage["outcome"] != "not reached"
    return StageView(
        stage["name"], stage["outcome"], _OUTCOMES[stage["outcome"]], f"{stage['ms']:.0f} ms" if reached else ""
    )


def _error(error: Mapping[str, Any], document: Document | None) -> ErrorView:
    record = None
    if error["record"]:
        record = RecordView(
            error["record"]["url"],
            error["record"]["title"],
            document.status if document else "",
            markdown.inline(document.meaning or "") if document else None,
            markdown.inline(document.solutions[0].text) if document and document.solutions else None,
        )
    return ErrorView(
        exception=error["exception"],
        message=error["message"],
        place=f"{error['path']}:{error['line']}, in {error['function']}",
        condition=error["condition"] or "",
        guards=tuple(error["guards"]),
        traceback="\n".join(line.rstrip("\n") for line in error["traceback"]),
        record=record,
    )


def _tokens(pools: Mapping[str, Any]) -> str:
    """Return the tokens with their range; no number where only the real device can make it."""
    tokens, span = pools["max_total_num_tokens"], pools.get("token_range")
    if tokens is None:
        return "depends on a measurement of the real device"
    return f"{tokens:,}" + (f" (from {span['low']:,} to {span['high']:,})" if span else "")


def _facts(pools: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    budget = pools["budget"] or {}
    rows: list[tuple[str, str]] = [
        ("tokens in the KV cache", _tokens(pools)),
        ("requests at once", f"{pools['max_running_requests']:,}"),
        ("KV cache per token", f"{pools['bytes_per_token']:,.0f} bytes" if pools["bytes_per_token"] else ""),
        ("sliding-window tokens", f"{pools['swa_tokens']:,}" if pools["swa_tokens"] else ""),
        ("state slots", f"{pools['state_slots']:,}" if pools["state_slots"] else ""),
        ("type of the KV cache", pools["kv_dtype"]),
        ("pool", pools["token_to_kv_pool"]),
        ("allocator", pools["allocator"]),
        ("model class", pools["model"]),
        ("draft pool", (pools["draft"] or {}).get("token_to_kv_pool", "")),
        ("page size", str(budget.get("page_size") or "")),
        ("context length", f"{budget['context_length']:,}" if budget.get("context_length") else ""),
        ("static memory fraction", f"{budget['fraction']:g}" if budget.get("fraction") else ""),
        ("KV cache in host memory", gib(pools["host_kv_bytes"]) if pools["host_kv_bytes"] else ""),
    ]
    return tuple((name, value) for name, value in rows if value)


def shares(pools: Mapping[str, Any]) -> tuple[Share, ...]:
    """Return how one GPU's memory is divided. The last part is what is left, so that all parts make the whole."""
    budget = pools["budget"]
    if not budget or budget["total_bytes"] <= 0:
        return ()
    draft = pools["draft"] or {}
    total: int = budget["total_bytes"]
    parts = [
        ("weights", "weights", budget["free_before_bytes"] - budget["free_after_weights_bytes"]),
        ("kv", "KV cache", pools["kv_cache_bytes"] + draft.get("kv_bytes", 0)),
        ("state", "recurrent state", pools["state_bytes"] + draft.get("state_bytes", 0)),
        ("requests", "request table", pools["request_bytes"] + draft.get("request_bytes", 0)),
        ("reserve", "driver, context, communication", total - budget["free_before_bytes"]),
    ]
    rows = [(key, name, min(max(0, size), total)) for key, name, size in parts]
    rows.append(("free", "left for activations and graphs", max(0, total - sum(size for _, _, size in rows))))
    return tuple(_placed([row for row in rows if row[2] > 0], total))


def _placed(rows: Sequence[tuple[str, str, int]], total: int) -> list[Share]:
    placed, before = [], 0
    for key, name, size in rows:
        left = min(BAR_WIDTH, round(before * BAR_WIDTH / total))
        before += size
        right = min(BAR_WIDTH, round(before * BAR_WIDTH / total))
        placed.append(Share(key, name, size, gib(size), left, right - left))
    return placed


def _memory_title(body: Mapping[str, Any]) -> str:
    pools = body["pools"]
    if not pools or not pools["budget"]:
        return ""
    hardware = body["hardware"]
    return f"Memory of one GPU, {hardware['title']}, {gib(pools['budget']['total_bytes'])}"


def _resolved(resolved: Mapping[str, Any], asked: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    return tuple((name, _shown(asked.get(name)), _shown(value)) for name, value in sorted(resolved.items()))


def _shown(value: object) -> str:
    text = "not set" if value is None else str(value)
    return text if len(text) <= 300 else text[:299] + "…"


def gib(size: int) -> str:
    """Return bytes in the unit a reader compares with a card's size."""
    return f"{size / (1 << 30):.2f} GiB" if size >= 1 << 28 else f"{size / (1 << 20):.1f} MiB"
