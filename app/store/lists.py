"""Lists of records: filters, facets, search and paging."""

from __future__ import annotations

import base64
import binascii
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import islice
from math import log
from operator import or_

import orjson
from sqlalchemy import Connection

from app.errors import BadInput
from app.store import facets, search, sqlite
from app.store.reads import generation, summaries
from app.store.search import Query
from app.store.values import Filters, Page, Suggestion

MAX_LIMIT = 200
# More hits than this are not looked for: beyond it the total is a lower bound, and no reader pages that far.
MAX_HITS = 10_000
# So many of the best hits, in the default order of records, are ranked by how well they fit; the others follow.
RANKED = 200
_LOOSE_HITS = 3_000
_FACET_VALUES = 60
_SINGLE = ("exception", "kind", "status", "flag", "release", "package")


def records(connection: Connection, filters: Filters, *, cursor: str = "", limit: int = 50) -> Page:
    """Return one page of records: by relevance where `q` is given, else by package, status and place.

    Raises: BadInput: the cursor is malformed, the limit is not in 1..200.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise BadInput(f"limit: {limit} is not in 1..{MAX_LIMIT}")
    query = Query.of(filters.q)
    position = _position(cursor, searching=bool(filters.q.strip()))
    index = facets.index(connection, generation(connection))
    narrowing = _Narrowing(connection, index, filters)
    searching = bool(filters.q.strip())
    if searching:
        hits, loose = _hits(connection, query)
        kept = narrowing.among(hits)
        keys = _ranked(connection, query, kept)[position : position + limit + 1]
        total, following = len(kept), _cursor("o", position + limit)
        counted = narrowing.hit_facets(hits)
    else:
        found, loose = narrowing.all(), False
        keys = list(islice(facets.keys(found, after=position), limit + 1))
        total, following = found.bit_count(), _cursor("k", keys[limit - 1]) if len(keys) > limit else ""
        counted = narrowing.facets()
    items = summaries(connection, keys[:limit], query)
    return Page(tuple(items), following if len(keys) > limit else None, total, counted, loose)


def _hits(connection: Connection, query: Query) -> tuple[list[int], bool]:
    """Return the records with all terms; where there are none, those with some, the best first, and True."""
    terms = [" ".join(term) for term in query.terms]
    found = sqlite.matching(connection, terms, limit=MAX_HITS)
    if found or len(terms) <= 1:
        return found, False
    weights: dict[int, float] = defaultdict(float)
    for term in terms:
        having = sqlite.matching(connection, [term], limit=_LOOSE_HITS)
        rarity = 1 / log(3 + len(having))
        for key in having:
            weights[key] += rarity
    # A record with one common word of many is no answer.
    least = max(weights.values(), default=0.0) * 0.5
    kept = [key for key, weight in weights.items() if weight >= least]
    return sorted(kept, key=lambda key: (-weights[key], key)), True


def _ranked(connection: Connection, query: Query, keys: Sequence[int]) -> list[int]:
    """Return the keys, the first of them by how well they fit."""
    head, tail = keys[:RANKED], keys[RANKED:]
    marks = ", ".join("?" * len(head))
    statement = f"SELECT key, words, status = 'reviewed' FROM record WHERE key IN ({marks})"
    rows = sqlite.query_rows(connection, statement, head)
    scored = {key: search.score(query, words, reviewed=bool(reviewed)) for key, words, reviewed in rows}
    return [*sorted(head, key=lambda key: -scored[key]), *tail]


class _Narrowing:
    """The sets that the filters of one request select, one a dimension."""

    def __init__(self, connection: Connection, index: facets.FacetIndex, filters: Filters) -> None:
        self.connection = connection
        self.index = index
        self.module = filters.module.strip("/")
        self.sets: dict[str, int] = {}
        for dimension in _SINGLE:
            if wanted := getattr(filters, dimension):
                self.sets[dimension] = index.values(connection, dimension).get(wanted, 0)
        if self.module:
            self.sets["module"] = self._below(self.module)

    def all(self, *, but: str = "") -> int:
        """Return the records that all filters select, that of one dimension left out."""
        chosen = self.index.all(self.connection)
        for dimension, of in self.sets.items():
            if dimension != but:
                chosen &= of
        return chosen

    def among(self, hits: list[int], *, but: str = "") -> list[int]:
        """Return the hits that all filters select, that of one dimension left out."""
        return facets.among(hits, self.all(but=but)) if self.sets.keys() - {but} else hits

    def facets(self) -> dict[str, Mapping[str, int]]:
        """Return the counts of every dimension under the filters of the others."""
        return {dimension: self._counts(dimension) for dimension in facets.DIMENSIONS}

    def hit_facets(self, hits: list[int]) -> dict[str, Mapping[str, int]]:
        """Return the same among the hits of a search."""
        whole = facets.bits(hits)
        return {dimension: self._hit_counts(dimension, hits, whole) for dimension in facets.DIMENSIONS}

    def _counts(self, dimension: str) -> Mapping[str, int]:
        values = self.index.values(self.connection, dimension)
        wanted: Iterable[str] = self._shown_modules() if dimension == "module" else values
        if self.sets.keys() - {dimension}:
            under = self.all(but=dimension)
            return _most({value: (values[value] & under).bit_count() for value in wanted})
        totals = self.index.totals(self.connection, dimension)
        return _most({value: totals[value] for value in wanted})

    def _hit_counts(self, dimension: str, hits: list[int], whole: int) -> Mapping[str, int]:
        """Return the counts of one dimension among the hits, which are there as a list and as a set."""
        index, connection = self.index, self.connection
        hits = self.among(hits, but=dimension)
        match dimension:
            case "flag":
                flags = index.flags_of(connection)
                return _most(Counter(flag for key in hits if key in flags for flag in flags[key]))
            case "exception":
                return _most(Counter(map(index.exceptions_of(connection).__getitem__, hits)))
            case "module":
                folders = index.folders_of(connection, self._shown_modules())
                return _most(Counter(map(folders.__getitem__, hits)))
            case _:
                under = whole & self.all(but=dimension)
                return _most({v: (of & under).bit_count() for v, of in index.values(connection, dimension).items()})

    def _shown_modules(self) -> list[str]:
        """Return the folders and files right below the chosen one, or below the first that has several."""
        below = self.index.below(self.connection, self.module)
        while len(below) == 1 and not self.module and (deeper := self.index.below(self.connection, below[0])):
            below = deeper
        return below

    def _below(self, prefix: str) -> int:
        values = self.index.values(self.connection, "module")
        if prefix in values:
            return values[prefix]
        for root in _source_roots(self.connection):
            if prefix.startswith(root) and prefix.removeprefix(root) in values:
                self.module = prefix.removeprefix(root)
                return values[self.module]
        starting = [of for value, of in values.items() if value.startswith(prefix)]
        return reduce(or_, starting, 0)


def _most(counted: Mapping[str, int]) -> dict[str, int]:
    """Return the counts that are not 0, the greatest first, at most so many as a page can show."""
    some = [(value, count) for value, count in counted.items() if value and count]
    return dict(sorted(some, key=lambda item: (-item[1], item[0]))[:_FACET_VALUES])


def _source_roots(connection: Connection) -> list[str]:
    rows = sqlite.query_rows(connection, "SELECT DISTINCT source_root FROM package WHERE source_root <> ''")
    return [row[0] for row in rows]


def _cursor(kind: str, value: int) -> str:
    return base64.urlsafe_b64encode(orjson.dumps([kind, value])).decode().rstrip("=")


def _position(cursor: str, *, searching: bool) -> int:
    """Return where a cursor continues: after a key, or in a search at an offset."""
    if not cursor:
        return 0 if searching else -1
    try:
        value = orjson.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
    except (ValueError, binascii.Error):
        value = None
    wanted = "o" if searching else "k"
    match value:
        case [kind, int(position)] if kind == wanted and not isinstance(position, bool) and 0 <= position < 2**40:
            return position
    raise BadInput("cursor: it is not one that this list gave")


def suggestions(connection: Connection, text: str, *, limit: int = 8) -> tuple[Suggestion, ...]:
    """Return what the words typed so far could mean, best first. Any text is legal."""
    query = Query.of(text)
    if not query:
        return ()
    index = facets.index(connection, generation(connection))
    named = _named(connection, index, text.strip())
    room = max(limit - len(named), limit // 2)
    keys = sqlite.matching(connection, [" ".join(term) for term in query.terms], limit=RANKED)
    best = _ranked(connection, query, keys)[:room]
    found = [Suggestion("record", s.title, s.url, s.exception) for s in summaries(connection, best)]
    return (*named[: limit - len(found)], *found)


def _named(connection: Connection, index: facets.FacetIndex, text: str) -> list[Suggestion]:
    """Return options, releases and modules whose name begins with the text."""
    if len(text) < 2:
        return []
    found = [
        Suggestion("flag", value, f"/flags/{value.lstrip('-')}", f"{total} errors")
        for value, total in index.totals(connection, "flag").items()
        if value.startswith(text) or value.lstrip("-").startswith(text.lower())
    ][:3]
    found += [
        Suggestion("release", value, f"/releases/{value}", f"{total} errors")
        for value, total in index.totals(connection, "release").items()
        if value.startswith(text.removeprefix("v"))
    ][:3]
    if "/" in text:
        found += [
            Suggestion("module", value, f"/errors?module={value}", f"{total} errors")
            for value, total in index.totals(connection, "module").items()
            if value.startswith(text)
        ][:3]
    return found
