"""Links: which site of a release is the successor of which site of the release before it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from rapidfuzz import fuzz, process

from app.lineage.identity import folded_code, identity_text
from app.mine.model import Site

How = Literal["same", "moved file", "moved function", "other exception", "reworded"]

# A text with fewer letters than this ("x is not None") says too little to be followed to another function.
_TELLING_LETTERS = 16
_REWORDED_IN_PLACE = 55.0
_REWORDED_IN_FILE = 75.0
_REWORDED_ELSEWHERE = 88.0


@dataclass(frozen=True, slots=True)
class Link:
    """A site of the older release and its successor in the newer one, by index, and by what it was recognised."""

    older: int
    newer: int
    how: How


def links(older: Sequence[Site], newer: Sequence[Site]) -> list[Link]:
    """Return the links between two neighbouring releases, strongest first; a site has one link at most.

    Cost: linear in the sites that are equal; those that are left after the exact stages are compared by
    similarity within one function, and across functions only among equal exceptions and telling texts.
    """
    return _Linking(older, newer).run()


@dataclass(frozen=True, slots=True)
class _Traits:
    """What is compared of a site."""

    text: str
    guards: tuple[str, ...]
    bare: str
    telling: bool

    @classmethod
    def of(cls, site: Site) -> _Traits:
        text = identity_text(site)
        return cls(
            text,
            tuple(folded_code(guard) for guard in site.guards),
            site.function.rpartition(".")[2],
            sum(map(str.isalpha, text)) >= _TELLING_LETTERS,
        )


class _Linking:
    """One run over two releases: each stage links what is still free."""

    def __init__(self, older: Sequence[Site], newer: Sequence[Site]) -> None:
        self.sites = (older, newer)
        self.traits = ([_Traits.of(s) for s in older], [_Traits.of(s) for s in newer])
        self.free: tuple[dict[int, None], dict[int, None]] = (
            dict.fromkeys(range(len(older))),
            dict.fromkeys(range(len(newer))),
        )
        self.found: list[Link] = []

    def run(self) -> list[Link]:
        self.exact("same", lambda s, t: (s.exception, t.text, s.function, s.path, t.guards))
        self.exact("same", lambda s, t: (s.exception, t.text, s.function, s.path))
        self.exact("moved file", lambda s, t: (s.exception, t.text, s.function, t.guards))
        self.exact(
            "moved file", lambda s, t: (s.exception, t.text, s.function) if t.telling or "." in s.function else None
        )
        self.exact("moved function", lambda s, t: (s.exception, t.text, t.bare, s.path) if t.text else None)
        self.exact("moved function", lambda s, t: (s.exception, t.text, t.bare) if t.telling else None)
        self.exact("moved function", lambda s, t: (s.exception, t.text, s.path) if t.telling else None)
        self.exact("moved function", lambda s, t: (s.exception, t.text) if t.telling else None)
        self.exact("other exception", lambda s, t: (t.text, s.function, s.path) if t.text else None)
        self.similar(lambda s, _: (s.path, s.function, s.kind), _REWORDED_IN_PLACE, within=True)
        self.similar(lambda s, t: (s.path, s.exception) if t.telling else None, _REWORDED_IN_FILE)
        self.similar(lambda s, t: (s.function, s.exception) if t.telling else None, _REWORDED_IN_FILE)
        self.similar(lambda s, t: s.exception if t.telling and len(t.text) >= 40 else None, _REWORDED_ELSEWHERE)
        return self.found

    def exact(self, how: How, key: Callable[[Site, _Traits], Hashable | None]) -> None:
        """Link free sites with equal keys, in line order; a None key takes no part."""
        groups = [self._grouped(side, key) for side in (0, 1)]
        for name, olds in groups[0].items():
            for old, new in zip(olds, groups[1].get(name, ()), strict=False):
                self._link(old, new, how)

    def similar(self, key: Callable[[Site, _Traits], Hashable | None], least: float, *, within: bool = False) -> None:
        """Link free sites with equal keys whose texts are similar, the most similar first.

        `within`: they stand in one function, so equal guards speak for them too.
        """
        groups = [self._grouped(side, key) for side in (0, 1)]
        scored: list[tuple[float, int, int]] = []
        for name, olds in groups[0].items():
            news = groups[1].get(name)
            if news:
                scored += self._scores(olds, news, least, within=within)
        for _, old, new in sorted(scored, key=lambda s: (-s[0], s[1], s[2])):
            if old in self.free[0] and new in self.free[1]:
                self._link(old, new, "reworded")

    def _scores(
        self, olds: list[int], news: list[int], least: float, *, within: bool
    ) -> Iterable[tuple[float, int, int]]:
        texts = {new: self.traits[1][new].text for new in news}
        for old in olds:
            mine = self.traits[0][old]
            cutoff = least - 15 if within else least
            for _, score, new in process.extract(mine.text, texts, scorer=fuzz.ratio, score_cutoff=cutoff, limit=5):
                total = score
                if within:
                    same_guards = mine.guards == self.traits[1][new].guards and bool(mine.guards)
                    total += 15 * same_guards - 5 * (self.sites[0][old].exception != self.sites[1][new].exception)
                if total >= least:
                    yield total, old, new

    def _grouped(self, side: int, key: Callable[[Site, _Traits], Hashable | None]) -> dict[Hashable, list[int]]:
        groups: dict[Hashable, list[int]] = defaultdict(list)
        sites, traits = self.sites[side], self.traits[side]
        for i in self.free[side]:
            name = key(sites[i], traits[i])
            if name is not None:
                groups[name].append(i)
        for members in groups.values():
            members.sort(key=lambda i: (sites[i].path, sites[i].line, i))
        return groups

    def _link(self, old: int, new: int, how: How) -> None:
        del self.free[0][old], self.free[1][new]
        self.found.append(Link(old, new, how))
