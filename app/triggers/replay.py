"""Run stored triggers again, and make new ones as small as they can be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.triggers.command import Command
from app.triggers.model import Site, Trigger
from app.triggers.runner import Launch, Place, Result, Runner


@dataclass(frozen=True, slots=True)
class Difference:
    """A stored trigger that does something else now."""

    trigger: Trigger
    now: str


def same(trigger: Trigger, result: Result) -> bool:
    """Say whether a run did what the trigger says."""
    return (result.place, result.exception, result.stage, result.verdict) == (
        trigger.place, trigger.exception, trigger.stage, trigger.verdict,
    )  # fmt: skip


async def replay(runner: Runner, triggers: Sequence[Trigger]) -> list[Difference]:
    """Run triggers and return those that differ, by place."""
    launches = [Launch(t.command, t.hardware, t.gpus, tuple(t.packages.items())) for t in triggers]
    results = await runner.run(launches)
    return [
        Difference(trigger, f"{result.verdict}, {result.stage}, {result.exception} at {result.path}:{result.line}")
        for trigger, result in zip(triggers, results, strict=True)
        if not same(trigger, result)
    ]  # fmt: skip


async def smallest(
    runner: Runner, found: Mapping[Place, Command], sites: Mapping[Place, Site], engine: str
) -> list[Trigger]:
    """Return a trigger a site, with nothing in its command that it does not need. What is not raised again is left out.

    Shape: `found` maps a site's place to a command that reached it; `sites` maps every line of a site to the site.
    """
    triggers: dict[Place, Trigger] = {}
    for (place, _), trigger in zip(found.items(), await _tried(runner, found.items(), sites, engine), strict=True):
        if trigger is not None:
            triggers[place] = trigger
    pairs = [(place, smaller) for place in triggers for smaller in found[place].smaller()]
    needless: dict[Place, list[Command]] = {}
    for (place, smaller), trigger in zip(pairs, await _tried(runner, pairs, sites, engine), strict=True):
        if trigger is not None:
            needless.setdefault(place, []).append(smaller)
    left = {place: found[place].shared(commands) for place, commands in needless.items()}
    at_once = list(left.items())
    for (place, _), trigger in zip(at_once, await _tried(runner, at_once, sites, engine), strict=True):
        if trigger is not None:
            triggers[place] = trigger
            left.pop(place)
        else:  # what can be spared alone cannot be spared together: one thing after the other
            triggers[place] = await _one_by_one(runner, needless[place][0], triggers[place], sites)
    return list(triggers.values())


async def _one_by_one(runner: Runner, command: Command, trigger: Trigger, sites: Mapping[Place, Site]) -> Trigger:
    place = sites[trigger.place].place
    while True:
        pairs = [(place, smaller) for smaller in (command, *command.smaller())]
        ran = await _tried(runner, pairs, sites, trigger.engine)
        trigger = ran[0] or trigger
        better = next((i for i, one in enumerate(ran) if i and one is not None), 0)
        if not better:
            return trigger
        command = pairs[better][1]


async def _tried(
    runner: Runner, pairs: Iterable[tuple[Place, Command]], sites: Mapping[Place, Site], engine: str
) -> list[Trigger | None]:
    wanted = list(pairs)
    results = await runner.run(command.launch() for _, command in wanted)
    return [
        _trigger(sites[place], result, engine)
        if (site := sites.get(result.place)) is not None and result.explicit and site.place == place
        else None
        for (place, _), result in zip(wanted, results, strict=True)
    ]


def _trigger(site: Site, result: Result, engine: str) -> Trigger:
    return Trigger(
        site.record, engine, result.path, result.line, site.function, result.exception, result.stage,
        result.launch.command, result.launch.hardware, result.gpus, result.verdict, dict(result.launch.packages),
    )  # fmt: skip
