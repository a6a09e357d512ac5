"""Other ways to find the text of a message, behind one signature, for `bench.matching`.

Each takes the literals of all texts and returns what names one of them for a message, or nothing. A library that is not
installed is left out.
"""

from __future__ import annotations

import importlib
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec

from rapidfuzz import fuzz, process

from app.match.fit import fits
from app.match.normal import normal

Literals = tuple[str, ...]
Answer = Callable[[str], int | None]

_LONGEST_MESSAGE = 400
_LEAST_LITERAL = 6


def rivals(texts: Sequence[Literals]) -> Iterator[tuple[str, Callable[[], Answer], int]]:
    """Yield (name, how it is made, how many messages it can be asked in a reasonable time)."""
    yield "brute-force re", partial(brute_force, texts), 40
    yield "SQLite FTS5 BM25, words", partial(full_text, texts, "unicode61"), 400
    yield "SQLite FTS5 BM25, trigrams", partial(full_text, texts, "trigram"), 100
    yield "rapidfuzz over all texts", partial(fuzzy, texts), 60
    for name, module, make in (
        ("google-re2 Set", "re2", re2_set),
        ("Aho-Corasick (ahocorasick-rs)", "ahocorasick_rs", aho_corasick),
        ("Hyperscan", "hyperscan", hyperscan),
    ):
        if find_spec(module) is not None:
            yield name, partial(make, texts), 400


def brute_force(texts: Sequence[Literals]) -> Answer:
    """Return one that tries a pattern with lazy holes for every text, those with most literal characters first."""
    order = _by_size(texts)
    patterns = [(n, re.compile(".*?".join(map(re.escape, texts[n])), re.DOTALL)) for n in order]

    def answer(message: str) -> int | None:
        # Lazy holes are exponential in practice: a longer message cannot be given to it.
        message = message[:_LONGEST_MESSAGE]
        return next((n for n, pattern in patterns if pattern.fullmatch(message)), None)

    return answer


def full_text(texts: Sequence[Literals], tokenizer: str) -> Answer:
    """Return one that asks FTS5 for any of the message's words (or trigrams) and takes the best by BM25."""
    database = sqlite3.connect(":memory:")
    database.execute(f"CREATE VIRTUAL TABLE t USING fts5(body, tokenize = '{tokenizer}')")
    database.executemany("INSERT INTO t(rowid, body) VALUES (?, ?)", ((n, " ".join(t)) for n, t in enumerate(texts)))

    def answer(message: str) -> int | None:
        words = [w for w in dict.fromkeys(re.findall(r"\w+", message)) if tokenizer != "trigram" or len(w) > 2]
        if not words:
            return None
        query = " OR ".join(f'"{word}"' for word in words[:60])
        row = database.execute("SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT 1", (query,)).fetchone()
        return row[0] if row else None

    return answer


def fuzzy(texts: Sequence[Literals]) -> Answer:
    """Return one that compares the message with every text."""
    joined = ["".join(map(normal, t)) for t in texts]

    def answer(message: str) -> int | None:
        best = process.extractOne(normal(message), joined, scorer=fuzz.ratio, score_cutoff=60)
        return best[2] if best else None

    return answer


def re2_set(texts: Sequence[Literals]) -> Answer:
    """Return one that asks RE2 for all patterns at once."""
    re2 = importlib.import_module("re2")
    options = re2.Options()
    options.max_mem = 8 << 30
    options.dot_nl = True
    options.log_errors = False
    patterns = re2.Set.FullMatchSet(options)
    for text in texts:
        patterns.Add(".*".join(re2.escape(part) for part in text))
    patterns.Compile()

    def answer(message: str) -> int | None:
        return _longest(texts, patterns.Match(message) or ())

    return answer


def aho_corasick(texts: Sequence[Literals]) -> Answer:
    """Return one that looks for all literals at once and then for a text of which all are there, in order."""
    library = importlib.import_module("ahocorasick_rs")
    owners: dict[str, list[int]] = {}
    shapes = [tuple(map(normal, t)) for t in texts]
    for n, shape in enumerate(shapes):
        longest = max(shape, key=len)
        if len(longest) >= _LEAST_LITERAL:
            owners.setdefault(longest, []).append(n)
    literals = list(owners)
    automaton = library.AhoCorasick(literals)

    def answer(message: str) -> int | None:
        message = normal(message)
        found = {
            n for at, *_ in automaton.find_matches_as_indexes(message, overlapping=True) for n in owners[literals[at]]
        }
        return _longest(texts, [n for n in found if fits(shapes[n], message)])

    return answer


def hyperscan(texts: Sequence[Literals]) -> Answer:
    """Return one that asks Hyperscan for all patterns at once."""
    library = importlib.import_module("hyperscan")
    database = library.Database()
    patterns = ["^" + ".*".join(re.escape(part) for part in text) + "$" for text in texts]
    flags = library.HS_FLAG_DOTALL | library.HS_FLAG_SINGLEMATCH | library.HS_FLAG_UTF8
    database.compile([p.encode() for p in patterns], ids=list(range(len(texts))), flags=[flags] * len(texts))

    def answer(message: str) -> int | None:
        found: list[int] = []
        database.scan(message.encode(), match_event_handler=lambda n, *_: found.append(n))
        return _longest(texts, found)

    return answer


def _by_size(texts: Sequence[Literals]) -> list[int]:
    return sorted(range(len(texts)), key=lambda n: -sum(map(len, texts[n])))


def _longest(texts: Sequence[Literals], found: Sequence[int]) -> int | None:
    return max(found, key=lambda n: sum(map(len, texts[n])), default=None)
