"""The index of all templates: which of them share six-character pieces with a text. Built once, never changed.

Every piece of a text is looked up at once in flat arrays, so the first stage is linear in the text and its cost does
not hang on the number of templates: lists of a piece that is in too many of them are cut.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.match.normal import normal
from app.match.words import WORD
from app.store.queries import Signature

_GRAM = 6
LEAST_LETTERS = 8
_LONGEST_LIST = 512
_RAREST_KEPT = 12
_POSTINGS_A_SEGMENT = 24_000
# A word that fewer texts use may as well be a slip.
_OFTEN = 3
_TEXT_END, _SEGMENT_END = b"\x00", b"\x01"

# The normal form of a short f"{width=}".
_NAMED_VALUE = re.compile(r",?[a-z_][\w.]*=")

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Text:
    """One template text. `literals` are in `normal` form; `owners` are positions in `Index.signatures`."""

    parts: tuple[str, ...]
    literals: tuple[str, ...]
    size: int
    owners: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Segment:
    """What the first stage found in one segment: texts, best first, and how much of each one's pieces, 0..1."""

    segment: int
    weight: float
    texts: tuple[tuple[int, float], ...]


class Grams:
    """Six-character pieces -> texts, as flat arrays."""

    def __init__(self, texts: Sequence[tuple[str, ...]]) -> None:
        self.count = len(texts)
        joined, owner_sizes = [], []
        for literals in texts:
            piece = _TEXT_END.join([x.encode("ascii", "replace") for x in literals if len(x) >= _GRAM])
            joined.append(piece)
            owner_sizes.append(len(piece) + 1)
        data = np.frombuffer(_TEXT_END.join(joined) + _TEXT_END, dtype=np.uint8)
        codes, whole = _codes(data)
        owners = np.repeat(np.arange(self.count, dtype=np.int32), owner_sizes)[: len(codes)]
        codes, owners = codes[whole], owners[whole]
        order = np.argsort(codes, kind="stable")
        codes, owners = codes[order], owners[order]
        if len(codes):
            new = np.ones(len(codes), dtype=bool)
            new[1:] = (codes[1:] != codes[:-1]) | (owners[1:] != owners[:-1])
            codes, owners = codes[new], owners[new]
        self._keys, starts, sizes = np.unique(codes, return_index=True, return_counts=True)
        weights = np.log2(1 + self.count / sizes).astype(np.float32)
        each = np.repeat(weights, sizes)
        self._totals = np.bincount(owners, weights=each, minlength=self.count).astype(np.float32)
        keep = _kept(owners, np.repeat(sizes, sizes), self.count)
        kept_sizes = np.add.reduceat(keep, starts).astype(np.int64) if len(starts) else np.zeros(0, dtype=np.int64)
        self._owners = owners[keep]
        self._starts = np.concatenate([[0], np.cumsum(kept_sizes)]).astype(np.int64)
        self._weights = weights
        self._bits = 22 if len(self._keys) < 2_000_000 else 26
        self._present = np.zeros(1 << self._bits, dtype=bool)
        self._present[_hashed(self._keys, self._bits)] = True

    @property
    def nbytes(self) -> int:
        """Return the memory of the arrays."""
        return sum(
            a.nbytes for a in (self._keys, self._owners, self._starts, self._weights, self._totals, self._present)
        )

    def search(self, segments: Sequence[str], *, most: int, favoured: int, each: int) -> list[Segment]:
        """Return what is shared with the segments, for the `most` heaviest; the first `favoured` come before others.

        Shape: segments are in `normal` form; each answer names at most `each` texts.
        """
        if not segments or not len(self._keys):
            return []
        encoded = [s.encode("ascii", "replace") for s in segments]
        data = np.frombuffer(_SEGMENT_END.join(encoded) + _SEGMENT_END, dtype=np.uint8)
        codes, _ = _codes(data)
        maybe = np.flatnonzero(self._present[_hashed(codes, self._bits)])
        places = np.searchsorted(self._keys, codes[maybe])
        places[places == len(self._keys)] = 0
        real = self._keys[places] == codes[maybe]
        at, keys = maybe[real], places[real]
        starts = np.cumsum([0] + [len(e) + 1 for e in encoded[:-1]])
        where = np.searchsorted(starts, at, side="right") - 1
        heavy = np.bincount(where, weights=self._weights[keys], minlength=len(segments))
        rank = heavy.copy()
        rank[:favoured] = np.where(rank[:favoured] > 0, rank[:favoured] + 1e9, 0)
        chosen = np.argsort(-rank, kind="stable")[:most]
        bounds = np.searchsorted(where, np.stack([chosen, chosen + 1]))
        answers = []
        for segment, low, high in zip(chosen, bounds[0], bounds[1], strict=True):
            if high > low:
                answers.append(Segment(int(segment), float(heavy[segment]), self._shared(keys[low:high], each)))
        return answers

    def _shared(self, keys: Ints, each: int) -> tuple[tuple[int, float], ...]:
        keys = np.unique(keys)
        sizes = self._starts[keys + 1] - self._starts[keys]
        if sizes.sum() > _POSTINGS_A_SEGMENT:
            rarest = np.argsort(sizes, kind="stable")
            rarest = rarest[np.cumsum(sizes[rarest]) <= _POSTINGS_A_SEGMENT]
            keys, sizes = keys[rarest], sizes[rarest]
        total = int(sizes.sum())
        if not total:
            return ()
        offsets = np.repeat(self._starts[keys] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
        owners = self._owners[offsets + np.arange(total)]
        weights = np.repeat(self._weights[keys], sizes)
        if self.count > 4 * total:
            some, inverse = np.unique(owners, return_inverse=True)
            texts, sums = some.astype(np.int64), np.bincount(inverse, weights=weights)
        else:
            every = np.bincount(owners, weights=weights, minlength=self.count)
            texts = np.flatnonzero(every).astype(np.int64)
            sums = every[texts]
        share = np.minimum(1.0, sums / self._totals[texts])
        rank = sums * (0.35 + share)
        best = np.argsort(-rank, kind="stable")[:each] if len(rank) <= 4 * each else _top(rank, each)
        return tuple((int(texts[i]), float(share[i])) for i in best)


def _top(rank: NDArray[np.float64], each: int) -> Ints:
    best = np.argpartition(-rank, each)[:each]
    return best[np.argsort(-rank[best], kind="stable")]


def _codes(data: NDArray[np.uint8]) -> tuple[Ints, NDArray[np.bool_]]:
    """Return every six bytes as one number and whether a text's end lies in them."""
    size = max(0, len(data) - _GRAM + 1)
    codes = np.zeros(size, dtype=np.int64)
    whole = np.ones(size, dtype=bool)
    for i in range(_GRAM):
        piece = data[i : i + size]
        codes |= piece.astype(np.int64) << (8 * i)
        whole &= piece != 0
    return codes, whole


def _hashed(codes: Ints, bits: int) -> Ints:
    return ((codes.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - bits)).astype(np.int64)


def _kept(owners: NDArray[np.int32], sizes: Ints, count: int) -> NDArray[np.bool_]:
    """Return which entries stay: short lists, and of every text its rarest pieces whatever their lists."""
    keep = sizes <= _LONGEST_LIST
    if keep.all():
        return keep
    order = np.lexsort((sizes, owners))
    first = np.searchsorted(owners[order], np.arange(count))
    position = np.empty(len(owners), dtype=np.int64)
    position[order] = np.arange(len(owners)) - first[owners[order]]
    return keep | (position < _RAREST_KEPT)


class Index:
    """Everything that deciding needs of the records: texts, pieces, statements, functions, names of exceptions."""

    def __init__(self, signatures: Iterable[Signature]) -> None:
        self.signatures = tuple(signatures)
        owners: dict[tuple[str, ...], list[int]] = defaultdict(list)
        parts: dict[tuple[str, ...], tuple[str, ...]] = {}
        self.statements: dict[str, list[int]] = defaultdict(list)
        self.functions: dict[tuple[str, str], list[int]] = defaultdict(list)
        self.files: dict[str, list[int]] = defaultdict(list)
        paths: set[str] = set()
        shapes = _shapes(self.signatures)
        for n, signature in enumerate(self.signatures):
            for text in signature.texts:
                literals = tuple([shapes[part] for part in text[0::2]])
                if any(literals):
                    mine = owners[literals]
                    if not mine or mine[-1] != n:
                        mine.append(n)
                    parts.setdefault(literals, text)
            keys: set[str] = set()
            places: set[tuple[str, str]] = set()
            for seen in signature.seen:
                keys.add(shapes[seen.statement])
                if seen.condition:
                    keys.add("assert" + shapes[seen.condition])
                places.add((seen.path.rpartition("/")[2], bare(seen.function)))
                paths.add(seen.path)
            for key in keys:
                if key:
                    self.statements[key].append(n)
            for place in places:
                self.functions[place].append(n)
            for base in {base for base, _ in places}:
                self.files[base].append(n)
        self.roots = frozenset(path.partition("/")[0] for path in paths)
        self.suffixes = frozenset("/".join(path.split("/")[-2:]) for path in paths)
        self.texts = tuple(
            Text(parts[literals], literals, sum(map(len, literals)), tuple(found)) for literals, found in owners.items()
        )
        self.grams = Grams([t.literals for t in self.texts])
        self.exact: dict[str, list[int]] = defaultdict(list)
        self.bare_texts: dict[int, list[int]] = defaultdict(list)
        for n, t in enumerate(self.texts):
            if len(t.literals) == 1:
                self.exact[t.literals[0]].append(n)
            for owner in t.owners:
                self.bare_texts[owner].append(n)
        self.named_values = frozenset(
            n
            for n, t in enumerate(self.texts)
            if (t.size < LEAST_LETTERS or max(map(len, t.literals)) < _GRAM)
            and all(_NAMED_VALUE.fullmatch(x) for x in t.literals if x)
        )
        self.parts = frozenset(_part(path) for path in paths)
        parts_of = Counter(_part(s.seen[-1].path) for s in self.signatures if s.seen)
        most = max(parts_of.values(), default=1)
        self._shares = {part: count / most for part, count in parts_of.items()}
        self.newest = max({s.last for s in self.signatures}, key=_version, default="")
        said = Counter(word for t in self.texts for word in set(WORD.findall(" ".join(t.parts[0::2]).lower())))
        self.words = frozenset(word for word, count in said.items() if count >= _OFTEN)
        self.exceptions = frozenset(s.exception for s in self.signatures)
        self.exception_names = sorted(name for name in self.exceptions if len(name) >= 8)

    def share(self, path: str) -> float:
        """Return how many records live in the same part of the package, as a share of the part with most."""
        return self._shares.get(_part(path), 0.0)


def _shapes(signatures: Iterable[Signature]) -> dict[str, str]:
    """Return the `normal` form of every text that is compared; made in one go, which is ten times faster."""
    texts: set[str] = set()
    for signature in signatures:
        for text in signature.texts:
            texts.update(text[0::2])
        for seen in signature.seen:
            texts.add(seen.statement)
            texts.add(seen.condition)
    plain = [text for text in texts if "\x02" not in text and "\\" not in text]
    shapes = dict(zip(plain, normal("\x02".join(plain)).split("\x02"), strict=True)) if plain else {}
    return shapes | {text: normal(text) for text in texts if text not in shapes}


def _part(path: str) -> str:
    return "/".join(path.split("/")[:2])


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", text))


def bare(function: str) -> str:
    """Return the name that a traceback prints of a qualified name."""
    return function.rpartition(".")[2]
