"""From an error to the changes worth a try, likeliest first. Pure.

Nothing here knows what SGLang accepts. A proposal is a guess from the error's own words, its conditions, the release's
option table and the knowledge base; whether it helps is decided by running it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rapidfuzz import fuzz, process

from app.check import command
from app.check.fixes import arguments, values
from app.check.fixes.advice import Advice
from app.check.fixes.arguments import Given
from app.check.fixes.changes import Change, Drop, Edit, Machine, Put, Release, Rename, Table, Variable, Variant
from app.check.fixes.clues import Clues, Mention, clues
from app.check.hardware import Profile
from app.check.options import Options
from app.check.pool import Engine
from app.check.protocol import Error, Option
from app.errors import ErrataError

KEPT = ("model_path",)
"""What no fix may take away or exchange: the model that was asked for."""

CHECKPOINT = ("quantization", "load_format", "dtype", "json_model_override_args")
"""What describes the files of a checkpoint, which a check does not read: nothing is guessed for them."""

ADDED = 0.7
"""What is lost by an option more: two of them lose less than a switch that is dropped."""

OTHER_MODE = 1.2
"""How much more a change of a mode loses than another change of a value."""

RANKS = "tp_size"
"""The setting that divides a model's memory among GPUs: where memory is short, only more of them are proposed."""

UNNAMED = 2.5
"""Doubt of a change of something that the error does not name."""

_ARGPARSE = re.compile(r"^(?:[^:\n]*: )?error: ", re.DOTALL)
_OF_ARGUMENT = re.compile(r"argument (\S+?)(?:/\S+)?: (.*)", re.DOTALL)
_SHORT_OF_MEMORY = re.compile(
    r"\b(?:not enough|out of|insufficient|leaves? no|more)\b[^.]{0,40}(?<![-_])\bmemory\b(?![-_])|\bOOM\b",
    re.IGNORECASE,
)
_DEVICE = re.compile(
    r"\bsm_?\d{2,3}|\bSM\d|blackwell|hopper|ampere|\bada\b|\bcuda\b|\bhip\b|rocm|\bamd\b|nvidia|capability|\bgpus?\b|is_sm|is_hip",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Failure:
    """A launch that was refused: the error, what SGLang had resolved by then, and what is known of the record."""

    variant: Variant
    error: Error
    stage: str
    resolved: Mapping[str, Any] = field(default_factory=dict)
    advice: Advice | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """An edit and how doubtful it is that it helps."""

    edit: Edit
    doubt: float


@dataclass(frozen=True, slots=True)
class Proposer:
    """Makes proposals. `engines` are the installed ones, oldest release first."""

    table: Table
    engines: Sequence[Engine]
    profiles: Sequence[Profile]
    may_set: Callable[[str], bool]

    def proposals(self, failure: Failure) -> list[Proposal]:
        """Return what to try against a failure; an edit is proposed once, as surely as anything suggests it."""
        options = self.table(failure.variant.engine)
        present = arguments.given(failure.variant.arguments, options)
        found: dict[frozenset[Change], Proposal] = {}
        for proposal in self._all(failure, options, present):
            key = frozenset(proposal.edit)
            if key not in found or proposal.doubt < found[key].doubt:
                found[key] = proposal
        return list(found.values())

    def _all(self, failure: Failure, options: Options, present: Sequence[Given]) -> Iterator[Proposal]:
        if failure.error.foreign == "argparse":
            against_parser = list(self._refused_by_parser(failure, options, present))
            yield from against_parser
            if against_parser:
                return
        read = clues(failure.error, options, present, failure.advice)
        yield from self._by_life(failure)
        yield from self._by_example(failure, options, present)
        by_key = {one.key: one for one in present}
        short = _SHORT_OF_MEMORY.search(failure.error.message) is not None
        for mention in read.mentions.values():
            if mention.option.dest not in KEPT and not (short and mention.option.dest == RANKS):
                yield from _of_mention(mention, by_key.get(mention.option.dest), failure.resolved, read)
        yield from self._by_variables(failure, read)
        yield from self._by_machine(failure, read, options, by_key)
        yield from _unnamed(present, {*read.mentions, *KEPT, *([RANKS] if short else [])}, failure.stage)

    # -- releases

    def _by_life(self, failure: Failure) -> Iterator[Proposal]:
        """Propose releases that lack the record: the next one after it is gone, then the last one before it came."""
        advice, engine = failure.advice, failure.variant.engine
        if advice is None or not advice.versions:
            return
        order = [one.version for one in self.engines]
        here = order.index(engine.version) if engine.version in order else -1
        free = [one for one in self.engines if one.version in advice.ingested and one.version not in advice.versions]
        later = [one for one in free if order.index(one.version) > here]
        earlier = [one for one in free if order.index(one.version) < here]
        if later:
            yield _one(Release(later[0], since=_free_since(later[0].version, advice)), 0.0)
        if earlier:
            yield _one(Release(earlier[-1], upgrade=False, loss=3.5), 1.5)

    # -- the knowledge base

    def _by_example(self, failure: Failure, options: Options, present: Sequence[Given]) -> Iterator[Proposal]:
        """Propose what the record's example changes, all of it at once, as far as it applies to this launch."""
        advice = failure.advice
        if advice is None or not advice.before or not advice.after:
            return
        try:
            before, after = command.read(advice.before), command.read(advice.after)
        except ErrataError:
            return
        old = {one.key: one for one in arguments.given(before.arguments, options)}
        new = {one.key: one for one in arguments.given(after.arguments, options)}
        here = {one.key: one for one in present}
        edit: list[Change] = []
        for key, one in old.items():
            if key in KEPT or key not in here:
                continue
            if key not in new:
                edit.append(_drop(here[key]))
            elif new[key].values != one.values:
                edit.append(_put(here[key].option, here[key], new[key].values))
        for key, one in new.items():
            if key not in old and key not in KEPT and one.option is not None and key not in here:
                edit.append(_put(one.option, None, one.values, ADDED))
        variables = dict(before.environment)
        edit += [Variable(n, v) for n, v in after.environment if variables.get(n) != v and self.may_set(n)]
        if edit:
            yield Proposal(tuple(edit), 0.2)

    # -- variables and machines

    def _by_variables(self, failure: Failure, read: Clues) -> Iterator[Proposal]:
        present = dict(failure.variant.environment)
        for name, value in read.variables:
            if not self.may_set(name):
                continue
            if name in present:
                yield _one(Variable(name, None), 0.2)
            if value and value != present.get(name):
                yield _one(Variable(name, value), 0.3)
            if not value:
                other = "0" if present.get(name, "").lower() in ("1", "true") else "1"
                yield _one(Variable(name, other), 0.5)

    def _by_machine(
        self, failure: Failure, read: Clues, options: Options, present: Mapping[str, Given]
    ) -> Iterator[Proposal]:
        here = next((one for one in self.profiles if one.name == failure.variant.hardware), None)
        if here is None:
            return
        if _SHORT_OF_MEMORY.search(failure.error.message):
            larger = sorted(
                (p for p in self.profiles if p.free_bytes > here.free_bytes and p.device.vendor == here.device.vendor),
                key=lambda p: (p.device.group != here.device.group, p.free_bytes),
            )
            for place, profile in enumerate(larger[:3]):
                yield _one(Machine(profile.name, profile.title, loss=2.4), 0.1 + 0.3 * place)
            yield from _more_ranks(options, present)
        elif _DEVICE.search(read.text):
            wanted = _capability(read.text)
            for place, profile in enumerate(_one_of_each_kind(self.profiles, here, wanted)):
                yield _one(Machine(profile.name, profile.title), 0.6 + 0.3 * place)

    # -- the argument parser

    def _refused_by_parser(self, failure: Failure, options: Options, present: Sequence[Given]) -> Iterator[Proposal]:
        """Propose against what argparse says; its wordings are Python's, not SGLang's."""
        said = _ARGPARSE.sub("", failure.error.message)
        if said.startswith("unrecognized arguments: "):
            for one in present:
                if one.option is None:
                    yield from self._unknown_option(one, options, failure.variant)
        elif said.startswith("ambiguous option: "):
            name = said.split()[2].partition("=")[0]
            for candidate in re.findall(r"--[\w-]+", said.partition("could match")[2]):
                yield _one(Rename(name, candidate), 0.1)
        elif (found := _OF_ARGUMENT.match(said)) is not None and (option := options.named(found[1])) is not None:
            yield from _of_bad_value(option, next((g for g in present if g.option is option), None), found[2])

    def _unknown_option(self, one: Given, options: Options, variant: Variant) -> Iterator[Proposal]:
        shown = _shown(one)
        yield _one(Drop(one.key, shown, 2.0 if one.name else 0.5), 0.3)
        if not one.name:
            return
        for place, name in enumerate(_like(one.name, options.names)):
            yield _one(Rename(one.name, name, 0.2 + 0.2 * place), 0.1 + 0.2 * place)
        order = [engine.version for engine in self.engines]
        here = order.index(variant.engine.version) if variant.engine.version in order else -1
        have = [i for i, engine in enumerate(self.engines) if i != here and one.name in self.table(engine).names]
        later, earlier = [i for i in have if i > here], [i for i in have if i < here]
        if later:
            yield _one(Release(self.engines[later[0]], loss=1.0), 0.2)
        if earlier:
            yield _one(Release(self.engines[earlier[-1]], upgrade=False, loss=3.0), 0.4)


def _free_since(version: str, advice: Advice) -> str:
    """Return the first of the releases that lack the record, if `version` and all after it do; else ""."""
    having = [place for place, one in enumerate(advice.ingested) if one in advice.versions]
    since = having[-1] + 1 if having else 0
    return advice.ingested[since] if since <= advice.ingested.index(version) else ""


def _one(change: Change, doubt: float) -> Proposal:
    return Proposal((change,), doubt)


def _shown(one: Given) -> str:
    written = " ".join((f"{one.name}={one.values[0]}",) if one.joined else (one.name, *one.values)).strip()
    return written if len(written) <= 100 else written[:99] + "…"


def _drop(one: Given, extra: float = 0.0) -> Drop:
    """Return the change that leaves an option out: a switch loses less than a setting with a value."""
    switch = one.option is not None and one.option.nargs == "0"
    return Drop(one.key, _shown(one), (1.5 if switch else 2.0) + extra)


def _put(option: Option | None, one: Given | None, new: Sequence[str], loss: float = 1.0) -> Put:
    name = one.name if one is not None and one.option is option else option.names[0] if option else ""
    key = option.dest if option else name
    if option is not None and values.is_number(option):
        new = [re.sub(r"\.0+\Z", "", value) for value in new]  # "1.0" is "1"
    return Put(name, tuple(new), key, None if one is None else one.values, loss)


def _of_mention(
    mention: Mention, one: Given | None, resolved: Mapping[str, Any], read: Clues
) -> Iterator[Proposal]:  # fmt: skip
    option, doubt = mention.option, mention.doubt
    quoted = [value for value in read.quoted if not option.choices or value in option.choices]
    named = list(dict.fromkeys([*mention.values, *quoted]))
    if one is not None and one.option is not None:
        yield Proposal((_drop(one),), doubt)
        if one.option.nargs != "0":
            present = one.values[0] if one.values else None
            found = values.others(option, present, named, read.numbers)
            for place, value in enumerate(values.directed(found, present, mention.direction)):
                sure, number = value in named, values.is_number(option)
                if not sure and not number and (option.dest in CHECKPOINT or _is_mode(option)):
                    continue
                loss = 1.0 + 0.1 * values.distance(option, present, value) + (0.0 if sure or number else 0.5)
                loss += OTHER_MODE if _is_mode(option) else 0.0
                unsure = 0.0 if sure else 0.8 if named and option.choices else 0.2
                yield _one(_put(one.option, one, (value,), loss), doubt + 0.12 * place + unsure)
        return
    if option.deprecated or option.required or option.dest in CHECKPOINT:
        return
    current = resolved.get(option.dest, option.default)
    if option.nargs == "0":
        if current is not True:
            yield _one(_put(option, None, (), ADDED), doubt + 0.3)
        return
    if option.nargs not in ("", "?"):
        return
    present = None if current is None else str(current)
    others = values.others(option, present, named, read.numbers)
    for place, value in enumerate(values.directed(others, present, mention.direction)):
        sure = value in named
        if sure or doubt <= 0.4 or values.is_number(option):
            loss = ADDED + (OTHER_MODE if _is_mode(option) else 0.0)
            yield _one(_put(option, None, (value,), loss), doubt + 0.3 + 0.15 * place + (0.0 if sure else 0.6))


def _is_mode(option: Option) -> bool:
    """Say whether an option chooses what the server is, by its name: another mode is another server."""
    return option.dest.endswith("_mode")


def _of_bad_value(option: Option, one: Given | None, said: str) -> Iterator[Proposal]:
    """Propose against a value that the option does not take."""
    bad = one.values[-1] if one is not None and one.values else ""
    near = _like(bad, option.choices) if bad else []
    for place, value in enumerate(dict.fromkeys([*near, *option.choices[: values.CHOICES_TRIED]])):
        yield _one(_put(option, one, (value,), 0.5 + 0.1 * place), 0.1 + 0.15 * place)
    numbers = re.findall(r"-?\d+(?:\.\d+)?", bad)
    if values.is_number(option) and numbers:
        yield _one(_put(option, one, (numbers[0],), 0.5), 0.1)
    if option.default is not None and not isinstance(option.default, (bool, list, dict)) and one is not None:
        yield _one(_put(option, one, (str(option.default),), 1.2), 0.5)
    if one is not None:
        yield _one(_drop(one), 0.3)


def _like(name: str, names: Iterable[str]) -> list[str]:
    """Return the names most like `name`, at most three, best first."""
    plain = {other: re.sub(r"[_-]+", "-", other).lower() for other in names}
    found = process.extract(
        re.sub(r"[_-]+", "-", name).lower(), plain, scorer=fuzz.ratio, limit=3, score_cutoff=72
    )  # fmt: skip
    return [str(key) for _, _, key in found]


def _more_ranks(options: Options, present: Mapping[str, Given]) -> Iterator[Proposal]:
    """Propose to divide the model among more GPUs."""
    option = options.setting(RANKS)
    if option is None:
        return
    one = present.get(option.dest)
    now = int(one.values[0]) if one is not None and one.values and one.values[0].isdigit() else 1
    for place, ranks in enumerate((2, 4, 8)):
        if now * ranks <= 64:
            yield _one(_put(option, one, (str(now * ranks),), 1.9), 0.2 + 0.3 * place)


def _capability(text: str) -> tuple[int, int] | None:
    found = re.search(r"sm_?(\d{2,3})", text, re.IGNORECASE)
    return (int(found[1][:-1]), int(found[1][-1])) if found else None


def _one_of_each_kind(
    profiles: Iterable[Profile], here: Profile, wanted: tuple[int, int] | None
) -> list[Profile]:  # fmt: skip
    """Return the largest machine of each other kind: first the wanted kind, then those that need no other process."""
    kinds: dict[tuple[str, tuple[int, int], str], Profile] = {}
    for profile in profiles:
        device = profile.device
        kind = (device.vendor, device.capability, device.arch)
        if kind != (here.device.vendor, here.device.capability, here.device.arch) and (
            kind not in kinds or kinds[kind].free_bytes < profile.free_bytes
        ):
            kinds[kind] = profile
    return sorted(
        kinds.values(),
        key=lambda p: (p.device.capability != wanted, p.device.group != here.device.group, -p.device.capability[0]),
    )[:4]


def _unnamed(present: Sequence[Given], named: set[str], stage: str) -> Iterator[Proposal]:
    """Propose against options that the error does not name, as the last resort."""
    early = stage in ("arguments", "checks")
    for place, one in enumerate(one for one in present if one.key not in named):
        option = one.option
        if option is not None and not early and values.is_number(option) and one.values and one.values[0].isdigit():
            number = int(one.values[0])
            if number >= 2:
                yield _one(_put(option, one, (str(number // 2),), 1.5), UNNAMED - 0.8 + 0.1 * place)
                if number >= 4:
                    yield _one(_put(option, one, ("1",), 1.8), UNNAMED - 0.6 + 0.1 * place)
        if option is not None:
            yield _one(_drop(one, 1.0), UNNAMED + 0.1 * place)
