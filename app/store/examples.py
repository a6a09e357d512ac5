"""Curated examples against their stored runs: is each run there, does it stand, does it show what the record says."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson
from sqlalchemy import Connection

from app.errors import NotFound
from app.records.model import CuratedRecord
from app.records.runs import Runs, fresh
from app.store import queries


@dataclass(frozen=True, slots=True)
class Runner:
    """What examples can be run on: the releases that have an engine, and which texts are launch commands."""

    engines: Collection[str]
    is_launch: Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Life:
    """The ingested releases that have a record, oldest first, and the first without it ("" where it is still there)."""

    releases: tuple[str, ...] = ()
    gone_since: str = ""


def life(connection: Connection, record_id: str) -> Life:
    """Return the life of a record; an empty one where there is no such record."""
    try:
        history = orjson.loads(queries.document(connection, record_id).body)["history"]
    except NotFound:
        return Life()
    return Life(tuple(place["version"] for place in history["releases"]), history["gone_since"] or "")


def problems(records: Sequence[CuratedRecord], lives: Mapping[str, Life], runs: Runs, runner: Runner) -> Iterator[str]:
    """Yield what must be mended, each as "file: field: what"."""
    for record in records:
        wanted = [version for version in lives[record.front.id].releases if version in runner.engines]
        example = record.front.example
        runnable = runner.is_launch(example.before) and runner.is_launch(example.after)
        made = {run.engine: run for run in fresh(runs, record.front.id, example)} if runnable else {}
        missing = [version for version in wanted if version not in made] if runnable else []
        wrong = [made[version] for version in wanted if version in made and not made[version].good]
        if missing:
            yield f"{record.file}: example: not run on {', '.join(missing)}: `errata verify {record.front.id}` runs it"
        elif not record.body.not_verified:
            if not runnable:
                yield f"{record.file}: example: it is no launch, so a heading '## Not verified' has to say so"
            for run in wrong:
                yield f"{record.file}: example: on {run.engine} before: {run.before}; after: {run.after}"
        elif runnable and not wrong and wanted:
            yield f"{record.file}: '## Not verified' stands there, but the example was run on every release"
