"""The Markdown half of a curated file: fixed headings, each with one shape of content."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from app.records.model import Body

HEADINGS = (
    "## Meaning",
    "## Trigger",
    "## Situations",
    "## Solutions",
    "## Defence",
    "### Strategy",
    "### Code",
    "### Prevention",
    "## Not verified",
)
OPTIONAL = frozenset({"## Not verified"})
_NUMBERED = re.compile(r"(\d+)\. +(?=\S)")
_BULLET = re.compile(r"[-*] +(?=\S)")
_CODE_FENCE = re.compile(r"\s*(```+|~~~+)")


class BodyError(ValueError):
    """A heading or what stands under it is not as it should be."""


@dataclass(slots=True)
class _Section:
    heading: str
    line: int
    lines: list[str] = field(default_factory=list)


def body(text: str, offset: int = 0) -> Body:
    """Parse the body. `offset` lines of the file stand before it.

    Raises: BodyError: names the heading, the line and what would be right.
    """
    sections = _sections(text, offset)
    _check_order(sections)
    by_heading = {section.heading: section for section in sections}
    values: dict[str, Any] = {}
    for heading, (name, parse) in _PARSERS.items():
        if heading in by_heading:
            values[name] = parse(by_heading[heading])
    if any(line.strip() for line in by_heading["## Defence"].lines):
        raise BodyError("## Defence: text belongs under ### Strategy, ### Code or ### Prevention")
    return Body(**values)


def _sections(text: str, offset: int) -> list[_Section]:
    sections: list[_Section] = []
    fence = ""
    for number, line in enumerate(text.split("\n"), start=offset + 1):
        opened = _CODE_FENCE.match(line)
        if opened and (not fence or opened[1].startswith(fence)):
            fence = "" if fence else opened[1]
        if not fence and line.startswith("#"):
            heading = line.rstrip()
            if heading not in HEADINGS:
                raise BodyError(f"line {number}: {heading!r} is no heading of a record; they are {', '.join(HEADINGS)}")
            sections.append(_Section(heading, number))
        elif sections:
            sections[-1].lines.append(line.rstrip())
        elif line.strip():
            raise BodyError(f"line {number}: text before '## Meaning'")
    if fence:
        raise BodyError(f"a code block opened with {fence} is not closed")
    return sections


def _check_order(sections: list[_Section]) -> None:
    found = [section.heading for section in sections]
    for heading in HEADINGS:
        if found.count(heading) > 1:
            raise BodyError(f"{heading}: the heading stands there {found.count(heading)} times")
        if heading not in found and heading not in OPTIONAL:
            raise BodyError(f"{heading}: the heading is missing")
    wanted = [heading for heading in HEADINGS if heading in found]
    for section, heading in zip(sections, wanted, strict=True):
        if section.heading != heading:
            raise BodyError(f"line {section.line}: {section.heading!r} stands where {heading!r} is expected")


def _prose(section: _Section) -> str:
    return _filled(_folded(section.lines), section)


def _phrase(section: _Section) -> str:
    phrase = _prose(section)
    if "\n" in phrase or len(phrase) > 80:
        raise BodyError(f"{section.heading} (line {section.line}): one word or phrase, at most 80 characters")
    return phrase


def _bullets(section: _Section) -> list[str]:
    return [text for _, text in _items(section, _BULLET, "- ")]


def _numbered(section: _Section) -> list[str]:
    items = _items(section, _NUMBERED, "1. ")
    for expected, (marker, _) in enumerate(items, start=1):
        if marker.split(".")[0] != str(expected):
            raise BodyError(f"{section.heading} (line {section.line}): item {marker.strip()!r} should be '{expected}.'")
    return [text for _, text in items]


def _items(section: _Section, marker: re.Pattern[str], shown: str) -> list[tuple[str, str]]:
    """Return (marker, text) of each item; a line that begins with no marker continues the item before it."""
    items: list[tuple[str, list[str]]] = []
    fence = False
    for line in section.lines:
        found = None if fence else marker.match(line)
        if found:
            items.append((found[0], [line[found.end() :]]))
        elif items:
            items[-1][1].append(line)
        elif line.strip():
            raise BodyError(f"{section.heading} (line {section.line}): every item begins with {shown!r}: {line[:50]!r}")
        fence ^= bool(_CODE_FENCE.match(line))
    if not items:
        raise BodyError(f"{section.heading} (line {section.line}): at least one item that begins with {shown!r}")
    return [(mark, _filled(_folded(lines), section)) for mark, lines in items]


def _code(section: _Section) -> str:
    lines = "\n".join(section.lines).strip("\n").split("\n")
    closed = len(lines) > 2 and lines[0] == "```python" and lines[-1] == "```" and "```" not in lines[1:-1]
    if not closed:
        raise BodyError(f"{section.heading} (line {section.line}): exactly one block fenced by ```python and ```")
    return "\n".join(lines[1:-1])


def _folded(lines: list[str]) -> str:
    """Return the lines with soft breaks folded: paragraphs stay apart, code blocks stay as they are."""
    paragraphs: list[str] = []
    current: list[str] = []
    code: list[str] = []
    for line in lines:
        if _CODE_FENCE.match(line) or code:
            code.append(line)
            if len(code) > 1 and _CODE_FENCE.match(line):
                paragraphs += [" ".join(current)] * bool(current) + ["\n".join(_dedented(code))]
                current, code = [], []
        elif line.strip():
            current.append(line.strip())
        elif current:
            paragraphs.append(" ".join(current))
            current = []
    return "\n\n".join(paragraphs + [" ".join(current)] * bool(current))


def _dedented(code: list[str]) -> list[str]:
    indent = len(code[0]) - len(code[0].lstrip())
    return [line[min(indent, len(line) - len(line.lstrip())) :] for line in code]


def _filled(text: str, section: _Section) -> str:
    if not text:
        raise BodyError(f"{section.heading} (line {section.line}): there is no text under it")
    return text


_PARSERS: dict[str, tuple[str, Callable[[_Section], Any]]] = {
    "## Meaning": ("meaning", _prose),
    "## Trigger": ("trigger", _prose),
    "## Situations": ("situations", _bullets),
    "## Solutions": ("solutions", _numbered),
    "### Strategy": ("strategy", _phrase),
    "### Code": ("code", _code),
    "### Prevention": ("prevention", _bullets),
    "## Not verified": ("not_verified", _prose),
}
