"""Edits of a command that may turn one part of a condition: what it reads, compared with what it is compared to.

Nothing here knows what SGLang accepts. Names come from the source of the condition, options and choices from the
release's own parser, values from the constants in the source and from what the parts were when it ran.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from app.check.catalogue import Catalogue
from app.check.hardware import Profiles
from app.check.options import Options
from app.check.protocol import Json, Option
from app.triggers.command import MODEL_OPTIONS, Command
from app.triggers.conditions import Leaf
from app.triggers.reads import Constant, Reads, Release

NUMBERS = (0, 1, 2, 3, 4, 7, 8, 16, 64, -1, 100, 1024, 1_000_000)
FRACTIONS = (0.0, 0.01, 0.5, 0.9, 1.0, 1.5, 2.0, -1.0)
NEAR_VALUES, FAR_VALUES = 24, 8
FAR_OPTIONS = 12
MODELS = 5
SIZES = {"tp": "--tp-size", "pp": "--pp-size"}


class Proposer:
    """Proposes edits for one release."""

    def __init__(self, release: Release, options: Options, catalogue: Catalogue, profiles: Profiles) -> None:
        self.release, self.options, self.catalogue, self.profiles = release, options, catalogue, profiles
        self.targets = [model for model in catalogue if model.role == "target"]
        self.drafts = [model for model in catalogue if model.role == "draft"]
        self.machines: dict[str, tuple[str, int]] = {
            t.hub_id: (t.hardware, t.gpus) for m in self.targets for t in m.trials if t.outcome == "pass"
        }
        self.weights = {model.hub_id: _weight(model.config) for model in self.targets}
        ordered = sorted(self.machines, key=lambda model: (self.machines[model][1], self.weights[model], model))
        self.quick = ordered[: 2 * len(ordered) // 3]

    def one_an_architecture(self, first: str = "") -> list[str]:
        """Return models that start by themselves, the quickest of each architecture, quick ones first after `first`."""
        architectures = {model.hub_id: model.architecture for model in self.targets}
        ordered = sorted(self.machines, key=lambda m: (m != first, self.machines[m][1], self.weights[m], m))
        chosen: dict[str, str] = {}
        for model in ordered:
            chosen.setdefault(architectures[model], model)
        return list(chosen.values())

    def start(self, model: str, hardware: str = "") -> Command:
        """Return the command that starts a model by itself."""
        machine, gpus = self.machines.get(model, ("h200-141gb", 8))
        command = Command(model, hardware or machine)
        if gpus > 1:
            command = command.having(SIZES["tp"], str(gpus))
        return command.having("--trust-remote-code")

    def moved(self, command: Command, model: str) -> Command:
        """Return a command for another model, on the machine that it starts on."""
        start = self.start(model)
        gpus = start.option(SIZES["tp"])
        moved = replace(command, model=model, hardware=start.hardware)
        if gpus and not command.option(SIZES["tp"]):
            moved = moved.having(SIZES["tp"], *gpus)
        return moved.having("--trust-remote-code")

    def edits(self, seed: Command, leaf: Leaf, path: str, entry: int, sides: Sequence[Json]) -> Iterator[Command]:
        """Yield commands in which the part may have the truth it should, likeliest first."""
        reads = self._reads(path, entry, leaf)
        shown = list(_plain(sides))
        near = list(dict.fromkeys([*reads.constants, *shown]))
        yield from self._settings(seed, reads.near, near, NEAR_VALUES)
        yield from self._environment(seed, reads, near)
        yield from self._fields(seed, reads, near)
        named = self._named_models([*near, *reads.far_constants])
        yield from (self.moved(seed, model) for model in named)
        yield from self._settings(seed, itertools.islice(self._dests(reads.far), FAR_OPTIONS),
                                  [*near, *reads.far_constants], FAR_VALUES)  # fmt: skip
        if not any(self.options.setting(name) for name in reads.near):
            yield from (
                replace(seed, hardware=profile.name) for profile in self.profiles if profile.name != seed.hardware
            )

    def fields(self, leaf: Leaf, path: str, entry: int) -> set[str]:
        """Return the options that the part reads, near or far."""
        reads = self._reads(path, entry, leaf)
        return {name for name in (*reads.near, *reads.far) if self.options.setting(name)}

    @functools.lru_cache(maxsize=20_000)  # noqa: B019 - one proposer a process
    def _reads_of(self, path: str, entry: int, text: str) -> Reads:
        import ast

        node = ast.parse(text, mode="eval").body
        return self.release.reads(node, path, self.release.source(path).function(entry))

    def _reads(self, path: str, entry: int, leaf: Leaf) -> Reads:
        return self._reads_of(path, entry, leaf.text)

    def _dests(self, names: Iterable[str]) -> Iterator[str]:
        yield from (name for name in names if self.options.setting(name))

    def _settings(
        self, seed: Command, names: Iterable[str], constants: Sequence[Constant], limit: int
    ) -> Iterator[Command]:
        streams = []
        for name in names:
            option = self.options.setting(name)
            if option is not None and not set(option.names) & set(MODEL_OPTIONS):
                streams.append(itertools.islice(self.given(seed, option, constants), limit))
        yield from turns(streams)

    def given(self, seed: Command, option: Option, constants: Sequence[Constant] = ()) -> Iterator[Command]:
        """Yield the command with an option given otherwise than it is."""
        name = max(option.names, key=len)
        now = seed.option(name)
        for words in self.values(seed, option, constants):
            if words != now:
                yield seed.having(name, *words)
        if now is not None:
            yield seed.lacking(name)

    def values(self, seed: Command, option: Option, constants: Sequence[Constant] = ()) -> Iterator[tuple[str, ...]]:
        """Yield the words that an option may get."""
        if option.nargs == "0":
            yield ()
            return
        many = option.nargs in ("+", "*")
        for value in dict.fromkeys(self._words(seed, option, constants)):
            yield (value,)
        if many:
            texts = list(dict.fromkeys(self._words(seed, option, constants)))[:6]
            yield from itertools.islice(itertools.permutations(texts, 2), 6)

    def _words(self, seed: Command, option: Option, constants: Sequence[Constant]) -> Iterator[str]:
        strings = [c for c in constants if isinstance(c, str)]
        if option.choices:
            yield from (c for c in strings if c in option.choices)
            yield from (c for c in option.choices if c not in strings)
            return
        if option.type in ("int", "human_readable_int"):
            yield from map(str, _numbers(constants, option.default))
        elif option.type == "float":
            numbers = [float(c) for c in constants if isinstance(c, (int, float))][:5]
            yield from (f"{n:g}" for c in numbers for n in (c, c + 0.01, c - 0.01))
            yield from (f"{n:g}" for n in FRACTIONS)
        elif any("model_path" in name.replace("-", "_") for name in option.names):
            own = [d.hub_id for d in self.drafts if d.draft_of == seed.model]
            yield from [*own, *(d.hub_id for d in self.drafts if d.hub_id not in own)]
            yield "Qwen/Qwen3-0.6B"
        elif option.type in ("loads", "json_list_type", "parse_cuda_graph_config_arg"):
            yield from ("{}", "[]", "[1]", '"x"', "1", '{"x": 1}', '["x"]')
            yield from (f'{{"{c}": {v}}}' for c in strings[:8] for v in ("1", '"x"', "{}", "null", "-1"))
        else:
            yield from strings[:16]
            yield from ("x", "1", "auto", "none", f"{seed.model}/config.json")
            yield from map(str, _numbers(constants, None)[:6])

    def _environment(self, seed: Command, reads: Reads, constants: Sequence[Constant]) -> Iterator[Command]:
        for variable in itertools.islice(reads.environment, 4):
            values = ["1", "0", *(str(c) for c in constants[:6]), "x", "-1"]
            yield from (seed.setting(variable, value) for value in dict.fromkeys(values))

    def _fields(self, seed: Command, reads: Reads, constants: Sequence[Constant]) -> Iterator[Command]:
        """Yield commands that override a field of the model's configuration."""
        for key in itertools.islice((k for k in reads.config if self.options.setting(k) is None), 5):
            values: list[object] = [*_numbers(constants, None)[:8], True, None]
            values += [c for c in constants if isinstance(c, str)][:5]
            yield from (seed.overriding(key, value) for value in values)

    def _named_models(self, constants: Iterable[Constant]) -> list[str]:
        """Return models whose architecture or type is named."""
        words = {c for c in constants if isinstance(c, str)}
        named = [m.hub_id for m in self.targets if m.architecture in words or m.model_type in words]
        return sorted(named, key=lambda model: (self.weights[model], model))[:MODELS]


def _plain(sides: Sequence[Json]) -> Iterator[Constant]:
    """Yield the plain values among the two sides of a comparison."""
    for side in sides:
        for value in side if isinstance(side, list) else [side]:
            if isinstance(value, (str, int, float)) and not isinstance(value, bool):
                yield value


def _numbers(constants: Sequence[Constant], default: Json) -> list[int]:
    whole = [int(c) for c in constants if isinstance(c, (int, float)) and abs(c) < 10**12][:6]
    if isinstance(default, int) and not isinstance(default, bool):
        whole.append(default)
    near = [n for c in whole for n in (c, c + 1, c - 1, 2 * c)]
    return list(dict.fromkeys([*near, *NUMBERS]))


def turns(streams: Sequence[Iterator[Command]]) -> Iterator[Command]:
    """Yield from the streams in turn."""
    left = list(streams)
    while left:
        for stream in list(left):
            try:
                yield next(stream)
            except StopIteration:
                left.remove(stream)


def _weight(config: Mapping[str, Json]) -> int:
    """Return a number that grows with the time that building a model takes: layers times modules of one."""
    inner = config.get("text_config")
    config = {**config, **inner} if isinstance(inner, dict) else config
    layers = config.get("num_hidden_layers")
    experts = next((v for k, v in config.items() if k.endswith("experts") and isinstance(v, int)), 0)
    return (layers if isinstance(layers, int) else 32) * (1 + experts)
