"""Does a text carry a template? Exact and linear: literals are searched leftmost, one after the other.

All texts here are in the form of `normal`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rapidfuzz import fuzz
from rapidfuzz.distance import Levenshtein

Kind = Literal["whole", "start", "nested", "inside", "cut", "headless", "damaged"]

_OPENERS = frozenset(":>-([{=,;]")
_WINDOW = 2_000
_MIN_RATIO = 78.0


@dataclass(frozen=True, slots=True)
class Fit:
    """How a text carries a template.

    Shape: `kind`: the whole text; its start; after a colon or bracket; anywhere; cut off in the template; without the
    template's beginning; with differing characters. `covered` of `total` literal characters were found; `start` and
    `end` bound the find; `holes` are (start, end) of what fills each hole, (0, 0) where it is lost; `likeness` is 1
    unless damaged.
    """

    kind: Kind
    covered: int
    total: int
    start: int
    end: int
    holes: tuple[tuple[int, int], ...]
    likeness: float = 1.0


def fits(literals: tuple[str, ...], text: str) -> bool:
    """Return whether the text is the template with its holes filled: what `re.fullmatch` with `.*` would say."""
    if len(literals) == 1:
        return text == literals[0]
    first, last = literals[0], literals[-1]
    if not text.startswith(first):
        return False
    at = len(first)
    for literal in literals[1:-1]:
        at = text.find(literal, at)
        if at < 0:
            return False
        at += len(literal)
    return len(text) - len(last) >= at and text.endswith(last)


def fit(literals: tuple[str, ...], text: str) -> Fit | None:
    """Return how the text carries the template without a differing character, None where it does not."""
    total = sum(map(len, literals))
    if not total or not text:
        return None
    if fits(literals, text):
        return _whole(literals, text, total)
    first = literals[0]
    if text.startswith(first):
        found = _chain(literals, text, 0, total)
        if found is not None:
            return found
    if first:
        at = text.find(first, 1)
        if at >= 0:
            return _chain(literals, text, at, total)
        return _cut_in_first(literals, text, total) or _headless(literals, text, total)
    return None


def _whole(literals: tuple[str, ...], text: str, total: int) -> Fit:
    at, holes = len(literals[0]), []
    for literal in literals[1:-1]:
        found = text.find(literal, at)
        holes.append((at, found))
        at = found + len(literal)
    if len(literals) > 1:
        holes.append((at, len(text) - len(literals[-1])))
    return Fit("whole", total, total, 0, len(text), tuple(holes))


def _chain(literals: tuple[str, ...], text: str, start: int, total: int) -> Fit | None:
    """Follow the literals from `start`, where the first one stands."""
    at, covered = start + len(literals[0]), len(literals[0])
    holes: list[tuple[int, int]] = []
    for n, literal in enumerate(literals[1:], 1):
        if not literal and n == len(literals) - 1:
            holes.append((at, len(text)))
            at = len(text)
            continue
        found = text.find(literal, at)
        if found < 0:
            tail = _overlap(text[at:], literal)
            covered += tail
            holes.append((at, len(text) - tail))
            holes += [(0, 0)] * (len(literals) - 1 - n)
            return Fit("cut", covered, total, start, len(text), tuple(holes)) if covered else None
        holes.append((at, found))
        at = found + len(literal)
        covered += len(literal)
    if start == 0:
        kind: Kind = "start"
    else:
        kind = "nested" if text[start - 1] in _OPENERS else "inside"
        if len(literals) > 1 and literals[0]:
            start, holes = _tightened(literals[0], text, start, holes)
    return Fit(kind, covered, total, start, at, tuple(holes))


def _tightened(first: str, text: str, start: int, holes: list[tuple[int, int]]) -> tuple[int, list[tuple[int, int]]]:
    """Move the first literal as far right as the second one allows: the shortest find, not the longest."""
    later = text.rfind(first, start, holes[0][1])
    return (later, [(later + len(first), holes[0][1]), *holes[1:]]) if later > start else (start, holes)


def _overlap(text: str, literal: str) -> int:
    """Return the length of the longest beginning of `literal` that ends `text`, from 1 less than all of it."""
    at = max(0, len(text) - len(literal) + 1)
    head = literal[:4]
    while (at := text.find(head, at)) >= 0:
        if literal.startswith(text[at:]):
            return len(text) - at
        at += 1
    return next(
        (size for size in range(min(3, len(literal) - 1, len(text)), 0, -1) if text.endswith(literal[:size])), 0
    )


def _tail_at_start(text: str, literal: str) -> int:
    """Return the length of the longest end of `literal`, from 8 on, that begins `text`."""
    head, at = text[:8], 1
    while len(head) == 8 and (at := literal.find(head, at)) >= 0:
        if text.startswith(literal[at:]):
            return len(literal) - at
        at += 1
    return 0


def _cut_in_first(literals: tuple[str, ...], text: str, total: int) -> Fit | None:
    """Return the fit of a text that ends in the first literal."""
    size = _overlap(text, literals[0])
    if size < min(8, len(text)):
        return None
    return Fit("cut", size, total, len(text) - size, len(text), ((0, 0),) * (len(literals) - 1))


def _headless(literals: tuple[str, ...], text: str, total: int) -> Fit | None:
    """Return the fit of a text that lost the template's beginning: a part of the first literal, or a short one."""
    first = literals[0]
    size = _tail_at_start(text, first)
    if size:
        if len(literals) == 1:
            return Fit("headless", size, total, 0, size, ())
        return _as_headless(_chain((first[-size:], *literals[1:]), text, 0, total))
    if len(literals) < 3 or len(first) * 3 > total:
        return None
    at = text.find(literals[1])
    if at < 0 or at > 120:
        return None
    found = _chain(literals[1:], text, at, total)
    if found is None:
        return None
    return Fit("headless", found.covered, total, 0, found.end, ((0, at), *found.holes))


def _as_headless(found: Fit | None) -> Fit | None:
    return found and Fit("headless", found.covered, found.total, found.start, found.end, found.holes)


def open_start(literals: tuple[str, ...], text: str) -> Fit | None:
    """Return the fit of a template that begins with a hole, anywhere in the text; None where it has a first literal."""
    total = sum(map(len, literals))
    if literals[0] or len(literals) < 2 or not literals[1]:
        return None
    at = text.find(literals[1])
    if at < 0:
        return None
    found = _chain(literals[1:], text, at, total)
    if found is None:
        return None
    begin = max(text.rfind(c, 0, at) for c in ":>[") + 1
    kind: Kind = found.kind if found.kind == "cut" else "start" if begin == 0 else "inside"
    return Fit(kind, found.covered, total, begin, found.end, ((begin, at), *found.holes))


def damaged(literals: tuple[str, ...], text: str) -> Fit | None:
    """Return how the text carries the template with some characters wrong; None where it says something else.

    A changed word is no damage: where one run of characters was put in another's place, the texts differ.
    """
    total = sum(map(len, literals))
    at, covered, weight = 0, 0, 0.0
    holes: list[tuple[int, int]] = []
    begin = -1
    for n, literal in enumerate(literals):
        if len(literal) < 4:
            # Too short to be searched for on its own: it is left to the hole.
            found = text.find(literal, at, at + _WINDOW) if literal else -1
            if n:
                holes.append((at, max(at, found)))
            if found >= 0:
                covered += len(literal)
                weight += len(literal)
                at = found + len(literal)
            continue
        rest = text[at : at + _WINDOW]
        if not rest:
            holes += [(0, 0)] * (len(literals) - 1 - len(holes))
            break
        piece = literal[: len(rest)] if len(rest) < len(literal) else literal
        alignment = fuzz.partial_ratio_alignment(piece, rest, score_cutoff=_MIN_RATIO)
        if alignment is None:
            cut = _damaged_end(literal, rest)
            if cut is None:
                if covered and n and len(rest) < 160 and covered * 2 > total:
                    holes += [(at, at + len(rest))] + [(0, 0)] * (len(literals) - 2 - len(holes))
                    break
                return None
            alignment_start, size, ratio = cut
            covered += size
            weight += size * ratio
            if n:
                holes.append((at, at + alignment_start))
            begin = at + alignment_start if begin < 0 else begin
            at = len(text)
            continue
        taken = rest[alignment.dest_start : alignment.dest_end]
        if _says_else(piece, taken):
            return None
        covered += len(piece)
        weight += len(piece) * alignment.score / 100
        if n:
            holes.append((at, at + alignment.dest_start))
        begin = at + alignment.dest_start if begin < 0 else begin
        at += alignment.dest_end
    if not covered:
        return None
    holes = holes[: len(literals) - 1] + [(0, 0)] * max(0, len(literals) - 1 - len(holes))
    likeness = weight / covered
    return Fit("damaged", covered, total, max(begin, 0), at, tuple(holes), likeness)


def _damaged_end(literal: str, rest: str) -> tuple[int, int, float] | None:
    """Return (where, how much, how like) of a literal's beginning at the end of the text."""
    if len(literal) < 10:
        return None
    head = literal[:10]
    alignment = fuzz.partial_ratio_alignment(head, rest, score_cutoff=_MIN_RATIO)
    if alignment is None:
        return None
    tail = rest[alignment.dest_start :]
    if len(tail) > len(literal) + 4:
        return None
    piece = literal[: len(tail)]
    ratio = fuzz.ratio(piece, tail)
    if ratio < _MIN_RATIO or _says_else(piece, tail):
        return None
    return alignment.dest_start, len(piece), ratio / 100


def _says_else(expected: str, found: str) -> bool:
    """Return whether the difference is another word, or a word too many, and not a slip of the keyboard."""
    lost = put = same = 0
    for step in Levenshtein.opcodes(expected, found):
        width = max(step.src_end - step.src_start, step.dest_end - step.dest_start)
        if step.tag == "equal":
            same += width
            if same >= 4:
                lost = put = 0
            continue
        same = 0
        lost += step.src_end - step.src_start
        put += step.dest_end - step.dest_start
        if min(lost, put) >= 2 and max(lost, put) >= 3:
            return True
        if put > 14:
            return True
    return False
