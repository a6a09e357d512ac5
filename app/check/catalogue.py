"""The catalogue of published model configurations, `data/models/`, and the names people call them by.

A model is looked up, never guessed: an unknown name gives the names that look like it. `docs/models.md`
describes the files, the rule for folders and the generic stand-in for a configuration class of a repository.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

from rapidfuzz import fuzz, process

from app.errors import Broken

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Role = Literal["target", "draft"]
TrialOutcome = Literal["pass", "fail", "unknown"]

MODELS = Path(__file__).resolve().parents[2] / "data" / "models"
TRIALS = "trials.tsv"
STAND_IN = "configuration_stand_in"
NEAR_LIMIT = 5
NEAR_SCORE = 70.0
MAX_NAME = 300

_HUB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
_CACHE_FOLDER = re.compile(r"models--([A-Za-z0-9._-]+?)--([A-Za-z0-9._-]+)")
_RANGES = re.compile(r"\[([0-9,-]+)\]")
_FIELDS = {
    "hub_id", "role", "source", "provenance", "draft_of", "algorithm", "same_as", "incomplete", "notes", "stand_in",
    "config", "hf_quant_config",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Alias:
    """Another hub id whose configuration decides the same, and how that is known."""

    hub_id: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Trial:
    """What one engine made of the model: a row of `trials.tsv`, written by `scripts/adopt-models --try`."""

    hub_id: str
    engine: str
    hardware: str
    gpus: int
    arguments: str
    outcome: TrialOutcome
    stage: str
    reason: str


@dataclass(frozen=True, slots=True)
class Model:
    """A published configuration.

    Shape: `config` and `hf_quant_config` are folded as the file has them; `files` gives the text a model
    folder would hold. A draft says whose it is and for which `--speculative-algorithm`. `stand_in` says that
    the hub repository ships its own configuration class, in whose place a generic one is used. `asked` is the
    name that was looked up; `assumption` is a sentence for the reader when that name was not a hub id of the
    catalogue, else "".
    """

    hub_id: str
    role: Role
    source: str
    provenance: str
    config: Mapping[str, Json]
    hf_quant_config: Mapping[str, Json] | None = None
    draft_of: str = ""
    algorithm: str = ""
    same_as: tuple[Alias, ...] = ()
    incomplete: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    stand_in: bool = False
    trials: tuple[Trial, ...] = ()
    asked: str = ""
    assumption: str = ""

    @property
    def architecture(self) -> str:
        """Return the model class that the configuration names."""
        named = self.config.get("architectures")
        return str(named[0]) if isinstance(named, list) and named else ""

    @property
    def model_type(self) -> str:
        """Return the configuration class's name as transformers knows it."""
        return str(self.config.get("model_type", ""))

    def files(self) -> dict[str, str]:
        """Return the files of the model's folder that start-up reads, by name."""
        config = unfold(dict(self.config))
        files = {}
        if self.stand_in:
            config |= {"auto_map": {"AutoConfig": f"{STAND_IN}.StandInConfig"}}
            files[f"{STAND_IN}.py"] = _stand_in(self.model_type)
        files["config.json"] = json.dumps(config, indent=1)
        if self.hf_quant_config is not None:
            files["hf_quant_config.json"] = json.dumps(unfold(dict(self.hf_quant_config)), indent=1)
        return files

    def caveats(self) -> tuple[str, ...]:
        """Return what a reader of an answer must know about this configuration, as sentences."""
        said = [self.assumption] if self.assumption else []
        if self.incomplete:
            said.append(
                f"The published configuration of {self.hub_id} was found without: {', '.join(self.incomplete)};"
                " these take the configuration class's defaults."
            )
        if self.stand_in:
            said.append(
                f"{self.hub_id} ships its own configuration class; a generic one with the same fields stands in for it."
            )
        return tuple(said)


@dataclass(frozen=True, slots=True)
class Near:
    """The name is not known; `names` look like it, best first, and may be empty."""

    asked: str
    names: tuple[str, ...]

    @property
    def reason(self) -> str:
        """Return the sentence that an answer carries."""
        looks = f" Names that look like it: {', '.join(self.names)}." if self.names else ""
        return (
            f"The configuration of the model {self.asked[:MAX_NAME]!r} is not known here.{looks} Paste its config.json."
        )


class Catalogue:
    """All models of a folder, by name."""

    def __init__(self, models: Iterable[Model]) -> None:
        self._models = sorted(models, key=lambda model: model.hub_id.lower())
        self._by_name: dict[str, Model] = {}
        for model in self._models:
            self._claim(model.hub_id, model)
        for model in self._models:
            for alias in model.same_as:
                self._claim(alias.hub_id, model)
        self._spelling = {name.lower(): name for name in self._names()}

    def _claim(self, name: str, model: Model) -> None:
        if other := self._by_name.get(name.lower()):
            raise Broken(f"two models answer to {name!r}: {other.hub_id} and {model.hub_id}")
        self._by_name[name.lower()] = model

    def _names(self) -> Iterator[str]:
        for model in self._models:
            yield model.hub_id
            yield from (alias.hub_id for alias in model.same_as)

    def __iter__(self) -> Iterator[Model]:
        return iter(self._models)

    def __len__(self) -> int:
        return len(self._models)

    @property
    def names(self) -> tuple[str, ...]:
        """Return every name that is known, aliases included, sorted."""
        return tuple(sorted(self._spelling.values(), key=str.lower))

    def find(self, asked: str) -> Model | Near:
        """Return the model a command means by `--model-path asked`, or the names near it.

        A hub id is compared without regard to case. A folder is taken for the model that its path spells out
        (`.../models--Qwen--Qwen3-8B/...`, `.../Qwen/Qwen3-8B`) or, where only one known model has that name, that
        its last part names; the model then carries the assumption as a sentence.
        """
        name = asked.strip()[:MAX_NAME]
        if model := self._by_name.get(name.lower()):
            return self._said(model, name, "")
        for meant in _spelled_out(name):
            if model := self._by_name.get(meant.lower()):
                known = self._spelling[meant.lower()]
                return self._said(
                    model, name, f"{name!r} was taken for the published {known}; its files were not seen."
                )
        if model := self._only_one_called(name):
            return self._said(
                model,
                name,
                f"{name!r} was taken for the published {model.hub_id}, by name only; its files were not seen.",
            )
        return Near(name, self.near(name))

    def _said(self, model: Model, asked: str, assumption: str) -> Model:
        known = self._spelling.get(asked.lower())
        if not assumption and known and known.lower() != model.hub_id.lower():
            evidence = next(a.evidence for a in model.same_as if a.hub_id.lower() == asked.lower())
            assumption = f"{known} was given the configuration of {model.hub_id}: {evidence}."
        return replace(model, asked=asked, assumption=assumption)

    def _only_one_called(self, name: str) -> Model | None:
        last = _last_part(name).lower()
        if not last or _HUB_ID.fullmatch(name):  # another owner's repository is another model
            return None
        found = {self._by_name[key].hub_id: self._by_name[key] for key in self._by_name if key.split("/")[-1] == last}
        return next(iter(found.values())) if len(found) == 1 else None

    def near(self, asked: str, limit: int = NEAR_LIMIT) -> tuple[str, ...]:
        """Return the known names most like `asked`, best first."""
        if not (last := _last_part(asked).lower()):
            return ()
        scored = process.extract(
            last, {key: key.split("/")[-1] for key in self._spelling}, scorer=fuzz.ratio, score_cutoff=NEAR_SCORE,
            limit=4 * limit,
        )  # fmt: skip
        whole = asked.lower()
        ranked = sorted(scored, key=lambda hit: (-hit[1], -fuzz.ratio(whole, hit[2]), hit[2]))
        return tuple(self._spelling[key] for _, _, key in ranked[:limit])


def load(folder: Path = MODELS) -> Catalogue:
    """Read the catalogue. Raises: Broken: a file is not what it should be; says which, and why."""
    trials: dict[str, list[Trial]] = {}
    for trial in read_trials(folder / TRIALS):
        trials.setdefault(trial.hub_id, []).append(trial)
    models = [replace(read(path), trials=tuple(trials.pop(_id_of(path), ()))) for path in sorted(folder.glob("*.json"))]
    if trials:
        raise Broken(f"{TRIALS} speaks of models that are not there: {', '.join(sorted(trials))}")
    return Catalogue(models)


@functools.cache
def catalogue() -> Catalogue:
    """Return the catalogue that comes with the program, read once."""
    return load()


def read(path: Path) -> Model:
    """Read one file of the catalogue. Raises: Broken."""
    try:
        value = json.loads(path.read_bytes())
    except ValueError as error:
        raise Broken(f"{path.name}: not JSON: {error}") from None
    try:
        return _model(value, _id_of(path))
    except ValueError as error:
        raise Broken(f"{path.name}: {error}") from None


def read_trials(path: Path) -> list[Trial]:
    """Read the table of trials; no file is no trials. Raises: Broken."""
    if not path.exists():
        return []
    trials = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("#"):
            continue
        cells = line.split("\t")
        if len(cells) != 8 or not cells[3].isdigit() or cells[5] not in ("pass", "fail", "unknown"):
            raise Broken(
                f"{path.name}:{number}: hub id, engine, hardware, gpus, arguments, outcome, stage, reason expected"
            )
        hub_id, engine, hardware, gpus, arguments, outcome, stage, reason = cells
        trials.append(
            Trial(hub_id, engine, hardware, int(gpus), arguments, cast("TrialOutcome", outcome), stage, reason)
        )
    return trials


def _stand_in(model_type: str) -> str:
    """Return the source of a configuration class that takes any field."""
    return (MODELS / f"{STAND_IN}.txt").read_text().replace('"@MODEL_TYPE@"', json.dumps(model_type))


def _id_of(path: Path) -> str:
    return path.stem.replace("--", "/", 1)


def _model(value: object, hub_id: str) -> Model:
    entry = _object(value, "the file")
    if unknown := sorted(set(entry) - _FIELDS):
        raise ValueError(f"no such field: {', '.join(unknown)}")
    if entry.get("hub_id") != hub_id or not _HUB_ID.fullmatch(hub_id):
        raise ValueError(f"hub_id {entry.get('hub_id')!r} does not fit the file's name")
    role = entry.get("role")
    if role not in ("target", "draft"):
        raise ValueError(f"role {role!r} is neither 'target' nor 'draft'")
    config = _object(entry.get("config"), "config")
    if not isinstance(config.get("model_type"), str) or not isinstance(config.get("architectures"), list):
        raise ValueError("config needs model_type and architectures")
    quantization = entry.get("hf_quant_config")
    return Model(
        hub_id=hub_id,
        role=cast("Role", role),
        source=_text(entry, "source"),
        provenance=_text(entry, "provenance"),
        config=config,
        hf_quant_config=None if quantization is None else _object(quantization, "hf_quant_config"),
        draft_of=_text(entry, "draft_of", needed=False),
        algorithm=_text(entry, "algorithm", needed=False),
        same_as=tuple(_alias(item) for item in _list(entry, "same_as")),
        incomplete=_texts(entry, "incomplete"),
        notes=_texts(entry, "notes"),
        stand_in=entry.get("stand_in", False) is True,
    )


def _alias(value: object) -> Alias:
    entry = _object(value, "same_as")
    if set(entry) != {"hub_id", "evidence"}:
        raise ValueError("an entry of same_as has hub_id and evidence")
    alias = Alias(_text(entry, "hub_id"), _text(entry, "evidence"))
    if not _HUB_ID.fullmatch(alias.hub_id):
        raise ValueError(f"same_as: {alias.hub_id!r} is no hub id")
    return alias


def _object(value: object, what: str) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} is no object")
    return value


def _list(entry: Mapping[str, Json], key: str) -> list[Json]:
    value = entry.get(key, [])
    if not isinstance(value, list):
        raise ValueError(f"{key} is no list")
    return value


def _text(entry: Mapping[str, Json], key: str, *, needed: bool = True) -> str:
    value = entry.get(key, None if needed else "")
    if not isinstance(value, str) or (needed and not value):
        raise ValueError(f"{key} is no text")
    return value


def _texts(entry: Mapping[str, Json], key: str) -> tuple[str, ...]:
    values = _list(entry, key)
    if not all(isinstance(value, str) for value in values):
        raise ValueError(f"{key} is no list of texts")
    return tuple(str(value) for value in values)


def _last_part(name: str) -> str:
    return name.rstrip("/").rsplit("/", 1)[-1]


def _spelled_out(name: str) -> Iterator[str]:
    """Yield the hub ids that a folder's path spells out."""
    for owner, model in _CACHE_FOLDER.findall(name):
        yield f"{owner}/{model}"
    parts = name.rstrip("/").split("/")
    if len(parts) > 2:
        yield "/".join(parts[-2:])


# -- folding: lists of tens of thousands of module names become a few patterns ------------------------------


def fold(value: Json) -> Json:
    """Return `value` with long lists of module names, and objects keyed by them, as patterns.

    `{"$names": ["layers.[0-3].mlp"]}` stands for a list, `{"$keys": [["layers.[0-3].mlp", {...}]]}` for an object.
    The order of such names carries no meaning to SGLang and is not kept.
    """
    if isinstance(value, list):
        if _foldable(value):
            patterns = fold_names(cast("list[str]", value))
            if len(patterns) * 2 <= len(value):
                return {"$names": cast("list[Json]", patterns)}
        return [fold(item) for item in value]
    if isinstance(value, dict):
        if _foldable(list(value)):
            groups: dict[str, list[str]] = {}
            for key, item in value.items():
                groups.setdefault(json.dumps(item, sort_keys=True), []).append(key)
            rows = [(pattern, json.loads(text)) for text, keys in groups.items() for pattern in fold_names(keys)]
            if len(rows) * 2 <= len(value):
                return {"$keys": [[pattern, item] for pattern, item in rows]}
        return {key: fold(item) for key, item in value.items()}
    return value


def unfold(value: Any) -> Any:
    """Undo `fold`."""
    if isinstance(value, list):
        return [unfold(item) for item in value]
    if isinstance(value, dict):
        if set(value) == {"$names"}:
            return [name for pattern in cast("list[str]", value["$names"]) for name in unfold_name(pattern)]
        if set(value) == {"$keys"}:
            rows = cast("list[list[Json]]", value["$keys"])
            return {name: unfold(item) for pattern, item in rows for name in unfold_name(str(pattern))}
        return {key: unfold(item) for key, item in value.items()}
    return value


def fold_names(names: Sequence[str]) -> list[str]:
    """Return patterns that together stand for exactly `names`, in the order of their first names."""
    shapes: dict[tuple[str, ...], set[tuple[int, ...]]] = {}
    for name in names:
        parts = re.split(r"(\d+)", name)
        shapes.setdefault(tuple(parts[0::2]), set()).add(tuple(int(part) for part in parts[1::2]))
    return [
        _pattern(literals, product) for literals, numbers in shapes.items() for product in _products(frozenset(numbers))
    ]


def unfold_name(pattern: str) -> Iterator[str]:
    """Yield the names a pattern stands for."""
    pieces = _RANGES.split(pattern)
    choices = [[piece] if i % 2 == 0 else [str(number) for number in _numbers(piece)] for i, piece in enumerate(pieces)]
    yield from map("".join, itertools.product(*choices))


def _foldable(names: list[Json]) -> bool:
    """Only names survive that unfold to themselves: no brackets, no number with leading zeros."""
    return (
        len(names) >= 16
        and len(set(map(str, names))) == len(names)
        and all(isinstance(n, str) and not re.search(r"[\[\]$]|(?<!\d)0\d", n) for n in names)
        and any(re.search(r"\d", str(n)) for n in names)
    )


def _products(rows: frozenset[tuple[int, ...]]) -> list[tuple[frozenset[int], ...]]:
    """Split `rows` into products of sets: the same tails are put behind one set of heads."""
    if rows == {()}:
        return [()]
    tails: dict[int, set[tuple[int, ...]]] = {}
    for head, *tail in rows:
        tails.setdefault(head, set()).add(tuple(tail))
    heads: dict[frozenset[tuple[int, ...]], set[int]] = {}
    for head in sorted(tails):
        heads.setdefault(frozenset(tails[head]), set()).add(head)
    return [(frozenset(group), *rest) for tail, group in heads.items() for rest in _products(tail)]


def _pattern(literals: Sequence[str], numbers: Sequence[frozenset[int]]) -> str:
    pieces = [literals[0]]
    for values, literal in zip(numbers, literals[1:], strict=True):
        pieces += [_spelling(values), literal]
    return "".join(pieces)


def _spelling(values: frozenset[int]) -> str:
    """Return `[0-3,7]` for a set, a bare number for one."""
    if len(values) == 1:
        return str(next(iter(values)))
    runs: list[list[int]] = []
    for value in sorted(values):
        if runs and value == runs[-1][1] + 1:
            runs[-1][1] = value
        else:
            runs.append([value, value])
    return "[" + ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs) + "]"


def _numbers(text: str) -> Iterator[int]:
    for run in text.split(","):
        first, _, last = run.partition("-")
        yield from range(int(first), int(last or first) + 1)
