"""The options of every release that is served, as committed facts, and what a release changed in them.

The files are taken from the releases' own parsers by `scripts/adopt-options`, so that a page can speak of a release
whose engine is not installed here.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.check.options import Options
from app.errors import Broken

DATA = Path(__file__).resolve().parents[2] / "data" / "options"
_POINTED = re.compile(r"--[a-z][a-z0-9-]*(?:=[\w.,:/-]+)?", re.IGNORECASE)
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+]{0,40}\Z")


@dataclass(frozen=True, slots=True)
class Released:
    """One option of a release. `instead` is the option that a deprecated one points to, "" where it names none."""

    names: tuple[str, ...]
    dest: str
    default: Any = None
    choices: tuple[str, ...] = ()
    deprecated: bool = False
    instead: str = ""

    @property
    def name(self) -> str:
        """Return the name that help shows first."""
        return self.names[0]


@dataclass(frozen=True, slots=True)
class Changed:
    """An option that both releases have, and what differs: texts of before and after."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class OptionChanges:
    """What one release changed in the options of the one before it.

    Shape: `removed`, `renamed` and `deprecated` have the option's name as `before` and as `after` what is to be written
           instead, "" where the releases name nothing. A renamed one has a name that the release before did not know.
    """

    added: tuple[Released, ...]
    removed: tuple[Changed, ...]
    renamed: tuple[Changed, ...]
    deprecated: tuple[Changed, ...]
    defaults: tuple[Changed, ...]
    choices: tuple[Changed, ...]


def kept(options: Options) -> tuple[Released, ...]:
    """Return of an engine's option table what is committed."""
    return tuple(
        Released(
            names=option.names,
            dest=option.dest,
            default=option.default,
            choices=option.choices,
            deprecated=option.deprecated,
            instead=option.instead if _POINTED.fullmatch(option.instead) else "",
        )
        for option in options
    )


def write(version: str, options: Iterable[Released], folder: Path = DATA) -> None:
    """Write the options of a release, one a line."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(_facts(option), ensure_ascii=False) for option in options)
    (folder / f"{version}.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def _facts(option: Released) -> dict[str, Any]:
    usual = Released((), "")
    facts = {name: getattr(option, name) for name in Released.__slots__}
    return {name: value for name, value in facts.items() if value != getattr(usual, name)}


@functools.lru_cache(maxsize=64)
def read(version: str, folder: Path = DATA) -> tuple[Released, ...] | None:
    """Return the options of a release; None where they are not known. Raises: Broken: the file is malformed."""
    path = folder / f"{version}.json"
    if not _VERSION.match(version) or not path.is_file():
        return None
    try:
        return tuple(map(_released, json.loads(path.read_text(encoding="utf-8"))))
    except (ValueError, TypeError, AttributeError) as error:
        raise Broken(f"{path.name} holds no options: {error}") from None


def _released(facts: dict[str, Any]) -> Released:
    lists: dict[str, Any] = {name: tuple(facts[name]) for name in ("names", "choices") if name in facts}
    return Released(**(facts | lists))


def changes(before: Sequence[Released], after: Sequence[Released]) -> OptionChanges:
    """Return what differs, each part by name. An option is the same where one of its names stayed."""
    old = {name: option for option in before for name in option.names}
    new = {name: option for option in after for name in option.names}
    setting = {option.dest: option.name for option in reversed(after) if not option.deprecated}
    gone = [option for option in before if not any(name in new for name in option.names)]
    instead = {o.name: o.instead or setting.get(o.dest, "") for o in gone}
    renamed = {o.name: setting[o.dest] for o in gone if o.dest in setting and setting[o.dest] not in old}
    both = [
        (old[name], option)
        for option in after
        if (name := next((n for n in option.names if n in old), None)) is not None
    ]
    added = [o for o in after if not any(name in old for name in o.names) and o.name not in renamed.values()]
    return OptionChanges(
        added=tuple(sorted(added, key=lambda option: option.name)),
        removed=_changed((name, name, told) for name, told in instead.items() if name not in renamed),
        renamed=_changed((name, name, successor) for name, successor in renamed.items()),
        deprecated=_changed((n.name, n.name, n.instead) for o, n in both if n.deprecated and not o.deprecated),
        defaults=_changed(
            (now.name, _text(was.default), _text(now.default))
            for was, now in both
            if was.default != now.default and not now.deprecated
        ),
        choices=_changed(
            (now.name, ", ".join(c for c in was.choices if c not in now.choices), ", ".join(_fresh(was, now)))
            for was, now in both
            if was.choices and now.choices and set(was.choices) != set(now.choices)
        ),
    )


def _fresh(was: Released, now: Released) -> list[str]:
    return [choice for choice in now.choices if choice not in was.choices]


def _changed(rows: Iterable[tuple[str, str, str]]) -> tuple[Changed, ...]:
    return tuple(Changed(*row) for row in sorted(rows))


def _text(value: Any) -> str:
    if value is None:
        return "not set"
    return json.dumps(value) if not isinstance(value, str) else value
