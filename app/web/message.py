"""A message as a page shows it: literal text, holes, what a search found and what the reader saw."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

# A reader's values come back in the address of a record page: ?v[{hole}]=text. Identify writes such addresses.
MAX_VALUES = 24
MAX_HOLE_LENGTH = 300
MAX_VALUE_LENGTH = 600
_PARAMETER = re.compile(r"v\[(.+)\]", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of a message. A hole keeps its braces in `text`; `value` is what the reader's own message has there."""

    text: str
    hole: bool = False
    hit: bool = False
    value: str | None = None

    @property
    def expression(self) -> str:
        """Return the expression of a hole."""
        return self.text[1:-1]


def segments(
    parts: Sequence[str], *, hits: Sequence[tuple[int, int]] = (), values: Mapping[str, str] | None = None
) -> tuple[Segment, ...]:
    """Return the runs of a message whose `parts` are literal, hole, literal, ...

    Shape: `hits` are (start, end) in the text with braces, in order and apart; `values` maps "{hole}" to a text.
    """
    found: list[Segment] = []
    at = 0
    for index, part in enumerate(parts):
        hole = index % 2 == 1
        text = "{" + part + "}" if hole else part
        if hole:
            value = values.get(text) if values else None
            touched = any(start < at + len(text) and end > at for start, end in hits)
            found.append(Segment(text, hole=True, hit=touched, value=value))
        elif text:
            found.extend(_marked(text, at, hits))
        at += len(text)
    return tuple(found)


def reader_values(query: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the values of holes that an address carries, as {"{hole}": text}.

    They are the reader's own text: cut to size, without control characters, and escaped where they are shown.
    """
    values: dict[str, str] = {}
    for name, value in query:
        match = _PARAMETER.fullmatch(name)
        if match is None or len(match[1]) > MAX_HOLE_LENGTH or len(values) >= MAX_VALUES:
            continue
        hole = match[1] if match[1].startswith("{") else "{" + match[1] + "}"
        values[hole] = _CONTROL.sub("", value)[:MAX_VALUE_LENGTH]
    return values


def record_url(record_id: str, values: Mapping[str, str]) -> str:
    """Return the address of a record page that shows the reader's own values of the holes."""
    kept = [
        (f"v[{hole}]", value[:MAX_VALUE_LENGTH])
        for hole, value in list(values.items())[:MAX_VALUES]
        if len(hole) <= MAX_HOLE_LENGTH
    ]
    return f"/errors/{record_id}" + (f"?{urlencode(kept)}" if kept else "")


def _marked(text: str, at: int, hits: Sequence[tuple[int, int]]) -> list[Segment]:
    """Return a literal that starts at `at`, cut where hits begin and end."""
    pieces: list[Segment] = []
    done = 0
    for start, end in hits:
        low, high = max(start - at, done), min(end - at, len(text))
        if low >= high:
            continue
        if low > done:
            pieces.append(Segment(text[done:low]))
        pieces.append(Segment(text[low:high], hit=True))
        done = high
    if done < len(text):
        pieces.append(Segment(text[done:]))
    return pieces
