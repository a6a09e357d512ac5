"""Two lists that come out of running launches: options that no model could be started with, and late refusals.

Both say only what was run. An option counts as refused when SGLang, reading and checking the arguments, refused it by
itself with every one of the models.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.check.options import Options
from app.errors import Broken
from app.triggers.command import MODEL_OPTIONS, Command
from app.triggers.model import FOLDER, Site, Trigger
from app.triggers.proposals import Proposer
from app.triggers.runner import Launch, Place, Result, Runner

Unit = tuple[str, tuple[str, ...]]
"""An option and its words."""
MESSAGE_LENGTH = 300
LATE = ("model", "draft model", "pools", "draft pools", "attention backends", "prefix cache")


@dataclass(frozen=True, slots=True)
class Refusal:
    """One error that an option met: how many models met it, and a launch of one. `record` is "" where there is none."""

    record: str
    exception: str
    message: str
    place: str
    models: int
    command: str
    hardware: str
    gpus: int


@dataclass(frozen=True, slots=True)
class RefusedOption:
    """An option, with the value it was given, that every model was refused with."""

    option: str
    value: str
    refusals: tuple[Refusal, ...]


@dataclass(frozen=True, slots=True)
class LateRefusal:
    """A launch whose arguments SGLang accepts and that a later stage refuses. Milliseconds a stage."""

    record: str
    stage: str
    exception: str
    title: str
    place: str
    command: str
    hardware: str
    gpus: int
    stages: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Lists:
    """What was run on one release. `options` is how many options and values were tried, `models` with which models."""

    engine: str
    options: int
    models: tuple[str, ...]
    refused: tuple[RefusedOption, ...]
    late: tuple[LateRefusal, ...]


def file(engine: str, folder: Path = FOLDER) -> Path:
    """Return where the lists of a release are kept."""
    return folder / f"sglang-{engine}.lists.json"


def save(lists: Lists, folder: Path = FOLDER) -> None:
    """Write the lists of a release."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(dataclasses.asdict(lists), ensure_ascii=False, indent=1)
    file(lists.engine, folder).write_text(text + "\n", encoding="utf-8")


def load(path: Path) -> Lists:
    """Read the lists of a release. Raises: Broken."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        return Lists(
            value["engine"],
            value["options"],
            tuple(value["models"]),
            tuple(
                RefusedOption(one["option"], one["value"], tuple(Refusal(**r) for r in one["refusals"]))
                for one in value["refused"]
            ),
            tuple(LateRefusal(**one) for one in value["late"]),
        )
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise Broken(f"{path.name}: {error}") from None


def units(options: Options) -> list[Unit]:
    """Return every switch, and every option whose values the parser lists with each of them."""
    found: list[Unit] = []
    for option in options:
        name = max(option.names, key=len)
        if option.nargs == "0" and not set(option.names) & {"-h", "--help"}:
            found.append((name, ()))
        elif option.choices and name not in MODEL_OPTIONS:
            found += [(name, (choice,)) for choice in option.choices]
    return found


async def refused_options(
    quick: Runner, proposer: Proposer, models: Sequence[str], say: Callable[[str], None]
) -> tuple[int, dict[Unit, list[Result]]]:
    """Give every option to one model after the other until one accepts its arguments.

    Returns how many options and values there are, and what those met that no model accepts. `quick` is a watched one.
    """
    wanted = units(proposer.options)
    met: dict[Unit, list[Result]] = {unit: [] for unit in wanted}
    for model in models:
        left = list(met)
        results = await quick.run([_alone(proposer, model, unit).launch(short=True) for unit in left])
        for unit, result in zip(left, results, strict=True):
            if result.verdict == "fail":
                met[unit].append(result)
            else:
                del met[unit]
        say(f"{model}: {len(met)} of {len(wanted)} options and values left")
    return len(wanted), met


async def confirmed(
    runner: Runner, met: Mapping[Unit, list[Result]], sites: Mapping[Place, Site]
) -> list[RefusedOption]:
    """Run a launch of each error again by itself, and return the options that are refused as before."""
    firsts = {(unit, result.place): result for unit, results in met.items() for result in reversed(results)}
    keys = list(firsts)
    again = await runner.run([replace(firsts[key].launch, short=False) for key in keys])
    alike = {key: result for key, result in zip(keys, again, strict=True) if result.place == key[1]}
    found = []
    for (name, words), results in met.items():
        unit = (name, words)
        if all((unit, result.place) in alike for result in results):
            shown = [alike[unit, result.place] for result in results]
            found.append(RefusedOption(name, " ".join(words), _refusals(shown, sites)))
    return found


def _alone(proposer: Proposer, model: str, unit: Unit) -> Command:
    name, words = unit
    return proposer.start(model).having(name, *words)


def _refusals(results: Sequence[Result], sites: Mapping[Place, Site]) -> tuple[Refusal, ...]:
    by_place: dict[Place, list[Result]] = {}
    for result in results:
        by_place.setdefault(result.place, []).append(result)
    found = []
    for place, same in sorted(by_place.items(), key=lambda entry: (-len(entry[1]), entry[0])):
        first, site = same[0], sites.get(place)
        found.append(
            Refusal(
                site.record if site else "", first.exception, _shortened(first.message),
                f"{first.path}:{first.line}", len(same), first.launch.command, first.launch.hardware, first.gpus,
            )
        )  # fmt: skip
    return tuple(found)


def _shortened(message: str) -> str:
    line = " ".join(message.split())
    return line if len(line) <= MESSAGE_LENGTH else line[: MESSAGE_LENGTH - 1] + "…"


async def late_refusals(runner: Runner, triggers: Sequence[Trigger], sites: Mapping[Place, Site]) -> list[LateRefusal]:
    """Run the triggers that a late stage refuses, and return what happened, by stage and place."""
    late = [t for t in triggers if t.stage in LATE and t.verdict == "fail"]
    results = await runner.run(Launch(t.command, t.hardware, t.gpus, tuple(t.packages.items())) for t in late)
    found = [
        LateRefusal(
            trigger.record, result.stage, result.exception, sites[trigger.place].title, f"{result.path}:{result.line}",
            trigger.command, trigger.hardware, trigger.gpus, dict(result.stages),
        )
        for trigger, result in zip(late, results, strict=True)
        if result.verdict == "fail" and result.place == trigger.place
    ]  # fmt: skip
    return sorted(found, key=lambda one: (LATE.index(one.stage), one.place))


def known(folder: Path = FOLDER) -> list[str]:
    """Return the releases that there are lists of."""
    return [
        path.name.removeprefix("sglang-").removesuffix(".lists.json") for path in folder.glob("sglang-*.lists.json")
    ]
