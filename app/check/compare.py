"""One command over several releases: verdict of each, what changed from one to the next, the migrated command, run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any, Protocol

from app.check import command as commands
from app.check.fixes.arguments import given
from app.check.fixes.rewrite import rewritten
from app.check.migrate import Step, flag_changes, migrated
from app.check.options import Options
from app.check.pool import Engine
from app.check.protocol import Option
from app.check.service import Engines, Question
from app.errors import BadInput, OutOfTime, TooMany, Unavailable

ENGINES_LIMIT = 16
Row = dict[str, Any]
OnRow = Callable[[Row], None]


class Answering(Protocol):
    """What checks a command on one release; `CheckService` is one."""

    @property
    def engines(self) -> Engines:
        """Return what engines are installed."""
        ...

    async def check(self, question: Question) -> dict[str, Any]:
        """Return the body of the answer."""
        ...


class Comparer:
    """Compares releases, one command at a time: a comparison may start an engine process for each of them."""

    def __init__(self, service: Answering, table: Callable[[Engine], Options] = Options.of) -> None:
        self.service, self.table = service, table
        self._one = asyncio.Lock()

    async def compare(
        self, question: Question, engines: Sequence[str] = (), on_row: OnRow | None = None
    ) -> dict[str, Any]:  # fmt: skip
        """Return the body of the answer; `engines` are versions, none: all that are installed.

        Raises: BadInput, TooLarge: the question. TooMany: another comparison runs. Unavailable: no engine.
        """
        began = time.perf_counter()
        chosen = self._chosen(engines)
        launch = commands.read(question.command)
        if self._one.locked():
            raise TooMany("Another comparison of releases runs; try again when it has ended.", retry_after_s=20)
        async with self._one:
            tables = [await asyncio.to_thread(self.table, engine) for engine in chosen]
            bodies: list[Row] = []
            effective: list[Row] = []
            rows: list[Row] = []
            for i, engine in enumerate(chosen):
                body = await self._checked(replace(question, engine=engine.version, fixes=False))
                again = await self._again(question, launch, tables[: i + 1]) if body["verdict"] == "fail" else None
                bodies.append(body)
                effective.append(body if again is None or again[1]["verdict"] == "fail" else again[1])
                rows.append(_row(engine.version, body, again))
                if on_row is not None:
                    on_row(rows[-1])
            steps = [
                _step(launch.arguments, (effective[i], tables[i]), (effective[j], tables[j]))
                for i, j in pairwise(range(len(chosen)))
            ]
            last = await self._migrated(question, launch, chosen, tables, bodies[-1])
        first = next((body for body in bodies if "hardware" in body), {})
        return {
            "command": launch.text(),
            "hardware": first.get("hardware"),
            "engines": rows,
            "steps": steps,
            "migrated": last,
            "elapsed_ms": round((time.perf_counter() - began) * 1000, 1),
        }

    def _chosen(self, asked: Sequence[str]) -> list[Engine]:
        installed = {engine.version: engine for engine in self.service.engines.installed()}
        if not installed:
            raise Unavailable("No check engine is installed. Run `errata engine install`.")
        wanted = {version.strip().removeprefix("sglang==").removeprefix("v") for version in asked}
        if unknown := sorted(wanted - installed.keys()):
            raise BadInput(
                f"SGLang {unknown[0][:40]} is not installed here; these are: {', '.join(installed)}.",
                known=list(installed),
            )
        found = [engine for version, engine in installed.items() if not wanted or version in wanted]
        return found[-ENGINES_LIMIT:]

    async def _checked(self, question: Question) -> Row:
        """Return the answer of one release; what befalls one of them is no reason to lose the others."""
        try:
            return await self.service.check(question)
        except (TooMany, OutOfTime, Unavailable) as error:
            return {"verdict": "unknown", "reason": error.detail, "error": None, "pools": None, "resolved": {}}

    async def _again(
        self, question: Question, launch: commands.LaunchCommand, tables: Sequence[Options]
    ) -> tuple[str, Row] | None:
        """Return the command with the options that the last release lacks replaced, and its answer; None if none is."""
        arguments, steps = migrated(launch.arguments, tables[:-1], tables[-1], deprecated=False)
        if not steps:
            return None
        text = launch.text(arguments)
        return text, await self._checked(replace(question, command=text, engine=tables[-1].version, fixes=False))

    async def _migrated(
        self, question: Question, launch: commands.LaunchCommand, engines: Sequence[Engine],
        tables: Sequence[Options], newest: Row,
    ) -> Row | None:  # fmt: skip
        """Return the command in the words of the newest release, run there; None where nothing has to change."""
        engine = engines[-1]
        for deprecated in (True, False):
            arguments, steps = migrated(launch.arguments, tables[:-1], tables[-1], deprecated=deprecated)
            if not steps:
                break
            text = rewritten(question.command, launch, arguments, launch.environment, engine.version)
            body = await self._checked(replace(question, command=text, engine=engine.version, fixes=False))
            # Rewriting what is deprecated must not cost the verdict.
            if body["verdict"] == newest["verdict"] or body["verdict"] == "pass" or not deprecated:
                return _rewritten(engine.version, text, steps, body)
        if newest["verdict"] != "fail":
            return None
        body = await self._checked(replace(question, engine=engine.version, fixes=True))
        fix = next((f for f in body.get("fixes", ()) if f["verdict"] == "pass" and "engine" not in f), None)
        if fix is None or "hardware" in fix:
            return None
        return _rewritten(engine.version, fix["command"], (), {"verdict": "pass"}, edit=fix["edit"])


def _rewritten(version: str, command: str, steps: Sequence[Step], body: Row, edit: str = "") -> Row:
    return {
        "engine": version,
        "command": command,
        "changes": [asdict(step) for step in steps],
        "edit": edit or None,
        "verdict": body["verdict"],
        "error": _error(body),
        "tokens": _tokens(body),
    }


def _row(version: str, body: Row, again: tuple[str, Row] | None) -> Row:
    pools = body["pools"] or {}
    own = None
    if again is not None:
        text, answer = again
        own = {
            "command": text,
            "verdict": answer["verdict"],
            "error": _error(answer),
            "tokens": _tokens(answer),
        }
    return {
        "version": version,
        "verdict": body["verdict"],
        "reason": body["reason"],
        "stage": next((s["name"] for s in body.get("stages", ()) if s["outcome"] in ("fail", "unknown")), None),
        "error": _error(body),
        "tokens": _tokens(body),
        "token_range": pools.get("token_range"),
        "max_running_requests": pools.get("max_running_requests"),
        "warnings": body.get("warnings", []),
        "rewritten": own,
    }


def _error(body: Row) -> Row | None:
    error = body.get("error")
    if error is None:
        return None
    kept = ("exception", "message", "condition", "path", "line", "function", "record")
    return {name: error[name] for name in kept}


def _tokens(body: Row) -> int | None:
    tokens: int | None = (body.get("pools") or {}).get("max_total_num_tokens")
    return tokens


def _step(arguments: Sequence[str], old: tuple[Row, Options], new: tuple[Row, Options]) -> Row:
    """Return what changed from one release to the next."""
    (before, old_table), (after, new_table) = old, new
    counts = (_tokens(before), _tokens(after))
    return {
        "from": old_table.version,
        "to": new_table.version,
        "flags": [asdict(change) for change in flag_changes(arguments, old_table, new_table)],
        "defaults": _defaults(arguments, old, new) if "pass" == before["verdict"] == after["verdict"] else [],
        "tokens": None if None in counts else {"before": counts[0], "after": counts[1]},
    }


def _defaults(arguments: Sequence[str], old: tuple[Row, Options], new: tuple[Row, Options]) -> list[Row]:
    """Return the settings that nobody gave whose value both releases chose otherwise."""
    (before, old_table), (after, new_table) = old, new
    asked = {one.key for table in (old_table, new_table) for one in given(arguments, table)}
    names = dict.fromkeys(o.dest for o in old_table if _is_kept(new_table.setting(o.dest)))
    was, now = _values(before["resolved"], old_table), _values(after["resolved"], new_table)
    return [
        {"name": name, "before": was[name], "after": now[name]}
        for name in names
        if name not in asked and was[name] != now[name] and not _is_unlike(was[name], now[name])
    ]


def _is_kept(option: Option | None) -> bool:
    return option is not None and not option.deprecated


def _is_unlike(one: object, other: object) -> bool:
    """Say whether two releases write a setting in forms that cannot be compared: one as text, the other in parts."""
    forms = {type(one), type(other)}
    return str in forms and bool(forms & {dict, list})


def _values(resolved: Mapping[str, Any], table: Options) -> dict[str, Any]:
    """Return what each setting is: as SGLang resolved it, else the parser's default."""
    return {option.dest: option.default for option in table} | dict(resolved)
