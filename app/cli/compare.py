"""`errata check --engine all`: one command on every installed release."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from app.cli import checking, options

if TYPE_CHECKING:
    from app.cli.progress import Reporter
    from app.settings import Settings
    from app.web.checks import Checks

EVERY = "all"


def here(chosen: Settings, given: Mapping[str, Any]) -> dict[str, Any]:
    """Compare in this process's own pool, and return the API's body."""
    from app.check.service import Question
    from app.cli.progress import reporting
    from app.store import migrate

    question = Question(**{name: value for name, value in given.items() if value is not None})
    with options.opened() as store, reporting() as progress:
        linked = migrate.exists(store) and migrate.is_current(store)
        checks = checking.checks(chosen, store, warm=False, linked=linked)
        return asyncio.run(_compared(checks, question, progress))


async def _compared(checks: Checks, question: Any, progress: Reporter) -> dict[str, Any]:
    from app.check.compare import Comparer

    total = len(checks.engines.installed())
    done = 0

    def tell(row: dict[str, Any]) -> None:
        nonlocal done
        done += 1
        progress(f"{row['version']} done", done, total)

    try:
        progress("starting the engines", 0, total)
        return await Comparer(checks.service()).compare(question, on_row=tell)
    finally:
        await checks.close()


def exit_code(body: Mapping[str, Any]) -> int:
    """Return 0 where every release starts the command, 1 where one refuses it, else 3."""
    verdicts = {row["verdict"] for row in body["engines"]}
    return 1 if "fail" in verdicts else 3 if "unknown" in verdicts else 0


def lines(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield a comparison as lines for people."""
    from app.web.compareview import comparison_view

    view = comparison_view(body)
    yield view.line
    if view.machine:
        yield f"  on {view.machine}"
    yield ""
    header = ("release", "verdict", "KV tokens", "change")
    cells = [header, *((row.version, row.word, row.tokens, row.change) for row in view.rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    said = ["", *("; ".join(filter(None, (row.again, row.said))) for row in view.rows)]
    for row, text in zip(cells, said, strict=True):
        shown = "  ".join(c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
        yield clean(f"  {shown}  {text}".rstrip())
    for step in view.steps:
        yield ""
        yield f"{step.old} to {step.new}"
        yield from (clean(f"  - {flag}") for flag in step.flags)
        yield from (clean(f"  - {name}: {before} -> {after}") for name, before, after in step.defaults)
    if view.migrated is not None:
        yield ""
        yield f"for {view.migrated.version}, run there: {view.migrated.word}"
        yield clean(f"  {view.migrated.command}")
        yield from (clean(f"  - {change}") for change in view.migrated.changes)
        if view.migrated.said:
            yield clean(f"  {view.migrated.said}")


def clean(text: str) -> str:
    """Return text without control characters: an answer must not drive the reader's terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)
