"""What identifying answers with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.match.log import Block


@dataclass(frozen=True, slots=True)
class Match:
    """A record that a text names, and why.

    Shape: `score` is 0..1, from 0.5 on; `parts` (literal, hole, literal, ...) is the text of the record that was
    found, not always its newest; `values` maps "{hole}" to what filled it; `evidence` are the facts that agree;
    `reasons` says each of them in a sentence; `also` are records with the same text, `also_places` where each is
    raised; `wrapper` says that the text only wraps another match.
    """

    record_id: str
    package: str
    title: str
    exception: str
    message: str
    score: float
    values: Mapping[str, str] = field(default_factory=dict)
    evidence: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    also_places: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    wrapper: bool = False

    @property
    def url(self) -> str:
        """Return the record's address."""
        return f"/errors/{self.record_id}"


@dataclass(frozen=True, slots=True)
class Identification:
    """The matches of a text, best first, its blocks as understood, and what else it looks like ("" for nothing)."""

    matches: tuple[Match, ...] = ()
    blocks: tuple[Block, ...] = ()
    looks_like: str = ""
