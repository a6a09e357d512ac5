"""The changes that a fix is made of: pure functions on what would be run. Each says in words what it does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol

from app.check.fixes import arguments
from app.check.options import Options
from app.check.pool import Engine


@dataclass(frozen=True, slots=True)
class Variant:
    """What would be run: a launch on an engine and a machine."""

    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    engine: Engine
    hardware: str


Table = Callable[[Engine], Options]


class Change(Protocol):
    """One change. `loss` says how much of what was asked for it gives up, `touches` what no other change may touch.

    Frozen and hashable, so that a set of changes is an edit whatever their order.
    """

    @property
    def loss(self) -> float:
        """Return how much of what was asked for is lost."""
        ...

    @property
    def touches(self) -> str:
        """Return the setting that is changed."""
        ...

    @property
    def text(self) -> str:
        """Return the change in words."""
        ...

    def apply(self, variant: Variant, table: Table) -> Variant | None:
        """Return the changed variant, None where the change changes nothing or does not apply."""
        ...


Edit = tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Drop:
    """Leave an option out. `key` is its setting, `shown` what is left out as it was written."""

    key: str
    shown: str = field(compare=False)
    loss: float = field(default=2.0, compare=False)

    @property
    def touches(self) -> str:
        """Return the setting that is changed."""
        return self.key

    @property
    def text(self) -> str:
        """Return the change in words."""
        return f"drop {self.shown}"

    def apply(self, variant: Variant, table: Table) -> Variant | None:
        """Return the variant without the option."""
        return _with(variant, arguments.without(variant.arguments, table(variant.engine), self.key))


@dataclass(frozen=True, slots=True)
class Put:
    """Give an option these values, whether or not it was given. `before` are its own; None: it was not given."""

    name: str
    values: tuple[str, ...]
    key: str
    before: tuple[str, ...] | None = field(default=None, compare=False)
    loss: float = field(default=1.0, compare=False)

    @property
    def touches(self) -> str:
        """Return the setting that is changed."""
        return self.key

    @property
    def text(self) -> str:
        """Return the change in words."""
        now = " ".join((self.name, *self.values))
        if self.before is None:
            return f"add {now}"
        return (
            f"change {' '.join((self.name, *self.before))} to {' '.join(self.values)}" if self.values else f"use {now}"
        )

    def apply(self, variant: Variant, table: Table) -> Variant | None:
        """Return the variant with the option; None where its release has none of that name."""
        options = table(variant.engine)
        if options.named(self.name) is None:
            return None
        return _with(variant, arguments.put(variant.arguments, options, self.name, self.values))


@dataclass(frozen=True, slots=True)
class Rename:
    """Write an option under another name, keeping its values as far as the other takes them."""

    before: str
    name: str
    loss: float = field(default=0.3, compare=False)

    @property
    def touches(self) -> str:
        """Return the setting that is changed."""
        return self.before

    @property
    def text(self) -> str:
        """Return the change in words."""
        return f"write {self.name} instead of {self.before}"

    def apply(self, variant: Variant, table: Table) -> Variant | None:
        """Return the variant with the other name."""
        options = table(variant.engine)
        one = arguments.find(variant.arguments, options, self.before)
        option = options.named(self.name)
        if one is None or option is None:
            return None
        values = () if option.nargs == "0" else one.values
        words = (f"{self.name}={values[0]}",) if one.joined and values else (self.name, *values)
        return _with(variant, (*variant.arguments[: one.start], *words, *variant.arguments[one.end :]))


@dataclass(frozen=True, slots=True)
class Release:
    """Run on another release of SGLang.

    Shape: `since` is the first release of which the same is known as of all after it, "" where that is not so.
    """

    engine: Engine
    upgrade: bool = field(default=True, compare=False)
    loss: float = field(default=0.5, compare=False)
    since: str = field(default="", compare=False)

    @property
    def touches(self) -> str:
        """Return the setting that is changed."""
        return "engine"

    @property
    def text(self) -> str:
        """Return the change in words."""
        where = f"{self.since} or later" if self.since else self.engine.version
        return f"{'upgrade' if self.upgrade else 'go back'} to SGLang {where}"

    def apply(self, variant: Variant, table: Table) -> Variant | None:
        """Return the variant on the other release."""
        return None if variant.engine == self.engine else replace(variant, engine=self.engine)


@dataclass(frozen=True, slots=True)
class Machine:
    """Run on other hardware."""

    name: str
    title: str = field(compare=False)
    loss: float = field(default=3.0, compare=False)

    @property
    def touches(self) -> str:
        """Return the setting that is changed."""
        return "hardware"

    @property
    def text(self) -> str:
        """Return the change in words."""
        return f"run on {self.title}"

    def apply(self, variant: Variant, table: Table) -> Variant | None:
        """Return the variant on the other machine."""
        return None if variant.hardware == self.name else replace(variant, hardware=self.name)


@dataclass(frozen=True, slots=True)
class Variable:
    """Set an environment variable; None leaves it out."""

    name: str
    value: str | None
    loss: float = field(default=1.5, compare=False)

    @property
    def touches(self) -> str:
        """Return the setting that is changed."""
        return self.name

    @property
    def text(self) -> str:
        """Return the change in words."""
        return f"drop {self.name}" if self.value is None else f"set {self.name}={self.value}"

    def apply(self, variant: Variant, table: Table) -> Variant | None:
        """Return the variant with the variable."""
        kept = tuple((name, value) for name, value in variant.environment if name != self.name)
        changed = kept if self.value is None else (*kept, (self.name, self.value))
        return None if changed == variant.environment else replace(variant, environment=changed)


def _with(variant: Variant, words: tuple[str, ...]) -> Variant | None:
    return None if words == variant.arguments else replace(variant, arguments=words)


def applied(edit: Iterable[Change], variant: Variant, table: Table) -> Variant | None:
    """Return the variant after all changes; None where one of them does not apply."""
    for change in edit:
        after = change.apply(variant, table)
        if after is None:
            return None
        variant = after
    return variant


def text(edit: Edit) -> str:
    """Return an edit in words."""
    return ", ".join(change.text for change in edit[:-1]) + (" and " if edit[:-1] else "") + edit[-1].text


def loss(edit: Edit) -> float:
    """Return how much of what was asked for an edit gives up."""
    return sum(change.loss for change in edit)
