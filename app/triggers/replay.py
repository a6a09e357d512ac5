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
    left = dict(found)
    for place, trigger in zip(left, await _tried(runner, left.items(), sites, engine), strict=True):
        if trigger is not None:
            triggers[place] = trigger
    left = {place: left[place] for place in triggers}
    while left:
        pairs = [(place, smaller) for place, command in left.items() for smaller in command.smaller()]
        better: dict[Place, Command] = {}
        for (place, smaller), trigger in zip(pairs, await _tried(runner, pairs, sites, engine), strict=True):
            if trigger is not None and place not in better:
                better[place], triggers[place] = smaller, trigger
        left = better
    return list(triggers.values())


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
