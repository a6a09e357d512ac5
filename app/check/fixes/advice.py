"""What the knowledge base says of an error, as far as it helps to look for a fix."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Advice:
    """What is known of the record behind an error.

    Shape: `versions` are the releases that have it, `ingested` all that were read, oldest first. `before` and `after`
    are the commands of its example, `solutions` what a reviewer wrote.
    """

    flags: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    ingested: tuple[str, ...] = ()
    before: str = ""
    after: str = ""
    solutions: tuple[str, ...] = ()
