"""Look for a command for every site: survey the models, then turn one blocked condition after another.

A run tells of every function that it entered which conditions it met and how far they were from either truth. For each
site the run that came nearest is kept; its command is edited where the first blocked condition reads something that a
command can say. Everything is in a fixed order: the same seed and the same answers give the same search.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from app.check.worker.standins import PACKAGES
from app.triggers.command import Command
from app.triggers.conditions import Goal, Step, leaves
from app.triggers.model import Site
from app.triggers.proposals import Proposer, turns
from app.triggers.reads import Release
from app.triggers.runner import Place, Result, Runner

FIRST = "Qwen/Qwen3-8B"
BATCH = 64
TURN = 4
"""Edits for one statement before the others have their turn."""
FIRST_TURNS = 8
"""Turns of the statements that come first before one of the others."""
CALLS = 5
ELSEWHERE = 8
FEW = 12
KEPT = 3
FOLLOWED = 6
"""Edits that are tried against an error that came in between."""
UNMET = 99
DETOURS = 2

Entry = tuple[str, int]
"""A function: its path and the first line of its code."""
Condition = tuple[str, int, str, bool]
"""A condition with a truth: its function, its key, the truth."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How near a run came to a statement: conditions left, parts of the first of them left, its number."""

    left: int
    parts: int
    step: int

    @property
    def rank(self) -> tuple[int, int]:
        """Return what is compared; less is nearer."""
        return self.left, self.parts


def progress(goal: Goal, result: Result) -> Progress | None:
    """Return how near a run came to a goal; None if it did not enter the function."""
    seen = result.seen.get((goal.path, goal.entry))
    if seen is None:
        return None
    for i, step in enumerate(goal.steps):
        met = seen.tests.get(step.test.key)
        parts = UNMET if met is None else met[0 if step.want else 1][0]
        if parts:
            return Progress(len(goal.steps) - i, parts, i)
    return Progress(0, 0, len(goal.steps))


@dataclass(slots=True)
class Hunt:
    """The search for one statement: a site, or a call of the function `opens` that has sites and was not entered.

    Shape: `best` has the nearest runs, all of one rank; `queue` yields what is to be tried next, `detours` between.
    """

    site: Site
    goal: Goal
    opens: Entry | None = None
    best: list[tuple[Progress, Command, Result]] = field(default_factory=list)
    queue: Iterator[Command] = field(default_factory=lambda: iter(()))
    detours: list[Command] = field(default_factory=list)
    depth: dict[str, int] = field(default_factory=dict)
    tried: int = 0
    stale: bool = False


class Search:
    """One search on one release.

    Shape: `runner` makes the runner that looks at the goals it is given; `opened` says for which sites the calls of
    their function are looked for too; `say` is told how it goes.
    """

    def __init__(
        self, runner: Callable[[Mapping[str, Sequence[int]]], Runner], proposer: Proposer, sites: Sequence[Site], *,
        opened: Callable[[Site], bool], seed: int, say: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.proposer, self.say = proposer, say
        self.chance = random.Random(seed)
        self.sites = lines_of(sites)
        self.hunts: dict[Place, Hunt] = {}
        self.reached: dict[Place, tuple[Command, Result]] = {}
        self.entered: set[Entry] = set()
        self.met: dict[Condition, list[Command]] = {}
        self.machines_met: dict[tuple[str, int, str], set[str]] = {}
        self.done: set[tuple[str, str, bool]] = set()
        self._within: dict[Entry, list[Hunt]] = {}
        for site in sites:
            goal = proposer.release.source(site.path).goal(site.line)
            if goal is not None and goal.entry:
                self.hunts[site.place] = self._add(Hunt(site, goal))
        entries = {(h.goal.path, h.goal.entry): h for h in reversed(self.hunts.values()) if opened(h.site)}
        self._ways = [
            self._add(Hunt(hunt.site, goal, opens=entry))
            for entry, hunt in entries.items()
            for goal in calls(proposer.release, hunt.goal)
        ]
        goals: dict[str, list[int]] = {}
        for hunt in (*self.hunts.values(), *self._ways):
            goals.setdefault(hunt.goal.path, []).append(hunt.goal.line)
        self.runner = runner(goals)

    def _add(self, hunt: Hunt) -> Hunt:
        self._within.setdefault((hunt.goal.path, hunt.goal.entry), []).append(hunt)
        return hunt

    def _open(self, hunt: Hunt) -> bool:
        return hunt.site.place not in self.reached and (hunt.opens is None or hunt.opens not in self.entered)

    # -- running

    async def run(
        self, commands: Iterable[Command], wanted: Mapping[str, Hunt] | None = None, *, short: bool = False
    ) -> None:
        """Run commands that were not run yet, and learn from what became of them; `short`: their arguments only."""
        fresh = {(str(command), command.hardware, short): command for command in commands}
        chosen = [command for key, command in fresh.items() if key not in self.done]
        self.done.update(fresh)
        for number, batch in enumerate(_batches(chosen)):
            if number and not number % 2:
                self.say(f"{self.runner.count} runs, {len(self.reached)} sites")
            for command, result in zip(
                batch, await self.runner.run([c.launch(short=short) for c in batch]), strict=True
            ):
                self._learn(command, result)
                hunt = (wanted or {}).get(str(command))
                if hunt is not None and self._open(hunt):
                    self._detour(hunt, command, result)

    def _learn(self, command: Command, result: Result) -> None:
        site = self.sites.get(result.place)
        if site is not None and result.explicit and site.place not in self.reached:
            self.reached[site.place] = (command, result)
        self.entered.update(result.seen)
        group = self.proposer.profiles.find(command.hardware).device.group
        for (path, entry), seen in result.seen.items():
            for key, (true, false) in seen.tests.items():
                self.machines_met.setdefault((path, entry, key), set()).add(group)
                for want, (parts, *_) in ((True, true), (False, false)):
                    known = self.met.setdefault((path, entry, key, want), []) if not parts else None
                    if known is not None and len(known) < KEPT and all(k.model != command.model for k in known):
                        known.append(command)
            for hunt in self._within[path, entry]:
                if self._open(hunt):
                    self._rank(hunt, command, result)

    def _rank(self, hunt: Hunt, command: Command, result: Result) -> None:
        near = progress(hunt.goal, result)
        if near is None:
            return
        rank = hunt.best[0][0].rank if hunt.best else None
        if rank is not None and (
            near.rank > rank
            or (
                near.rank == rank and (len(hunt.best) >= KEPT or any(c.model == command.model for _, c, _ in hunt.best))
            )
        ):
            return
        places = {(hunt.goal.path, hunt.goal.entry), *(k for k in result.seen if k[0] == result.path)}
        small = replace(result, seen={key: seen for key, seen in result.seen.items() if key in places})
        if rank is None or near.rank < rank:
            hunt.best = [(near, command, small)]
            hunt.queue = self._edits(hunt)
            hunt.stale = False
        else:
            hunt.best.append((near, command, small))

    def _detour(self, hunt: Hunt, command: Command, result: Result) -> None:
        """Queue edits against an error that came before the statement did."""
        depth = hunt.depth.get(str(command), 0)
        near = progress(hunt.goal, result)
        if depth >= DETOURS or (near is not None and hunt.best and near.rank <= hunt.best[0][0].rank):
            return
        for edited in itertools.islice(self._against(command, result), FOLLOWED):
            hunt.depth[str(edited)] = depth + 1
            hunt.detours.append(edited)

    # -- proposing

    def _edits(self, hunt: Hunt) -> Iterator[Command]:
        """Yield edits of the nearest runs, one run after the other; more may be added meanwhile."""
        best = hunt.best
        for number in itertools.count():
            if number >= len(best):
                return
            yield from self._edits_of(hunt.goal, *best[number])

    def _edits_of(self, goal: Goal, near: Progress, command: Command, result: Result) -> Iterator[Command]:
        if near.step < len(goal.steps):
            step = goal.steps[near.step]
            if near.parts < UNMET:
                yield from self._turned(goal, step, command, result)
            else:
                yield from self._against(command, result)
                yield from self._past(goal, command, result)
            yield from self._spliced(goal, step, command)
        else:
            yield from self._against(command, result)
            yield from self._past(goal, command, result)
        if goal.handles:
            for package in PACKAGES:
                if package.optional:
                    yield replace(command, packages=((package.distribution, ""),))
        yield from self._elsewhere(command)

    def _turned(self, goal: Goal, step: Step, command: Command, result: Result) -> Iterator[Command]:
        """Yield edits that may turn a condition that was met."""
        _, truths, sides = result.seen[goal.path, goal.entry].tests[step.test.key][0 if step.want else 1]
        blocked = [
            (leaf, shown) for leaf, truth, shown in zip(leaves(step.test.node, step.want), truths, sides, strict=True)
            if truth is not leaf.want
        ]  # fmt: skip
        streams = [self.proposer.edits(command, leaf, goal.path, goal.entry, shown) for leaf, shown in blocked]
        yield from turns([itertools.islice(stream, 90) for stream in streams])
        for (one, shown), (other, also) in itertools.combinations(blocked, 2):
            for edited in itertools.islice(self.proposer.edits(command, one, goal.path, goal.entry, shown), 4):
                yield from itertools.islice(self.proposer.edits(edited, other, goal.path, goal.entry, also), 4)

    def _against(self, command: Command, result: Result) -> Iterator[Command]:
        """Yield edits that may avoid the error that stopped a run."""
        if result.verdict != "fail" or not result.path.startswith("sglang/srt/"):
            return
        goal = self.proposer.release.source(result.path).goal(result.line)
        if goal is None:
            return
        seen = result.seen.get((goal.path, goal.entry))
        for step in reversed(goal.steps):
            met = seen.tests.get(step.test.key) if seen else None
            if met is None:
                continue
            _, truths, sides = met[1 if step.want else 0]
            streams = [
                self.proposer.edits(command, leaf, goal.path, goal.entry, shown)
                for leaf, truth, shown in zip(leaves(step.test.node, not step.want), truths, sides, strict=True)
                if truth is not leaf.want
            ]
            yield from turns([itertools.islice(stream, 12) for stream in streams])

    def _past(self, goal: Goal, command: Command, result: Result) -> Iterator[Command]:
        """Yield edits that may keep the function from ending where it did."""
        seen = result.seen.get((goal.path, goal.entry))
        if seen is None or (seen.last == result.line and result.path == goal.path):
            return
        left = self.proposer.release.source(goal.path).goal(seen.last)
        if left is None or left.entry != goal.entry:
            return
        for step in reversed(left.steps):
            if (met := seen.tests.get(step.test.key)) is None or step in goal.steps:
                continue
            _, truths, sides = met[1 if step.want else 0]
            for leaf, truth, shown in zip(leaves(step.test.node, not step.want), truths, sides, strict=True):
                if truth is not leaf.want:
                    yield from itertools.islice(self.proposer.edits(command, leaf, goal.path, goal.entry, shown), 20)

    def _spliced(self, goal: Goal, step: Step, command: Command) -> Iterator[Command]:
        """Yield mixtures with runs in which the condition had the right truth."""
        for other in self.met.get((goal.path, goal.entry, step.test.key, step.want), ()):
            yield command.joined(other)
            yield other.joined(command)
            yield replace(command, hardware=other.hardware)
            yield replace(self.proposer.moved(command, other.model), hardware=other.hardware)

    def _elsewhere(self, command: Command) -> Iterator[Command]:
        models = [model for model in self.proposer.quick if model != command.model]
        for model in self.chance.sample(models, min(ELSEWHERE, len(models))):
            yield self.proposer.moved(command, model)

    # -- the search

    async def survey(self, *, short: bool = False) -> None:
        """Start a model of each architecture by itself, the first on machines like its own, and drafts with theirs."""
        models = self.proposer.one_an_architecture(FIRST)
        starts = [self.proposer.start(model) for model in models]
        machines = [replace(starts[0], hardware=name) for name in self._machines_like(starts[0].hardware)]
        drafts = {(d.algorithm, d.architecture): d for d in self.proposer.drafts if d.draft_of and d.algorithm}
        pairs = [
            self.proposer.start(draft.draft_of)
            .having("--speculative-algorithm", draft.algorithm)
            .having("--speculative-draft-model-path", draft.hub_id)
            for draft in drafts.values()
        ]
        others = [self.proposer.start(m.hub_id) for m in self.proposer.targets if m.hub_id not in models]
        await self.run([*machines, *starts, *pairs], short=short)
        await self.run(others, short=True)
        self.say(f"survey: {self.runner.count} runs, {len(self.reached)} sites, {len(self.entered)} functions")

    def _machines_like(self, name: str) -> list[str]:
        """Return the machines that one process of the engine can simulate after another."""
        group = self.proposer.profiles.find(name).device.group
        return [profile.name for profile in self.proposer.profiles if profile.device.group == group]

    async def options(self, model: str) -> None:
        """Give a model every option, with the values that its declaration names."""
        start = self.proposer.start(model)
        commands = [
            command
            for option in self.proposer.options
            for command in itertools.islice(self.proposer.given(start, option), 12 if option.choices else 2)
        ]
        await self.run(commands, short=True)
        self.say(f"options on {model}: {self.runner.count} runs, {len(self.reached)} sites")

    async def hunt(
        self, checks: int, first: Callable[[Site], bool], early: Callable[[str], bool], *, late: bool = True
    ) -> None:
        """Edit towards the sites that are left until so many checks were run, or nothing is left to try.

        Shape: `first` says which sites come first; `early` says of a file that the arguments alone enter it, and
        `late` whether the other files are looked at too.
        """
        end = self.runner.count + checks
        while self.runner.count < end:
            hunts = [
                h
                for h in (*self.hunts.values(), *self._ways)
                if h.best and not h.stale and self._open(h) and (late or early(h.goal.path))
            ]
            if not hunts:
                return
            hunts.sort(key=lambda h: (h.tried // (TURN * FIRST_TURNS if first(h.site) else TURN), not first(h.site),
                                      h.tried // TURN, h.best[0][0].rank, h.site.place))  # fmt: skip
            before = len(self.reached)
            for short in (True, False) if late else (True,):
                chosen = [h for h in hunts if early(h.goal.path) is short][: len(hunts) if short else FEW]
                await self._round(chosen, first, short=short)
            if len(self.reached) != before:
                self.say(f"{self.runner.count} runs, {len(self.reached)} sites, {len(hunts)} hunted")

    async def _round(self, hunts: Sequence[Hunt], first: Callable[[Site], bool], *, short: bool) -> None:
        """Run the next edits for some statements, one batch."""
        wanted: dict[str, Hunt] = {}
        batch: list[Command] = []
        for hunt in hunts:
            for command in self._next(hunt, 2 if first(hunt.site) else 1, short=short):
                wanted[str(command)] = hunt
                batch.append(command)
            if len(batch) >= BATCH:
                break
        await self.run(batch, wanted, short=short)

    def _next(self, hunt: Hunt, count: int, *, short: bool) -> Iterator[Command]:
        """Yield the next commands for a site that were not run yet."""
        while count:
            command = hunt.detours.pop(0) if hunt.detours and hunt.tried % 2 else next(hunt.queue, None)
            if command is None:
                if not hunt.detours:
                    hunt.stale = True
                    return
                command = hunt.detours.pop(0)
            if (str(command), command.hardware, short) in self.done:
                continue
            hunt.tried += 1
            count -= 1
            yield command

    @staticmethod
    def blocked(hunt: Hunt) -> dict[str, Any]:
        """Return the nearest run to a site, and the condition that it did not turn; empty where none came near."""
        if not hunt.best:
            return {}
        near, command, result = hunt.best[0]
        step = hunt.goal.steps[near.step] if near.step < len(hunt.goal.steps) else None
        return {
            "nearest": str(command), "hardware": command.hardware, "ended": f"{result.path}:{result.line}",
            "condition": None if step is None else step.test.text, "want": None if step is None else step.want,
        }  # fmt: skip


def _batches(commands: Sequence[Command]) -> Iterator[Sequence[Command]]:
    yield from (commands[i : i + BATCH] for i in range(0, len(commands), BATCH))


def lines_of(sites: Iterable[Site]) -> dict[Place, Site]:
    """Return the site of every line that one stands on, the innermost where they are nested."""
    ordered = sorted(sites, key=lambda site: site.end_line - site.line, reverse=True)
    return {(site.path, line): site for site in ordered for line in range(site.line, site.end_line + 1)}


def calls(release: Release, goal: Goal) -> list[Goal]:
    """Return statements that name the goal's function, or the class that it makes; none where the name says little."""
    *owner, name = goal.function.split(".")
    if name.startswith("__"):
        name = owner[-1] if owner else name
    places = list(dict.fromkeys(release.mentions(name) or ()))
    if len(places) > CALLS:
        return []
    found = [release.source(path).goal(line) for path, line in places]
    return [call for call in found if call is not None and call.entry and call.entry != goal.entry]
