"""What an error is about: the settings that it names, how surely, and the values that stand beside them. Pure.

SGLang's text and conditions are read as text; which words are settings and values is the release's own option table.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from app.check.fixes.advice import Advice
from app.check.fixes.arguments import Given
from app.check.options import Options
from app.check.protocol import Error, Option

SURE, NAMED, CONDITION, ADVISED, WORDS, NEARBY, PART = 0.0, 0.1, 0.2, 0.4, 0.5, 0.8, 1.0
"""How doubtful a clue is: an option's name in the message, its field there, in the condition, ... a part of it."""

NUMBERS_LIMIT = 8
FRAMES = 4
_FLAG = re.compile(r"(?<![\w-])--[A-Za-z][\w-]*")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?![\w])")
_QUOTED = re.compile(r"['\"`]([\w./+-]{1,60})['\"`]")
_CODE = re.compile(r"`([^`\n]{2,200})`")
_DIRECTION = re.compile(r"(?:(?P<up>rais|increas|enlarg)|reduc|lower|decreas)(?:e|ing)?\s+(?:the\s+)?\Z", re.IGNORECASE)
_AFFIXES = {
    "enable",
    "disable",
    "size",
    "mode",
    "backend",
    "path",
    "algorithm",
    "num",
    "max",
    "static",
    "type",
    "config",
}
_VARIABLE = re.compile(r"\b((?:SGLANG|SGL|FLASHINFER|DG)_[A-Z0-9_]{2,80})\b(?:\s*=\s*['\"]?([\w.-]{1,40}))?")


@dataclass(slots=True)
class Mention:
    """A setting that an error is about.

    Shape: `values` are named for it, in the order in which they should be tried; `direction` is 1 where the error says
    to raise it, -1 where it says to lower it.
    """

    option: Option
    doubt: float
    values: list[str] = field(default_factory=list)
    direction: int = 0

    def note(self, doubt: float, values: Sequence[str] = ()) -> None:
        """Take a further clue into account."""
        self.doubt = min(self.doubt, doubt)
        self.values += [value for value in values if value not in self.values]


@dataclass(frozen=True, slots=True)
class Clues:
    """Everything that was read off an error. `numbers` and `quoted` stand in its message, `variables` too."""

    mentions: Mapping[str, Mention]
    numbers: tuple[float, ...]
    quoted: tuple[str, ...]
    variables: tuple[tuple[str, str], ...]
    text: str


def clues(error: Error, options: Options, given: Sequence[Given], advice: Advice | None) -> Clues:
    """Return the clues of an error, met by a launch that gives `given`."""
    reader = _Reader(options, {one.key for one in given})
    message = error.message
    reader.flags(message, SURE)
    reader.identifiers(message, NAMED)
    reader.code(error.condition, CONDITION)
    reader.code(error.statement, CONDITION)
    for distance, guard in enumerate(reversed(error.guards)):
        reader.code(guard, CONDITION + 0.15 * min(distance, 6))
    if advice is not None:
        for flag in advice.flags:
            reader.flag(flag, ADVISED)
        for place, solution in enumerate(advice.solutions):
            for span in _CODE.findall(solution):
                reader.flags(span, ADVISED + 0.1 * min(place, 4), beside=True)
    reader.phrases(message, WORDS)
    reader.given_values(message, given, CONDITION)
    for frame in error.frames[-FRAMES:-1]:
        reader.code(frame.statement, NEARBY)
        reader.parts(frame.function, PART + 0.2)
    reader.parts(f"{error.function} {message}", PART)
    reader.choices(message)
    return Clues(
        reader.mentions,
        tuple(dict.fromkeys(_numbers(message)))[:NUMBERS_LIMIT],
        tuple(dict.fromkeys(_QUOTED.findall(message))),
        tuple((name, value) for name, value in _VARIABLE.findall(message)),
        f"{message} {error.condition} {' '.join(error.guards[-3:])} {error.statement}",
    )


def _numbers(message: str) -> Iterator[float]:
    for found in _NUMBER.findall(_VARIABLE.sub("", message)):
        yield float(found.replace(",", ""))


class _Reader:
    """Collects mentions. Which words are settings is the option table's matter."""

    def __init__(self, options: Options, given: set[str]) -> None:
        self._options = options
        self._given = given
        self.mentions: dict[str, Mention] = {}

    def note(self, option: Option, doubt: float, values: Sequence[str] = ()) -> None:
        """Note that an option is concerned."""
        if (known := self.mentions.get(option.dest)) is None:
            known = self.mentions[option.dest] = Mention(self._options.setting(option.dest) or option, doubt)
        known.note(doubt, values)

    def flag(self, name: str, doubt: float) -> None:
        """Note an option by its name."""
        if (option := self._options.named(name.rstrip("-"))) is not None:
            self.note(option, doubt)

    def flags(self, text: str, doubt: float, *, beside: bool = False) -> None:
        """Note the options that are named in `text`, with the value after the name where one is written.

        Shape: in prose the word after a name is a value only where "=" joins them; `beside` reads code.
        """
        for found in _FLAG.finditer(text):
            option = self._options.named(found[0].rstrip("-"))
            if option is None:
                continue
            after = re.match(r"=['\"]?([\w.+-]+)" if not beside else r"[= ]([\w.+-]+)", text[found.end() :])
            value = after[1].rstrip(".") if after and option.nargs != "0" and not after[1].startswith("-") else ""
            self.note(option, doubt, [value] if value else [])
            if (said := _DIRECTION.search(text[max(0, found.start() - 24) : found.start()])) is not None:
                self.mentions[option.dest].direction = 1 if said["up"] else -1

    def identifiers(self, text: str, doubt: float) -> None:
        """Note the fields of options that are written in `text`."""
        for found in _IDENTIFIER.finditer(text):
            attribute = text[max(0, found.start() - 1) : found.start()] == "."
            self._field(found[0], doubt, attribute=attribute)

    def _field(self, word: str, doubt: float, *, attribute: bool) -> str:
        """Note a field, also where more words stand before its name (`attn_tp_size`). Returns its setting."""
        if ("_" in word or attribute) and (option := self._options.setting(word)) is not None:
            self.note(option, doubt)
            return option.dest
        _, _, rest = word.lstrip("_").partition("_")
        while "_" in rest:
            if (option := self._options.setting(rest)) is not None:
                self.note(option, doubt + 0.3)
                return option.dest
            _, _, rest = rest.partition("_")
        return ""

    def code(self, text: str, doubt: float) -> None:
        """Note the fields in a piece of Python, and the constants that it compares them with."""
        if not text:
            return
        self.identifiers(text, doubt)
        for tree in _trees(text):
            for node in ast.walk(tree):
                if isinstance(node, ast.Compare):
                    self._compared(node, doubt)

    def _compared(self, node: ast.Compare, doubt: float) -> None:
        sides = [node.left, *node.comparators]
        constants = [text for side in sides for text in _constants(side)]
        for side in sides:
            for name in _names(side):
                dest = self._field(name, doubt, attribute=True)
                if dest and constants and not isinstance(side, ast.BinOp):  # else it is a remainder, a sum, ...
                    self.mentions[dest].note(doubt, constants)

    def phrases(self, text: str, doubt: float) -> None:
        """Note the options whose name is written in words ("page size")."""
        words = f" {' '.join(_words(text))} "
        for option in self._options:
            spoken = option.dest.replace("_", " ")
            if " " in spoken and f" {spoken} " in words:
                self.note(option, doubt)

    def given_values(self, message: str, given: Sequence[Given], doubt: float) -> None:
        """Note the options of the command whose value is a word of the message (`DeepEP is not installed`)."""
        words = set(_words(message, "_"))
        for one in given:
            if one.option is not None and any(
                len(v) > 2 and not v.isdigit() and v.lower() in words for v in one.values
            ):
                self.note(one.option, doubt)

    def parts(self, text: str, doubt: float) -> None:
        """Note the options of the command of whose name the telling words are in `text`."""
        words = f" {' '.join(_words(text))} "
        for option in self._options:
            if option.dest in self._given:
                telling = [word for word in option.dest.split("_") if word not in _AFFIXES and len(word) > 1]
                if telling and (f" {' '.join(telling)} " in words or f" {telling[0]} " in words):
                    self.note(option, doubt + (0.0 if f" {' '.join(telling)} " in words else 0.3))

    def choices(self, message: str) -> None:
        """Note the choices of the concerned options that the message names."""
        words = {found[0]: None for found in re.finditer(r"[A-Za-z][\w.-]*\w|\w", message)}
        for mention in self.mentions.values():
            mention.note(mention.doubt, [choice for choice in words if choice in mention.option.choices])


def _words(text: str, also: str = "") -> list[str]:
    return [word for word in re.split(rf"[^A-Za-z0-9{also}]+", text.lower()) if word]


@functools.lru_cache(maxsize=512)
def _trees(text: str) -> tuple[ast.AST, ...]:
    """Return the expression or statement that `text` is; a first line alone is completed as far as that is easy."""
    for whole in (text, f"{text}\n    pass", text.removeprefix("el") + "\n    pass"):
        try:
            return (ast.parse(whole.strip()),)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return ()


def _names(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute):
            yield part.attr
        elif isinstance(part, ast.Name):
            yield part.id


def _constants(node: ast.AST) -> Iterator[str]:
    """Yield the values written in one side of a comparison: constants, lists of them, members of an enumeration."""
    if (
        isinstance(node, ast.Constant)
        and isinstance(node.value, (str, int, float))
        and not isinstance(node.value, bool)
    ):
        yield str(node.value)
    elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        for part in node.elts:
            yield from _constants(part)
    elif isinstance(node, ast.Attribute) and node.attr.isupper():
        yield node.attr.lower()
