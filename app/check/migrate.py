"""What another release's parser makes of a command's options, and the command rewritten for it. Pure.

Everything comes from the option tables of the releases: which names a field has, what is deprecated, what it points to.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from app.check.fixes.arguments import Given, given
from app.check.options import Options
from app.check.protocol import Option

What = Literal["removed", "deprecated", "value not accepted", "new"]
_POINTED = re.compile(r"(--[a-z][a-z0-9-]*)(?:=([\w.,:/-]+))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FlagChange:
    """What became of an option of the command. `instead` is what the release itself points to, "" where it does not."""

    flag: str
    what: What
    instead: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One edit of a migration: what stood there, what stands there now ("" where it was left out), and why."""

    before: str
    after: str
    why: str


def flag_changes(arguments: Sequence[str], old: Options, new: Options) -> tuple[FlagChange, ...]:
    """Return what differs between two releases in the options that `arguments` give, in their order."""
    found: dict[str, FlagChange] = {}
    for one in given(arguments, new):
        if one.name and (change := _change(one, old.named(one.name), one.option, new)) is not None:
            found.setdefault(one.name, change)
    return tuple(found.values())


def _change(one: Given, was: Option | None, now: Option | None, new: Options) -> FlagChange | None:
    if now is None:
        if was is None:
            return None
        successor = new.setting(was.dest)
        return FlagChange(one.name, "removed", was.instead or (successor.names[0] if successor else ""))
    if was is None:
        return FlagChange(one.name, "new")
    if now.deprecated and not was.deprecated:
        return FlagChange(one.name, "deprecated", now.instead)
    refused = [value for value in one.values if now.choices and value not in now.choices]
    if refused and all(value in was.choices for value in refused):
        return FlagChange(f"{one.name} {' '.join(refused)}", "value not accepted")
    return None


def migrated(
    arguments: Sequence[str], older: Sequence[Options], target: Options, *, deprecated: bool = True
) -> tuple[tuple[str, ...], tuple[Step, ...]]:
    """Return `arguments` in the words of `target`, and the steps from one to the other.

    Shape: `older` are the tables of releases before it, oldest first: they say what an option meant that `target` no
           longer has. Deprecated ones are replaced too unless `deprecated` is false.
    """
    words: list[str] = []
    steps: list[Step] = []
    for one in given(arguments, target):
        before = tuple(arguments[one.start : one.end])
        after = before
        if one.name and one.option is None:
            after = _of_missing(one, older, target)
        elif one.option is not None and one.option.deprecated and deprecated:
            after = _of_deprecated(one, one.option, target)
        if after != before:
            steps.append(Step(" ".join(before), " ".join(after), _why(one, target)))
        words += after
    return tuple(words), tuple(steps)


def _why(one: Given, target: Options) -> str:
    if one.option is None:
        return f"{target.version} has no {one.name}"
    return f"{one.name} is deprecated in {target.version}"


def _of_missing(one: Given, older: Sequence[Options], target: Options) -> tuple[str, ...]:
    """Return the words for an option that `target` lacks; none where no option took its place."""
    for table in reversed(older):
        meant = table.named(one.name)
        if meant is None:
            continue
        # The older table says which of the words after a name were its values.
        values = given([one.name, *one.values], table)[0].values
        others = one.values[len(values) :]
        pointed = _pointed(meant, values, target) if meant.deprecated else None
        successor = target.setting(meant.dest)
        if pointed is None and successor is not None and _fits(meant, values, successor):
            pointed = (successor.names[0], *values)
        return (*(pointed or ()), *others)
    return _written(one)


def _of_deprecated(one: Given, option: Option, target: Options) -> tuple[str, ...]:
    """Return the words that `target` points to; the option as it is where it points to none that fits."""
    return _pointed(option, one.values, target) or _written(one)


def _written(one: Given) -> tuple[str, ...]:
    return (f"{one.name}={one.values[0]}",) if one.joined else (one.name, *one.values)


def _pointed(option: Option, values: Sequence[str], target: Options) -> tuple[str, ...] | None:
    """Return what a deprecated option says to write instead, if `target` has that and it takes the same values."""
    told = _POINTED.fullmatch(option.instead.strip())
    successor = target.named(told[1]) if told else None
    if told is None or successor is None or successor.deprecated:
        return None
    if told[2] is not None:
        return (f"{told[1]}={told[2]}",) if not values else None
    return (told[1], *values) if _fits(option, values, successor) else None


def _fits(old: Option, values: Sequence[str], new: Option) -> bool:
    """Say whether an option takes the values of another: as many of them, and these."""
    if (old.nargs == "0") != (new.nargs == "0"):
        return False
    return not new.choices or all(value in new.choices for value in values)
