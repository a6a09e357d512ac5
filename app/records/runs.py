"""Stored runs of the examples of curated records: what `errata verify` writes and every "verified" comes from."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated

from packaging.version import InvalidVersion, Version
from pydantic import ConfigDict, StringConstraints, ValidationError

from app.errors import Broken
from app.records.model import Example, Id, Text, Value

MET = "this error"
PASSED = "pass"
Day = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d{2}-\d{2}$")]
_MOST_BYTES = 16 << 20


class RunsError(Broken):
    """The file of stored runs is not as it should be."""

    title = "Broken file of runs"


class Run(Value):
    """What both halves of one example did on one release.

    Shape: `example` is the digest of what was run: another text, hardware or request makes the run stale. `before`
           is "this error" where exactly this record was raised, `after` is "pass" where the server would start;
           otherwise each says what happened.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    record: Id
    engine: Text
    before: Text
    after: Text
    hardware: Text
    date: Day
    example: Text

    @property
    def good(self) -> bool:
        """Say whether the pair does what a record says of it."""
        return self.before == MET and self.after == PASSED


Runs = Mapping[tuple[str, str], Run]
"""Runs by record and engine."""


def digest(example: Example) -> str:
    """Return what identifies the commands of an example and the machine they are meant for."""
    parts = (example.before, example.after, example.hardware or "")
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def fresh(runs: Runs, record: str, example: Example) -> tuple[Run, ...]:
    """Return the runs of a record that were made with its present example, oldest release first."""
    wanted = digest(example)
    return tuple(run for (name, _), run in runs.items() if name == record and run.example == wanted)


def load(path: Path) -> dict[tuple[str, str], Run]:
    """Read stored runs, ordered by record and release; a missing file holds none.

    Raises: RunsError: a line is no run, or two are of one record and release.
    """
    if not path.exists():
        return {}
    data = path.read_bytes()
    if len(data) > _MOST_BYTES:
        raise RunsError(f"{path.name}: {len(data)} bytes; it has at most {_MOST_BYTES}")
    runs: dict[tuple[str, str], Run] = {}
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            run = Run.model_validate_json(line)
        except ValidationError as error:
            raise RunsError(f"{path.name}: line {number}: {error.errors()[0]['msg']}") from None
        if (run.record, run.engine) in runs:
            raise RunsError(f"{path.name}: line {number}: a second run of {run.record} on {run.engine}")
        runs[run.record, run.engine] = run
    return {(run.record, run.engine): run for run in _ordered(runs.values())}


def save(path: Path, runs: Iterable[Run]) -> None:
    """Write runs, one line each, in a stable order; readers see the former file until all of it is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".part")
    scratch.write_text("".join(run.model_dump_json() + "\n" for run in _ordered(runs)), encoding="utf-8")
    os.replace(scratch, path)


def _ordered(runs: Iterable[Run]) -> Iterator[Run]:
    yield from sorted(runs, key=lambda run: (run.record, _order(run.engine), run.engine))


def _order(engine: str) -> Version:
    try:
        return Version(engine)
    except InvalidVersion:
        return Version("0")
