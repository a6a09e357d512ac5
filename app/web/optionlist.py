"""What a release changed in its options, as rows for its page."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from app.check.released import Changed, OptionChanges, Released


@dataclass(frozen=True, slots=True)
class OptionRow:
    """One option: its names, the page of its errors ("" where no record names it), and what is to be said of it."""

    names: tuple[str, ...]
    url: str
    note: str


@dataclass(frozen=True, slots=True)
class OptionGroup:
    """One kind of change."""

    title: str
    anchor: str
    rows: tuple[OptionRow, ...]

    @property
    def total(self) -> int:
        """Return how many options changed so."""
        return len(self.rows)


def option_groups(changes: OptionChanges, pages: Collection[str]) -> tuple[OptionGroup, ...]:
    """Return the kinds of change that there are; `pages` are the options that have a page."""

    def told(rows: Iterable[Changed], words: str) -> tuple[OptionRow, ...]:
        return tuple(_row((c.name,), f"{words} {c.after}" if c.after else "", pages) for c in rows)

    groups = (
        ("Added", "added", tuple(_row(o.names, _kind(o), pages) for o in changes.added)),
        ("Renamed", "renamed", told(changes.renamed, "now")),
        ("Deprecated", "deprecated", told(changes.deprecated, "use")),
        ("Removed", "removed", told(changes.removed, "use")),
        (
            "Other default",
            "default",
            tuple(_row((c.name,), f"{c.before} → {c.after}", pages) for c in changes.defaults),
        ),
        ("Other choices", "choices", tuple(_row((c.name,), _choices(c), pages) for c in changes.choices)),
    )
    return tuple(OptionGroup(title, f"flags-{anchor}", rows) for title, anchor, rows in groups if rows)


def _row(names: tuple[str, ...], note: str, pages: Collection[str]) -> OptionRow:
    page = next((name for name in names if name in pages), "")
    return OptionRow(names, f"/flags/{page}" if page else "", note)


def _kind(option: Released) -> str:
    said = [f"one of {', '.join(option.choices)}"] if option.choices else []
    if option.default not in (None, False):
        said.append(f"default {option.default}")
    return "; ".join(said)


def _choices(change: Changed) -> str:
    parts = (("new", change.after), ("gone", change.before))
    return "; ".join(f"{word}: {choices}" for word, choices in parts if choices)
