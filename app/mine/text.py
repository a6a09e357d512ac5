"""Message texts while they are still symbolic: literals, holes and references that another file may answer.

One expression can have several texts (`"a" if x else "b"`, a variable that two branches assign). A `Text` holds
the general form, in which the part that varies is a hole, and the bounded list of alternatives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from app.mine.model import Template

MAX_ALTERNATIVES = 8
MAX_CHARACTERS = 20_000
SHARED_LETTERS = 10  # what alternatives have in common stands for them only if it says that much


@dataclass(frozen=True, slots=True)
class Hole:
    """An expression whose value is known at run time only."""

    text: str


@dataclass(frozen=True, slots=True)
class Parameter(Hole):
    """A hole that is a parameter of the enclosing function, for which a caller has the text."""


@dataclass(frozen=True, slots=True)
class Reference(Hole):
    """A module constant or class attribute: `target` is its dotted name."""

    target: str

    @property
    def is_constant(self) -> bool:
        """Tell whether it is spelled like a constant."""
        return self.target.rpartition(".")[2].isupper()


@dataclass(frozen=True, slots=True)
class Call(Hole):
    """A call of a function of the same package that may return text, or a fresh exception."""

    target: str
    args: tuple[Text, ...] = ()
    keywords: tuple[tuple[str, Text], ...] = ()


class Number(str):
    """The literal text of a constant that is no string, which `repr` puts in no quotes."""

    __slots__ = ()


Part = str | Hole
Parts = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """What an expression can read as: `alternatives` is never empty and is (`general`,) where there is only one."""

    general: Parts
    alternatives: tuple[Parts, ...]

    @property
    def literal(self) -> str | None:
        """Return the text where it is wholly known."""
        if len(self.alternatives) == 1 and all(isinstance(part, str) for part in self.general):
            return "".join(str(part) for part in self.general)
        return None

    @property
    def spelled(self) -> bool:
        """Tell whether any part of any alternative is written as a string."""
        return any(_is_string(part) for parts in self.alternatives for part in parts)

    @property
    def known(self) -> bool:
        """Tell whether any part of any alternative is written as a string, or a constant by its name."""
        return any(
            _is_string(part) or (isinstance(part, Reference) and part.is_constant)
            for parts in self.alternatives
            for part in parts
        )


def _is_string(part: Part) -> bool:
    return isinstance(part, str) and not isinstance(part, Number) and bool(part)


def one(*parts: Part) -> Text:
    """Return the text that has one form only."""
    return Text(parts, (parts,))


def hole(source: str) -> Text:
    """Return the text of which nothing is known."""
    return one(Hole(source))


def concatenated(texts: Iterable[Text]) -> Text:
    """Return the texts one after another; of more combinations than the limit the first are kept."""
    general: Parts = ()
    alternatives: tuple[Parts, ...] = ((),)
    single = True
    for text in texts:
        general += text.general
        if len(text.alternatives) == 1:
            tail = text.alternatives[0]
            alternatives = tuple(head + tail for head in alternatives)
        else:
            single = False
            alternatives = tuple(head + tail for head in alternatives for tail in text.alternatives)[:MAX_ALTERNATIVES]
    return Text(general, (general,)) if single else Text(general, alternatives)


def either(texts: Iterable[Text], name: str) -> Text:
    """Return the text that is one of `texts`; what all of them begin and end with stays, the rest is a hole."""
    texts = list(texts)
    alternatives = tuple(dict.fromkeys(parts for text in texts for parts in text.alternatives))[:MAX_ALTERNATIVES]
    if len(alternatives) == 1:
        return one(*alternatives[0])
    return Text(_shared(alternatives, name), alternatives)


def varied(general: Parts, texts: Iterable[Text]) -> Text:
    """Return the text with this general form and the alternatives of `texts`.

    A general form that says nothing is worked out anew, since the alternatives may have become known meanwhile.
    """
    alternatives = tuple(dict.fromkeys(parts for text in texts for parts in text.alternatives))[:MAX_ALTERNATIVES]
    if len(alternatives) == 1:
        return one(*alternatives[0])
    if len(general) == 1 and isinstance(general[0], Hole):
        return Text(_shared(alternatives, general[0].text), alternatives)
    return Text(general, alternatives)


def _shared(alternatives: tuple[Parts, ...], name: str) -> Parts:
    flat = [_joined(parts) for parts in alternatives]
    shortest = min(flat, key=lambda parts: (len(parts), _letters(parts)))
    if _letters(shortest) >= SHARED_LETTERS and all(_begins(parts, shortest) for parts in flat):
        return tuple(shortest)  # the others are this one with something added
    head: list[Part] = []
    for column in zip(*flat, strict=False):
        if any(part != column[0] for part in column):
            if all(isinstance(part, str) for part in column):
                common = _common_prefix([str(part) for part in column])
                head.append(common[: common.rfind(" ") + 1])
            break
        head.append(column[0])
    return (*head, Hole(name)) if _letters(head) >= SHARED_LETTERS else (Hole(name),)


def _letters(parts: list[Part]) -> int:
    return sum(len(part) for part in parts if isinstance(part, str))


def _begins(parts: list[Part], base: list[Part]) -> bool:
    count = len(base) - 1
    if len(parts) < len(base) or parts[:count] != base[:count]:
        return False
    last, own = parts[count], base[count]
    return last == own or (isinstance(last, str) and isinstance(own, str) and last.startswith(own))


def _common_prefix(texts: list[str]) -> str:
    low, high = min(texts), max(texts)
    count = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    return low[:count]


def _joined(parts: Parts) -> list[Part]:
    """Return the parts with neighbouring literals made one."""
    joined: list[Part] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        else:
            joined.append(part)
    return joined


def template_of(parts: Parts) -> Template:
    """Return the finished template; literals are cut where a hostile source made them huge."""
    pieces = [""]
    room = MAX_CHARACTERS
    for part in parts:
        if isinstance(part, str):
            pieces[-1] += part[:room]
            room -= min(room, len(part))
        else:
            pieces += [part.text, ""]
    return Template(tuple(pieces))


_MARK = re.compile("\x00(\\d+)\x00")


def mapped(text: Text, change: Callable[[str], str]) -> Text:
    """Return the text with a string function applied, its holes standing as opaque characters."""

    def changed(parts: Parts) -> Parts:
        holes: list[Hole] = []
        flat = ""
        for part in parts:
            if isinstance(part, str):
                flat += part.replace("\x00", "\ufffd")
            else:
                flat += f"\x00{len(holes)}\x00"
                holes.append(part)
        pieces = _MARK.split(change(flat))
        return tuple(holes[int(piece)] if i % 2 else piece for i, piece in enumerate(pieces))

    return Text(changed(text.general), tuple(changed(parts) for parts in text.alternatives))
