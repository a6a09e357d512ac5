"""Stored runs as sentences: releases on which the same happened share one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from app.store.document import Verified, VerifiedExample


def of_example(runs: Iterable[VerifiedExample]) -> tuple[str, ...]:
    """Return what both halves of an example did, and on which releases."""
    return tuple(
        _sentences((f"before, {run.before}; after, {run.after}", run.engine, run.hardware, run.date) for run in runs)
    )


def of_solution(runs: Iterable[Verified]) -> tuple[str, ...]:
    """Return what became of a command that carries a solution out, and on which releases."""
    return tuple(_sentences((run.run, run.engine, run.hardware, run.date) for run in runs))


def _sentences(runs: Iterable[tuple[str, str, str, str]]) -> Iterator[str]:
    alike: dict[tuple[str, str, str], list[str]] = {}
    for happened, engine, hardware, date in runs:
        alike.setdefault((happened, hardware, date), []).append(engine)
    for (happened, hardware, date), engines in alike.items():
        yield f"run on {', '.join(engines)} ({hardware}, {date}): {happened}"
