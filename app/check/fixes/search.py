"""Best-first search for the smallest edits that start. Every one is run; nothing is believed.

The queue holds edits by how much they lose and how doubtful they are. A refusal with another error is gone after: its
own proposals are tried on top. A combination counts only if none of its parts does it alone.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from app.check.fixes import changes
from app.check.fixes.changes import Change, Edit, Put, Release, Table, Variant
from app.check.fixes.proposals import Failure, Proposal
from app.check.protocol import STAGES
from app.errors import ErrataError

Ended = Literal["enough", "nothing left", "checks", "time", "busy"]

FURTHER = 0.6
"""What a second change must overcome: one that does it alone is better."""

PROGRESS = 0.5
"""How much sooner an edit is gone after whose error comes in a later stage."""

HALFWAY = 0.2
"""The same where a choice has changed the text of the error and not its place: half of it is done."""

SLACK = 1.6
"""How much worse than the best fix an edit may be and still be worth a run."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What one search may take.

    Shape: `checks` at most; no more than `usual` once there is a fix; `fixes` are enough. After `seconds` no check is
    begun, on a slow machine only until `least` were; what runs then may end within `grace_s`. `patience_s` is waited
    for the engine that another release needs.
    """

    checks: int = 26
    usual: int = 8
    fixes: int = 3
    depth: int = 3
    seconds: float = 1.6
    least: int = 6
    grace_s: float = 3.0
    patience_s: float = 20.0
    at_once: int = 2


USUAL = Budget()


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of a variant. `failure` is set where SGLang refused it; `said` is a line for the reader."""

    verdict: str
    said: str = ""
    failure: Failure | None = None
    ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Attempt:
    """An edit that was run."""

    edit: Edit
    variant: Variant
    tried: Tried

    @property
    def works(self) -> bool:
        """Say whether it starts."""
        return self.tried.verdict == "pass"


@dataclass(frozen=True, slots=True)
class Found:
    """The end of a search: fixes, best first, and everything that was tried, in order."""

    fixes: tuple[Attempt, ...]
    attempts: tuple[Attempt, ...]
    ended: Ended


Run = Callable[[Variant], Awaitable[Tried]]
Propose = Callable[[Failure], Sequence[Proposal]]


@dataclass(order=True, slots=True)
class _Entry:
    priority: float
    number: int
    edit: Edit = field(compare=False)
    variant: Variant = field(compare=False)
    doubt: float = field(compare=False)

    @property
    def slow(self) -> bool:
        """Say whether an engine may have to start for it."""
        return any(isinstance(change, Release) for change in self.edit)


class Search:
    """One search. `run` runs a variant, `propose` reads a failure; `on_attempt` hears of each attempt as it ends."""

    def __init__(
        self, run: Run, propose: Propose, table: Table, budget: Budget = USUAL,
        on_attempt: Callable[[Attempt], None] | None = None,
    ) -> None:  # fmt: skip
        self._run, self._propose, self._table, self._budget = run, propose, table, budget
        self._tell = on_attempt or (lambda attempt: None)
        self._queue: list[_Entry] = []
        self._numbers = itertools.count()
        self._seen: dict[Variant, frozenset[Change]] = {}
        self._known: dict[frozenset[Change], Attempt] = {}
        self._fixes: list[Attempt] = []
        self._attempts: list[Attempt] = []
        self._started = 0
        self._busy = self._late = False

    async def find(self, failure: Failure) -> Found:
        """Return the fixes of a failure. A cancelled search cancels its checks."""
        self._start = failure
        self._seen[failure.variant] = frozenset()
        self._expand((), failure, 0.0)
        deadline = time.monotonic() + self._budget.seconds
        running: dict[asyncio.Task[None], _Entry] = {}
        try:
            while True:
                while self._room(running.values()) and (entry := self._next(deadline)) is not None:
                    running[asyncio.create_task(self._attempt(entry))] = entry
                if not running:
                    break
                left = self._patience(deadline, running.values())
                done, _ = await asyncio.wait(running, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                if not done:
                    self._late = True
                    break
                for task in done:
                    running.pop(task)
                    task.result()
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
        return Found(self._best(), tuple(self._attempts), self._ended(deadline))

    def _room(self, running: Iterable[_Entry]) -> bool:
        """Say whether one more may run. A release, whose engine may have to start, takes nobody's place."""
        return sum(not entry.slow for entry in running) < self._budget.at_once

    def _patience(self, deadline: float, running: Iterable[_Entry]) -> float:
        """Return how long to wait for what runs: past the deadline by the grace, longer for a release."""
        extra = self._budget.patience_s if any(entry.slow for entry in running) else self._budget.grace_s
        return max(0.01, deadline + extra - time.monotonic())

    def _ended(self, deadline: float) -> Ended:
        if self._busy:
            return "busy"
        if len(self._fixes) >= self._budget.fixes or (self._fixes and self._started >= self._budget.usual):
            return "enough"
        if self._started >= self._budget.checks:
            return "checks"
        if not self._fixes and (self._late or (self._queue and time.monotonic() >= deadline)):
            return "time"
        return "enough" if self._fixes else "nothing left"

    # -- the queue

    def _next(self, deadline: float) -> _Entry | None:
        """Return the next edit to run; None where the budget or the queue is at its end."""
        limit = self._budget.usual if self._fixes else self._budget.checks
        if self._busy or self._started >= limit or len(self._fixes) >= self._budget.fixes:
            return None
        late = time.monotonic() - deadline
        if late >= 0 and (self._fixes or self._started >= self._budget.least or late >= self._budget.grace_s):
            return None
        while self._queue:
            entry = heapq.heappop(self._queue)
            if self._fixes and not self._worth(entry):
                continue
            self._started += 1
            return entry
        return None

    def _worth(self, entry: _Entry) -> bool:
        """Say whether an edit could still stand beside the fixes: it is not much worse, and no part of it is one."""
        best = min(changes.loss(fix.edit) for fix in self._fixes)
        parts = set(entry.edit)
        if any(set(fix.edit) <= parts for fix in self._fixes):
            return False
        return changes.loss(entry.edit) + entry.doubt <= best + SLACK

    def _expand(self, edit: Edit, failure: Failure, weight: float) -> None:
        """Queue what is proposed against `failure`, on top of the edit that led to it."""
        touched = {change.touches for change in edit}
        for proposal in self._propose(failure):
            if any(change.touches in touched for change in proposal.edit):
                continue
            whole = (*edit, *proposal.edit)
            variant = changes.applied(proposal.edit, failure.variant, self._table)
            if variant is None or variant in self._seen:
                continue
            self._seen[variant] = frozenset(whole)
            priority = weight + changes.loss(proposal.edit) + proposal.doubt
            heapq.heappush(self._queue, _Entry(priority, next(self._numbers), whole, variant, proposal.doubt))

    # -- running

    async def _attempt(self, entry: _Entry) -> None:
        attempt = await self._ran(entry.edit, entry.variant)
        if attempt is None:
            return
        if attempt.works:
            await self._smallest(attempt)
        elif attempt.tried.failure is not None and not self._fixes and len(entry.edit) < self._budget.depth:
            self._follow(entry, attempt.tried.failure)

    async def _ran(self, edit: Edit, variant: Variant) -> Attempt | None:
        key = frozenset(edit)
        if (known := self._known.get(key)) is not None:
            return known
        try:
            tried = await self._run(variant)
        except ErrataError as error:
            self._busy = self._busy or error.status == 429
            tried = Tried("unknown", str(error))
        attempt = Attempt(edit, variant, tried)
        self._known[key] = attempt
        self._attempts.append(attempt)
        self._tell(attempt)
        return attempt

    def _follow(self, entry: _Entry, failure: Failure) -> None:
        """Go after another error; the very same one says that the edit was beside the point."""
        before = self._error_before(entry.edit)
        if _place(before) == _place(failure):
            # The parser refuses everything at one place: another text of its is another mistake.
            follows = _chooses(entry.edit[-1]) or failure.error.foreign == "argparse"
            if before.error.message != failure.error.message and follows:
                self._expand(entry.edit, failure, changes.loss(entry.edit) + HALFWAY)
            return
        known = {failure.stage, before.stage} <= set(STAGES)
        step = STAGES.index(failure.stage) - STAGES.index(before.stage) if known else 0
        progress = PROGRESS if step > 0 else -PROGRESS if step < 0 else 0.0
        self._expand(entry.edit, failure, changes.loss(entry.edit) + FURTHER - progress)

    def _error_before(self, edit: Edit) -> Failure:
        for size in range(len(edit) - 1, 0, -1):
            known = self._known.get(frozenset(edit[:size]))
            if known is not None and known.tried.failure is not None:
                return known.tried.failure
        return self._start

    async def _smallest(self, attempt: Attempt) -> None:
        """Keep the smallest parts of an edit that start: run each proper part that was not run."""
        for part in _parts(attempt.edit):
            if any(set(fix.edit) <= set(part) for fix in self._fixes):
                return
            variant = changes.applied(part, self._start.variant, self._table)
            if variant is None:
                continue
            if frozenset(part) not in self._known:
                self._started += 1
            smaller = await self._ran(part, variant)
            if smaller is not None and smaller.works:
                self._keep(smaller)
                return
        self._keep(attempt)

    def _keep(self, attempt: Attempt) -> None:
        if not any(set(fix.edit) <= set(attempt.edit) for fix in self._fixes):
            self._fixes = [fix for fix in self._fixes if not set(attempt.edit) < set(fix.edit)]
            self._fixes.append(attempt)

    def _best(self) -> tuple[Attempt, ...]:
        order = {id(attempt): place for place, attempt in enumerate(self._attempts)}
        return tuple(sorted(self._fixes, key=lambda fix: (round(changes.loss(fix.edit), 2), order[id(fix)])))


def _place(failure: Failure) -> tuple[str, int]:
    return failure.error.path, failure.error.line


def _chooses(change: Change) -> bool:
    """Say whether a change chooses another word for what was given. Errors repeat numbers that do not help."""
    return (
        isinstance(change, Put)
        and change.before is not None
        and any(not value.lstrip("-")[:1].isdigit() for value in change.values)
    )


def _parts(edit: Edit) -> Iterator[Edit]:
    """Yield the proper parts of an edit, smallest first."""
    for size in range(1, len(edit)):
        yield from itertools.combinations(edit, size)
