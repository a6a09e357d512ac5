"""A launch command as a value that can be changed option by option."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

from app.check import command as commands
from app.errors import BadInput
from app.triggers.runner import Launch

MODULE = "python -m sglang.launch_server"
MODEL_OPTIONS = ("--model-path", "--model")
OVERRIDE = "--json-model-override-args"


@dataclass(frozen=True, slots=True)
class Command:
    """A launch. `options` maps an option to its words, () for a flag; `gpus` 0: as many as it needs."""

    model: str
    hardware: str
    options: tuple[tuple[str, tuple[str, ...]], ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    packages: tuple[tuple[str, str], ...] = ()
    gpus: int = 0

    def __str__(self) -> str:
        words = [f"{name}={shlex.quote(value)}" for name, value in self.environment]
        words += [MODULE, "--model-path", shlex.quote(self.model)]
        for name, values in self.options:
            if len(values) == 1 and values[0].startswith("-"):
                words.append(f"{name}={shlex.quote(values[0])}")  # else argparse takes it for an option
            else:
                words += [name, *map(shlex.quote, values)]
        return " ".join(words)

    @classmethod
    def read(cls, text: str, hardware: str, gpus: int = 0) -> Self:
        """Read a pasted launch. Raises: BadInput: it is none, or it names no model."""
        launch = commands.read(text)
        model, options = "", {}
        words = list(launch.arguments)
        while words:
            name, equals, value = words.pop(0).partition("=")
            values = [value] if equals else []
            while words and not equals and not words[0].startswith("--"):
                values.append(words.pop(0))
            if name in MODEL_OPTIONS:
                model = "".join(values[:1])
            else:
                options[name] = tuple(values)
        if not model:
            raise BadInput("the command names no model")
        return cls(model, hardware, tuple(options.items()), launch.environment, gpus=gpus)

    def launch(self, *, short: bool = False) -> Launch:
        """Return it as the runner takes it."""
        return Launch(str(self), self.hardware, self.gpus, self.packages, short)

    def option(self, name: str) -> tuple[str, ...] | None:
        """Return the words of an option; None if it is not given."""
        return dict(self.options).get(name)

    def having(self, name: str, *words: str) -> Self:
        """Return the command with an option given so."""
        if self.option(name) is None:
            return replace(self, options=(*self.options, (name, words)))
        return replace(self, options=tuple((n, words if n == name else w) for n, w in self.options))

    def lacking(self, name: str) -> Self:
        """Return the command without an option."""
        return replace(self, options=tuple(entry for entry in self.options if entry[0] != name))

    def setting(self, variable: str, value: str) -> Self:
        """Return the command with an environment variable."""
        return replace(self, environment=tuple({**dict(self.environment), variable: value}.items()))

    def overriding(self, key: str, value: object) -> Self:
        """Return the command with a field of the model's configuration replaced, by SGLang's own option for that."""
        return self.having(OVERRIDE, json.dumps({**_fields(self.option(OVERRIDE)), key: value}))

    def joined(self, other: Self) -> Self:
        """Return the command with what another has and this one lacks."""
        options = {**dict(other.options), **dict(self.options)}
        environment = {**dict(other.environment), **dict(self.environment)}
        return replace(self, options=tuple(options.items()), environment=tuple(environment.items()))

    def shared(self, others: Iterable[Self]) -> Self:
        """Return the command with only what all others, which are smaller ones, have too."""
        options, environment, packages = dict(self.options), dict(self.environment), dict(self.packages)
        for other in others:
            fields = _fields(options.get(OVERRIDE)), _fields(other.option(OVERRIDE))
            options = {n: w for n, w in options.items() if other.option(n) is not None}
            if OVERRIDE in options:
                both = {key: value for key, value in fields[0].items() if key in fields[1]}
                options[OVERRIDE] = (json.dumps(both),)
            environment = {n: v for n, v in environment.items() if n in dict(other.environment)}
            packages = {n: v for n, v in packages.items() if n in dict(other.packages)}
        if not _fields(options.get(OVERRIDE)):
            options.pop(OVERRIDE, None)
        return replace(
            self,
            options=tuple(options.items()),
            environment=tuple(environment.items()),
            packages=tuple(packages.items()),
        )

    def smaller(self) -> Iterator[Self]:
        """Yield the command with one thing less, each."""
        for name, words in self.options:
            yield self.lacking(name)
            if name == OVERRIDE and len(fields := _fields(words)) > 1:
                for key in fields:
                    yield self.having(OVERRIDE, json.dumps({k: v for k, v in fields.items() if k != key}))
        for variable, _ in self.environment:
            yield replace(self, environment=tuple(e for e in self.environment if e[0] != variable))
        for package, _ in self.packages:
            yield replace(self, packages=tuple(p for p in self.packages if p[0] != package))


def _fields(words: tuple[str, ...] | None) -> dict[str, Any]:
    """Return the configuration's fields that the words of OVERRIDE replace."""
    fields = json.loads(words[0]) if words else {}
    return fields if isinstance(fields, dict) else {}
