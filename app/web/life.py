"""The life line: in which releases an error exists, as one drawing and as the sentence that says the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.store.document import Change, History

CELL_WIDTH = 46
CONDITION = 140  # characters of one condition in a sentence


@dataclass(frozen=True, slots=True)
class Cell:
    """One release. `marks` holds "tick" (moved) and "diamond" (reworded); `url` is "" where nothing can be shown."""

    version: str
    x: int
    has: bool
    shown: bool
    marks: tuple[str, ...]
    url: str
    label: str


@dataclass(frozen=True, slots=True)
class LifeLine:
    """The drawing, its sentence, and the changes in words."""

    cells: tuple[Cell, ...]
    sentence: str
    range: str
    gone: str
    changes: tuple[str, ...]
    step: int = CELL_WIDTH

    @property
    def width(self) -> int:
        """Return the width of the drawing in pixels."""
        return self.step * len(self.cells)


def life_line(history: History, *, record_url: str, shown: str = "") -> LifeLine:
    """Return the life line of a record; `shown` is the release whose source the page shows."""
    places = {place.version for place in history.releases}
    cells = tuple(
        _cell(version, index, history=history, has=version in places, record_url=record_url, shown=shown)
        for index, version in enumerate(history.ingested)
    )
    return LifeLine(
        cells=cells,
        sentence=life_sentence(history),
        range=life_range(history.first, history.last, history.gone_since),
        gone=f"gone since {history.gone_since}" if history.gone_since else "",
        changes=tuple(change_sentence(change) for change in history.changes if _worth_saying(change)),
    )


def life_sentence(history: History) -> str:
    """Return the life of a record in one sentence."""
    versions = [place.version for place in history.releases]
    if not versions:
        return "Not found in any release that was read."
    if not history.first_is_bound:
        opening = f"New in {history.first}. "
    elif len(history.ingested) > 1:
        opening = ""
    else:
        return f"Read in {versions[0]}; no other release was read."
    bound = " or earlier" if history.first_is_bound else ""
    if len(versions) == 1:
        body = f"In {versions[0]}{bound} only"
    elif _without_gap(versions, history.ingested):
        body = f"In {versions[0]}{bound} {'to' if len(versions) > 2 else 'and'} {versions[-1]}"
    else:
        body = f"In {versions[0]}{bound}, {', '.join(versions[1:])}"
    end = f"; gone since {history.gone_since}." if history.gone_since else ", the newest release read."
    return opening + body + end


def life_range(first: str | None, last: str | None, gone_since: str | None) -> str:
    """Return the life in a few characters, for a list row."""
    if not first or not last:
        return "not known"
    if gone_since:
        return first if first == last else f"{first} – {last}"
    return f"since {first}"


def change_sentence(change: Change) -> str:
    """Return what a release changed in words."""
    arrow = f": from {change.old} to {change.new}" if change.old and change.new else ""
    match change.what:
        case "moved":
            return f"{change.version}: moved to another {change.detail or 'place'}{arrow}"
        case "guard changed":
            return f"{change.version}: other conditions lead to it{_conditions(change)}"
        case "back":
            return f"{change.version}: back again"
        case _:
            return f"{change.version}: {change.what}{arrow}"


def _conditions(change: Change) -> str:
    """Return which conditions came and which went; those that stayed are on the page already."""
    old, new = (change.old or "").splitlines(), (change.new or "").splitlines()
    came = "; ".join(_shortened(line) for line in new if line not in old)
    went = "; ".join(_shortened(line) for line in old if line not in new)
    return f"{f'. New: {came}' if came else ''}{f'. No longer: {went}' if went else ''}"


def _shortened(text: str) -> str:
    """Return `text` in at most `CONDITION` characters."""
    return text if len(text) <= CONDITION else text[: CONDITION - 1] + "…"


def _worth_saying(change: Change) -> bool:
    # Half of all errors change their line in a release; the places of each release are in the cells and the JSON.
    return not (change.what == "moved" and change.detail == "line")


def _cell(version: str, index: int, *, history: History, has: bool, record_url: str, shown: str) -> Cell:
    changes = [change for change in history.changes if change.version == version and _worth_saying(change)]
    marks = {"moved": "tick", "reworded": "diamond"}
    words = ", ".join(change.what for change in changes)
    return Cell(
        version=version,
        x=index * CELL_WIDTH,
        has=has,
        shown=version == shown,
        marks=tuple(marks[change.what] for change in changes if has and change.what in marks),
        url=f"{record_url}?release={version}#source" if has else "",
        label=f"{version}: {'has the error' if has else 'does not have it'}{f', {words}' if words else ''}",
    )


def _without_gap(versions: Sequence[str], ingested: Sequence[str]) -> bool:
    start = ingested.index(versions[0]) if versions[0] in ingested else 0
    return list(ingested[start : start + len(versions)]) == list(versions)
