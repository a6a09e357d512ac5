"""Which other records are worth reading next to one."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_EACH = 3
_MOST = 8


@dataclass(frozen=True, slots=True)
class Neighbour:
    """What relation is decided by. The sequence of neighbours is in the default order, better ones first."""

    text: str
    path: str
    function: str
    flags: tuple[str, ...]


class Relations:
    """An index over all records of a package."""

    def __init__(self, neighbours: Sequence[Neighbour]) -> None:
        self._all = neighbours
        self._by_function: dict[tuple[str, str], list[int]] = defaultdict(list)
        self._by_text: dict[str, list[int]] = defaultdict(list)
        self._by_flag: dict[str, list[int]] = defaultdict(list)
        for i, n in enumerate(neighbours):
            self._by_function[n.path, n.function].append(i)
            if n.text:
                self._by_text[n.text].append(i)
            for flag in n.flags:
                self._by_flag[flag].append(i)

    def of(self, index: int) -> list[tuple[int, str]]:
        """Return (index, why) of the nearest records: same message elsewhere, same function, then same flag."""
        chosen: dict[int, str] = {}
        for members, why in self._reasons(self._all[index]):
            taken = 0
            for i in _around(members, index):
                if i != index and i not in chosen and taken < _EACH:
                    chosen[i] = why
                    taken += 1
            if len(chosen) >= _MOST:
                break
        return list(chosen.items())[:_MOST]

    def _reasons(self, one: Neighbour) -> Iterator[tuple[list[int], str]]:
        yield self._by_text.get(one.text, []), "same message elsewhere"
        yield self._by_function[one.path, one.function], "same function"
        # A rare flag says more than one that hundreds of records name.
        for flag in sorted(one.flags, key=lambda flag: (len(self._by_flag[flag]), flag))[:2]:
            yield self._by_flag[flag], f"also about {flag}"


def _around(members: list[int], index: int) -> list[int]:
    """Return a few members, those nearest to `index` first: neighbours in order are neighbours in the source."""
    if len(members) <= 2 * _EACH:
        return sorted(members, key=lambda i: abs(i - index))
    at = bisect_left(members, index)
    near = members[max(0, at - _MOST) : at + _MOST]
    return sorted(near, key=lambda i: abs(i - index))
