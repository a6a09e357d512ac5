"""A launch's argument list as options with their values, read with the release's own option table. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.check.options import Options
from app.check.protocol import Option

_NUMBER = re.compile(r"-\d+(?:\.\d+)?|-\.\d+")
_SHORT = re.compile(r"-[A-Za-z]\Z")


@dataclass(frozen=True, slots=True)
class Given:
    """One option as a command gives it.

    Shape: `name` as it is written, "" for words that belong to no option; `option` is None where the release has none
    of that name; the words stand at `start` to `end` of the argument list; `joined` says `--name=value`.
    """

    name: str
    values: tuple[str, ...]
    option: Option | None
    start: int
    end: int
    joined: bool = False

    @property
    def key(self) -> str:
        """Return what two ways of giving the same setting have in common."""
        return self.option.dest if self.option else self.name or " ".join(self.values)


def given(arguments: Sequence[str], options: Options) -> tuple[Given, ...]:
    """Return what `arguments` give, in order, dividing the words as argparse would."""
    return tuple(_given(arguments, options))


def _given(arguments: Sequence[str], options: Options) -> Iterator[Given]:
    i = 0
    while i < len(arguments):
        word = arguments[i]
        if not is_name(word):
            yield Given("", (word,), None, i, i + 1)
            i += 1
            continue
        head, equals, tail = word.partition("=")
        option = options.named(head)
        if equals:
            yield Given(head, (tail,), option, i, i + 1, joined=True)
            i += 1
            continue
        end = i + 1 + _taken(arguments[i + 1 :], option)
        yield Given(word, tuple(arguments[i + 1 : end]), option, i, end)
        i = end


def is_name(word: str) -> bool:
    """Say whether a word is the name of an option rather than a value."""
    return word.startswith("-") and len(word) > 1 and not _NUMBER.fullmatch(word) and " " not in word


def _taken(words: Sequence[str], option: Option | None) -> int:
    """Return how many of the words after an option's name are its values."""
    run = next((i for i, word in enumerate(words) if is_name(word)), len(words))
    if option is None or option.nargs in ("+", "*"):
        return run
    if option.nargs.isdigit():
        return min(run, int(option.nargs))
    return min(run, 1)


def find(arguments: Sequence[str], options: Options, key: str) -> Given | None:
    """Return the last way in which `arguments` give the setting `key`, which is the one that counts."""
    return next((one for one in reversed(given(arguments, options)) if one.key == key), None)


def without(arguments: Sequence[str], options: Options, key: str) -> tuple[str, ...]:
    """Return `arguments` without any option that gives the setting `key`."""
    gone = {i for one in given(arguments, options) if one.key == key for i in range(one.start, one.end)}
    return tuple(word for i, word in enumerate(arguments) if i not in gone)


def put(arguments: Sequence[str], options: Options, name: str, values: Sequence[str]) -> tuple[str, ...]:
    """Return `arguments` with the option `name` given once, with `values`: where it stood before, else at the end."""
    option = options.named(name)
    key = option.dest if option else name
    same = [one for one in given(arguments, options) if one.key == key]
    place = same[-1] if same else None
    keeps_name = place is not None and place.option is option
    head = place.name if place is not None and keeps_name else name
    joined = place is not None and keeps_name and place.joined and len(values) == 1
    words = [f"{head}={values[0]}"] if joined else [head, *values]
    gone = {i for one in same for i in range(one.start, one.end)}
    result: list[str] = []
    for i, word in enumerate(arguments):
        if place is not None and i == place.start:
            result += words
        if i not in gone:
            result.append(word)
    return tuple(result if place is not None else [*result, *words])
