"""Which sites the search is about, and what became of each.

A site belongs to start-up if a run of the search was seen to enter its function between the parsing of the arguments
and the end of the attention backends. The sites of the files that NAMED lists belong in any case: they are the
argument, model-configuration and pool stages themselves.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from app.errors import Broken
from app.triggers.model import FOLDER, Site
from app.triggers.reasons import reason
from app.triggers.runner import Place
from app.triggers.search import Search

Row = dict[str, Any]
"""A site and what became of it, as JSON."""

NAMED = (
    "sglang/srt/server_args*.py",
    "sglang/srt/arg_groups/*.py",
    "sglang/srt/configs/model_config*.py",
    "sglang/srt/model_executor/pool_configurator.py",
    "sglang/srt/mem_cache/kv_cache_configurator.py",
    "sglang/srt/mem_cache/kv_cache_dtype.py",
    "sglang/srt/layers/attention/attention_registry.py",
    "sglang/srt/layers/quantization/__init__.py",
)
WATCHED = (
    *NAMED,
    "sglang/srt/environ.py",
    "sglang/srt/runtime_context.py",
    "sglang/srt/configs/*.py",
    "sglang/srt/disaggregation/utils.py",
    "sglang/srt/distributed/*.py",
    "sglang/srt/eplb/*.py",
    "sglang/srt/layers/*.py",
    "sglang/srt/lora/*.py",
    "sglang/srt/managers/scheduler*.py",
    "sglang/srt/managers/tp_worker.py",
    "sglang/srt/mem_cache/*.py",
    "sglang/srt/model_executor/*.py",
    "sglang/srt/model_loader/*.py",
    "sglang/srt/speculative/*.py",
    "sglang/srt/utils/*.py",
)
"""Files whose functions the tracer looks into (a `*` spans folders). Model classes, kernels' platforms and storage
clients are not among them: their sites are not counted."""
UNWATCHED = ("*/mem_cache/storage/*", "*/lora/*_temp/*", "*_hip*", "*/distributed/device_communicators/*")
OPENED = (
    *NAMED,
    "sglang/srt/configs/*.py",
    "sglang/srt/mem_cache/*.py",
    "sglang/srt/model_executor/*.py",
    "sglang/srt/speculative/*.py",
)


def watched(path: str) -> bool:
    """Say whether the search is about a file."""
    return any(fnmatch(path, p) for p in WATCHED) and not any(fnmatch(path, p) for p in UNWATCHED)


EARLY = ("sglang/srt/server_args*.py", "sglang/srt/arg_groups/*.py", "sglang/srt/configs/*.py", "sglang/srt/environ.py")


def early(path: str) -> bool:
    """Say whether the parsing and checking of arguments enters a file."""
    return any(fnmatch(path, pattern) for pattern in EARLY)


def opened(site: Site) -> bool:
    """Say whether ways into the function of a site are looked for where no run enters it by itself."""
    return any(fnmatch(site.path, pattern) for pattern in OPENED)


def named(site: Site) -> bool:
    """Say whether a site stands in one of the stages' own files."""
    return is_named(site.path)


def is_named(path: str) -> bool:
    """Say whether a file is one of the stages' own."""
    return any(fnmatch(path, pattern) for pattern in NAMED)


def of(search: Search, reached: set[Place]) -> list[Row]:
    """Return what became of every site that belongs."""
    found = []
    for place, hunt in search.hunts.items():
        entered = (hunt.goal.path, hunt.goal.entry) in search.entered
        if not entered and not named(hunt.site):
            continue
        site = hunt.site
        row: Row = {
            "record": site.record, "path": site.path, "line": site.line, "function": site.function, "entered": entered,
            "reached": place in reached,
        }  # fmt: skip
        if place not in reached:
            row["reason"], row["shown_by"] = reason(search, hunt)
            row |= search.blocked(hunt)
        found.append(row)
    return found


def complete(rows: Iterable[Row], sites: Iterable[Site], reached: set[Place]) -> list[Row]:
    """Return the rows with what was reached since, and with the named sites that no search was about yet."""
    known = {(row["path"], row["line"]): row for row in rows}
    for site in sites:
        if named(site) and site.place not in known:
            known[site.place] = {
                "record": site.record, "path": site.path, "line": site.line, "function": site.function,
                "entered": False, "reason": "not yet", "shown_by": "",
            }  # fmt: skip
    return [known[place] | {"reached": place in reached} for place in sorted(known)]


def file(engine: str, folder: Path = FOLDER) -> Path:
    """Return where the sites of a release and what became of them are kept."""
    return folder / f"sglang-{engine}.sites.jsonl"


def save(engine: str, rows: list[Row], folder: Path = FOLDER) -> None:
    """Write the sites that belong, by place."""
    folder.mkdir(parents=True, exist_ok=True)
    ordered = sorted(rows, key=lambda row: (row["path"], row["line"]))
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ordered)
    file(engine, folder).write_text(text, encoding="utf-8")


def load(path: Path) -> list[Row]:
    """Read what `save` wrote; no file is no rows. Raises: Broken."""
    if not path.exists():
        return []
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except ValueError as error:
        raise Broken(f"{path.name}: {error}") from None


@dataclass(frozen=True, slots=True)
class Count:
    """How the sites of one group stand."""

    group: str
    sites: int
    reached: int
    unreachable: int

    @property
    def left(self) -> int:
        """Return how many were neither reached nor shown to be unreachable."""
        return self.sites - self.reached - self.unreachable


GROUPS: Mapping[str, tuple[str, ...]] = {
    "arguments": ("server_args*", "arg_groups/*"),
    "model configuration": ("configs/*",),
    "pools": ("mem_cache/*", "model_executor/pool_configurator.py"),
    "model runner": ("model_executor/*", "model_loader/*", "managers/*", "distributed/*", "eplb/*"),
    "attention backends": ("layers/attention/*",),
    "quantisation": ("layers/quantization/*",),
    "speculative decoding": ("speculative/*",),
    "model classes": ("models/*",),
}


def group(path: str) -> str:
    """Return the group of a file."""
    inner = path.removeprefix("sglang/srt/")
    return next((name for name, patterns in GROUPS.items() if any(fnmatch(inner, p) for p in patterns)), "other")


def counts(rows: Iterable[Row], kind: Callable[[Row], bool]) -> list[Count]:
    """Return how the sites of a kind stand, a group a row and all together last."""
    chosen = [row for row in rows if kind(row)]
    names = [name for name in (*GROUPS, "other") if any(group(row["path"]) == name for row in chosen)]
    return [
        _count(name, [row for row in chosen if name == "all" or group(row["path"]) == name]) for name in (*names, "all")
    ]


def _count(name: str, rows: Sequence[Row]) -> Count:
    reached = sum(row["reached"] for row in rows)
    return Count(name, len(rows), reached, sum(not row["reached"] and row["reason"] != "not yet" for row in rows))
