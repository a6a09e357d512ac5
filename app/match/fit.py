"""Does a text carry a template? Exact and linear: literals are searched leftmost, one after the other.

All texts here are in the form of `normal`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rapidfuzz import fuzz
from rapidfuzz.distance import Levenshtein

_distance = Levenshtein.distance

Kind = Literal["whole", "start", "nested", "inside", "cut", "headless", "damaged"]

_OPENERS = frozenset(":>-([{=,;]")
_WINDOW = 2_000
_MIN_RATIO = 78.0
# Of a damaged literal: how much may be lost or put in one place or lost before it, how near two places are one, and how
# far before the best window it may begin.
_MOST_LOST, _MOST_PUT, _MOST_HEADLESS, _NEIGHBOURS, _EARLIER = 14, 8, 2, 2, 3


@dataclass(frozen=True, slots=True)
class Fit:
    """How a text carries a template.

    Shape: `kind`: the whole text; its start; after a colon or bracket; anywhere; cut off in the template; without the
    template's beginning; with differing characters. `covered` of `total` literal characters were found; `start` and
    `end` bound the find; `holes` are (start, end) of what fills each hole, (0, 0) where it is lost; `likeness` is 1
    unless damaged, `edits` are then the places where the text differs.
    """

    kind: Kind
    covered: int
    total: int
    start: int
    end: int
    holes: tuple[tuple[int, int], ...]
    likeness: float = 1.0
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class Edit:
    """A place where a text differs: characters `lost` to `lost_end` of one literal became `put` to `put_end`."""

    literal: int
    lost: int
    lost_end: int
    put: int
    put_end: int


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
    """Return how the text carries the template with some characters wrong; None where too many are.

    Whether a difference is a slip or another word is decided with the words at hand (`words.py`).
    """
    total = sum(map(len, literals))
    at, covered, weight = 0, 0, 0.0
    holes: list[tuple[int, int]] = []
    edits: list[Edit] = []
    begin = -1
    for n, literal in enumerate(literals):
        if len(literal) < 4:
            if not literal and n == len(literals) - 1:
                holes.append((at, len(text)))
                at = len(text)
                continue
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
        slip = _slip(literal, rest, hole_follows=n < len(literals) - 1)
        if slip is None:
            if covered and n and len(rest) < 160 and covered * 2 > total:
                holes += [(at, at + len(rest))] + [(0, 0)] * (len(literals) - 2 - len(holes))
                at += len(rest)
                break
            return None
        if n:
            holes.append((at, at + slip.start))
        begin = at + slip.start if begin < 0 else begin
        edits += [Edit(n, lost, lost_end, at + put, at + put_end) for lost, lost_end, put, put_end in slip.edits]
        covered += slip.covered
        weight += slip.covered * slip.likeness
        at += slip.end
    if not covered:
        return None
    holes = holes[: len(literals) - 1] + [(0, 0)] * max(0, len(literals) - 1 - len(holes))
    likeness = weight / covered
    return Fit("damaged", covered, total, max(begin, 0), at, tuple(holes), likeness, tuple(edits))


@dataclass(frozen=True, slots=True)
class _Slip:
    """Where a literal stands in a text with some characters wrong; `covered` of it are there, the rest is cut off."""

    start: int
    end: int
    covered: int
    likeness: float
    edits: tuple[tuple[int, int, int, int], ...]


def _slip(literal: str, text: str, *, hole_follows: bool) -> _Slip | None:
    """Return where the literal, or its beginning at the text's end, stands nearly; None where it does not."""
    alignment = fuzz.partial_ratio_alignment(literal, text, score_cutoff=_MIN_RATIO)
    if alignment is not None:
        start = alignment.dest_start if len(literal) <= len(text) else 0
        return _compared(literal, text, start, hole_follows=hole_follows)
    if len(literal) < 10:
        return None
    head = fuzz.partial_ratio_alignment(literal[:10], text, score_cutoff=_MIN_RATIO)
    if head is None or len(text) - head.dest_start > len(literal) + 4:
        return None
    return _compared(literal, text, head.dest_start, hole_follows=hole_follows)


def _window(literal: str, text: str, start: int) -> tuple[int, int]:
    """Return the part of the text, from about `start` on, that is most like the literal; the shortest at the start.

    Where the text ends before the literal does, the part goes up to the text's end.
    """
    first = max(0, start - _EARLIER)
    least, most = first + max(1, len(literal) - _MOST_LOST), min(len(text), first + len(literal) + 6 + _EARLIER)
    end = most if least >= most else min(range(least, most + 1), key=lambda n: (_distance(literal, text[first:n]), -n))
    last = min(start + _EARLIER, end - 1)
    return min(range(first, last + 1), key=lambda n: (_distance(literal, text[n:end]), -n)), end


def _compared(literal: str, text: str, start: int, *, hole_follows: bool) -> _Slip | None:
    """Compare a literal with the text from about `start` on, whose end is open."""
    start, stop = _window(literal, text, start)
    steps = list(Levenshtein.opcodes(literal, text[start:stop]))
    if steps and steps[0].tag == "insert":  # the last characters of what fills the hole before
        start += steps[0].dest_end
        steps = list(Levenshtein.opcodes(literal, text[start:stop]))
    if steps and steps[0].tag == "delete" and steps[0].src_end > _MOST_HEADLESS:
        return None
    while steps and steps[-1].tag == "insert":
        steps.pop()
    cut = 0
    while steps and (steps[-1].tag == "delete" or (hole_follows and steps[-1].tag == "replace")):
        step = steps.pop()
        cut += step.src_end - step.src_start
    runs: list[tuple[int, int, int, int]] = []
    total = 0
    for step in steps:
        if step.tag == "equal":
            continue
        total += max(step.src_end - step.src_start, step.dest_end - step.dest_start)
        run = (step.src_start, step.src_end, start + step.dest_start, start + step.dest_end)
        if runs and run[0] - runs[-1][1] < _NEIGHBOURS:
            run = (runs[-1][0], run[1], runs.pop()[2], run[3])
        runs.append(run)
    covered = len(literal) - cut
    end = start + (steps[-1].dest_end if steps else 0)
    if not steps or covered < 4 or (cut > 2 and end < len(text) - 1):
        return None
    if any(put_end - put > _MOST_PUT or lost_end - lost > _MOST_LOST for lost, lost_end, put, put_end in runs):
        return None
    likeness = 1 - total / covered
    return _Slip(start, end, covered, likeness, tuple(runs)) if likeness >= 0.75 else None
