"""The measures of identify, in one table: python -m bench.identify [--cases FILE] [--sample N] [--database URL].

1. self test: every site's text with random values, alone and with the frame of its raise
2. damaged: cut in half, wrapped, 4 % typos, prefixes; then every form that logs take
3. cases: real pastes with the expected site
4. what is no record: errors of other installed software, known lines of others, texts with words exchanged
5. speed, growth and other ways: `bench.matching`
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from time import perf_counter, process_time

from app.match.fit import fits
from app.match.identify import identify
from app.match.index import Index
from app.match.normal import normal
from app.store import queries
from app.store.engine import Store
from app.store.queries import Signature
from bench import altered, forms, matching
from bench.foreign import SAID, tracebacks
from bench.matching import Row, memory_mb, share
from bench.texts import Text, framed, places_of, same_text, texts_of, twin, value, with_typos

CASES = Path(__file__).resolve().parents[2] / "shared" / "cases" / "identify.jsonl"
_LETTERS = re.compile(r"[A-Za-z]{4,}")
_HOLE = re.compile(r"⟦(\d+)⟧")
_DAMAGED, _FORMS, _ALTERED = 4_000, 300, 1_000


class Bench:
    """The measures over one database. With a sample, each measure takes at most so many texts."""

    def __init__(self, signatures: Sequence[Signature], *, sample: int, seed: int, verbose: bool) -> None:
        self.signatures = signatures
        self.by_id = {s.record_id: s for s in signatures}
        started = process_time()
        self.index = Index(signatures)
        self.build_s = process_time() - started
        self.random = random.Random(seed)
        self.sample = sample
        self.verbose = verbose
        self.times: list[float] = []

    def top(self, pasted: str, count: int = 1) -> list[Signature]:
        """Return the first records for a paste."""
        return [self.by_id[m.record_id] for m in identify(self.index, pasted).matches[:count]]

    def _sampled(self, texts: Iterable[Text], most: int = 0) -> list[Text]:
        every = list(texts)
        limit = min(self.sample or len(every), most or len(every))
        return every if len(every) <= limit else self.random.sample(every, limit)

    def self_test(self) -> Iterator[Row]:
        """Yield the shares of texts and of places that are found again."""
        texts = self._sampled(t for t in texts_of(self.signatures) if t.letters)
        right = {n: self._is_found(text) for n, text in enumerate(texts)}
        for least in (1, 8, 16):
            chosen = [n for n, t in enumerate(texts) if t.letters >= least]
            name = f"1. message alone, >= {least} literal letters"
            yield Row(name, share(sum(right[n] for n in chosen), len(chosen)), ">= 99.9 %" if least == 1 else "")
        sites = sum(t.count for t in texts)
        yield Row("   ... by sites of releases", share(sum(t.count for n, t in enumerate(texts) if right[n]), sites))
        exact = alike = 0
        places = self._sampled(places_of(self.signatures))
        for place in places:
            message = place.rendered(self.random)
            found = self.top(framed(place, message))
            good = bool(found) and found[0] is place.owner
            same = bool(found) and not good and twin(found[0], place)
            exact += good
            alike += same
            self._say(good or same, "place", place, message, found)
        yield Row("1. with the frame: that very site", share(exact, len(places)), ">= 99.5 %")
        yield Row("   ... or one that the frame cannot tell apart", share(exact + alike, len(places)))

    def _is_found(self, text: Text) -> bool:
        message = text.rendered(self.random)
        found = self.top(text.printed(message))
        good = bool(found) and same_text(found[0], text)
        self._say(good, "text", text, message, found)
        return good

    def damaged(self) -> Iterator[Row]:
        """Yield the shares of damaged texts that are found again."""
        r = self.random
        ways: dict[str, Callable[[str], str]] = {
            "cut in half": lambda s: s[: (len(s) + 1) // 2],
            "wrapped": lambda s: "\n".join(textwrap.wrap(s, r.randrange(24, 60))) or s,
            "4 % typos": lambda s: with_typos(s, r),
            "prefix noise": lambda s: f"sglang-1  | [2026-03-04 09:11:08.123 DP{r.randrange(8)} TP3] {s}",
        }
        rows, right_all, count_all = [], 0, 0
        texts = self._sampled((t for t in texts_of(self.signatures) if t.letters >= 24), _DAMAGED)
        for name, way in ways.items():
            right = 0
            for text in texts:
                message = text.rendered(r)
                cut = name == "cut in half"  # the message is cut, not the name of its exception
                message = text.printed(way(message)) if cut else way(text.printed(message))
                found = self.top(message)
                good = bool(found) and (same_text(found[0], text) or (cut and _says_as_much(found[0], text, message)))
                self._say(good, name, text, message, found)
                right += good
            rows.append(Row(f"2. {name}", share(right, len(texts))))
            right_all += right
            count_all += len(texts)
        yield Row("2. damaged (>= 24 literal letters)", share(right_all, count_all), ">= 97 %")
        yield from rows

    def in_forms(self) -> Iterator[Row]:
        """Yield the share of pastes in all forms that lead to the site; where only a message is there, to the text."""
        places = list(places_of(self.signatures))
        texts = [t for t in texts_of(self.signatures) if t.letters >= 24 and t.owner.exception]
        worst, right_all, count_all = (101.0, ""), 0, 0
        for kinds, chosen in ((forms.TRACEBACKS, places), (forms.MESSAGES, texts)):
            for name, form in kinds.items():
                some = self._sampled(chosen, _FORMS)
                right = sum(self._is_found_in(text, form, name, whole=kinds is forms.TRACEBACKS) for text in some)
                worst = min(worst, (100 * right / len(some), name))
                right_all += right
                count_all += len(some)
                if self.verbose:
                    print(f"form {name}: {share(right, len(some))}", file=sys.stderr)
        count = len(forms.TRACEBACKS) + len(forms.MESSAGES)
        yield Row(f"2. pasted in {count} forms", f"{share(right_all, count_all)}; worst {worst[0]:.1f} % ({worst[1]})")

    def _is_found_in(
        self, text: Text, form: Callable[[forms.Error, random.Random], str], name: str, *, whole: bool
    ) -> bool:
        message, seen = text.rendered(self.random), text.seen
        error = forms.Error(text.owner.exception, message, seen.path, seen.lines[0], seen.function, seen.statement)
        found = self.top(form(error, self.random))
        if whole:
            good = bool(found) and (found[0] is text.owner or twin(found[0], text))
        else:
            good = bool(found) and same_text(found[0], text)
        self._say(good, name, text, message, found)
        return good

    def cases(self, path: Path) -> Iterator[Row]:
        """Yield the measures over real pastes.

        A case whose site no ingested release has is left out. One whose note accepts "null" is right without a match.
        """
        first = five = known = false = null = 0
        for line in path.read_text().splitlines():
            case = json.loads(line)
            started = process_time()
            found = self.top(case["pasted"], 10)
            self.times.append(process_time() - started)
            expected = case["expected"]
            if expected is None:
                null += 1
                # Text that was returned and never raised may be named by the record of that message only.
                wrong = [s for s in found if not (case.get("kind") == "not_raise" and s.kind == "message")]
                false += bool(wrong)
                if wrong:
                    print("false match:", case["id"], wrong[0].message[:100], file=sys.stderr)
                continue
            same = {"template": expected.get("template")}
            wanted = [expected, *(same | other for other in expected.get("also_acceptable", ()))]
            if not any(_there(s, w) for w in wanted for s in self.signatures):
                continue
            known += 1
            logical = expected.get("logical_site", "")
            good = [any(_is(s, w) for w in wanted) or _logical(s, logical) for s in found]
            silent = not found and "accept null" in case.get("note", "").lower()
            first += bool(good[:1] and good[0]) or silent
            five += any(good[:5]) or silent
            if not (good and good[0]):
                how = "accepted as null:" if silent else "missed:"
                print(how, case["id"], [s.message[:60] for s in found[:3]], file=sys.stderr)
        yield Row("3. cases: top-1 of those in a release", share(first, known), ">= 95 %")
        yield Row("3. cases: top-5", share(five, known), ">= 99 %")
        yield Row("3. cases: false matches on the nulls", f"{false} of {null}", "0")

    def foreign(self) -> Iterator[Row]:
        """Yield the false matches on errors of other software, with their frames and without."""
        printed = tracebacks(limit=200)
        for name, texts in (
            ("tracebacks", printed),
            ("last lines alone", ["\n".join(_last(p)) for p in printed]),
            ("known lines of others", list(SAID)),
        ):
            wrong = 0
            for text in texts:
                found = self.top(text)
                wrong += bool(found)
                if found:
                    print(
                        f"foreign {name}:",
                        text[-150:].replace("\n", " / "),
                        "->",
                        found[0].message[:80],
                        file=sys.stderr,
                    )
            yield Row(f"4. foreign {name}: false matches", share(wrong, len(texts)), "<= 1 %")

    def unknown(self) -> Iterator[Row]:
        """Yield what comes of texts that no release has: without frames nothing is right, with them the function."""
        texts = [t for t in texts_of(self.signatures) if t.letters >= 24 and len(altered.words(t.parts)) >= 3]
        for name, way in altered.WAYS.items():
            some = self._sampled(texts, _ALTERED)
            wrong = 0
            for text in some:
                message = self._altered(text, self.random.choice(texts), way)
                shape = normal(message)
                found = self.top(text.printed(message))
                # Where the text as it now stands fills a record's holes, that record says no less.
                good = not found or any(fits(tuple(map(normal, p[0::2])), shape) for p in found[0].texts)
                self._say(good, name, text, message, found)
                wrong += not good
            yield Row(f"4. {name}: false matches", share(wrong, len(some)))
        raised = [t for t in texts if t.owner.exception and t.owner.kind == "raise"]
        some, right, wrong = self._sampled(raised, _ALTERED), 0, 0
        for text in some:
            message = self._altered(text, self.random.choice(texts), altered.exchanged)
            found = self.top(framed(text, message, statement=f"raise {text.owner.exception}("))
            right += bool(found) and found[0] is text.owner
            wrong += bool(found) and found[0] is not text.owner
        yield Row("4. a word exchanged, with the frame: that site", f"{share(right, len(some))}; another: {wrong}")

    def _altered(self, text: Text, other: Text, way: Callable[[str, str, random.Random], str]) -> str:
        marked = "".join(p if n % 2 == 0 else f"⟦{n}⟧" for n, p in enumerate(text.parts))
        said = way(marked, " ".join(other.parts[0::2]), self.random)
        return _HOLE.sub(lambda _: value(self.random), said)

    def speed(self) -> Iterator[Row]:
        """Yield times and memory."""
        times = sorted(self.times)
        yield Row("5. records / texts", f"{len(self.signatures):,} / {len(self.index.texts):,}")
        yield Row("5. index", f"built in {self.build_s:.2f} s, arrays {self.index.grams.nbytes / 1e6:.1f} MB", "< 3 s")
        yield Row("5. peak memory of this process", f"{memory_mb():.0f} MB")
        yield Row("5. cases: p50", f"{times[len(times) // 2] * 1e3:.2f} ms", "<= 3 ms")
        yield Row("5. cases: p95", f"{times[int(len(times) * 0.95)] * 1e3:.2f} ms", "<= 20 ms")

    def _say(self, good: bool, what: str, text: Text, message: str, found: Sequence[Signature]) -> None:
        if self.verbose and not good:
            got = (found[0].message[:70], found[0].seen[-1].path, found[0].seen[-1].function) if found else None
            print(f"{what}: {message[:110]!r} {text.seen.path} {text.seen.function} -> {got}", file=sys.stderr)


def _last(printed: str) -> list[str]:
    """Return what follows the last frame of a traceback."""
    lines = printed.strip().split("\n")
    at = max(i for i, line in enumerate(lines) if line.startswith(("  ", "Traceback")) or i == 0)
    return lines[at + 1 :] or lines[-1:]


def _says_as_much(found: Signature, text: Text, message: str) -> bool:
    """Return whether the part that was left of a message says as much of the found record's text."""
    left = normal(message.partition(": ")[2] or message)
    for parts in found.texts:
        mine, other = normal(text.parts[0]), normal(parts[0])
        common = min(len(mine), len(left))
        if other[:common] == mine[:common] and common >= 8:
            return True
    return False


def _is(signature: Signature, wanted: dict[str, str]) -> bool:
    name = wanted["qualname"].rpartition(".")[2]
    return any(s.path == wanted["path"] and s.function.rpartition(".")[2] == name for s in signature.seen)


def _there(signature: Signature, wanted: dict[str, str]) -> bool:
    """Return whether a record is the wanted site and says what is expected of it: its text, or its statement."""
    if not _is(signature, wanted):
        return False
    template = re.sub(r"\.format\(.*|\{[^{}]*\}", " ", wanted.get("template") or "")
    if template.startswith("assert"):
        return any(normal("assert " + s.condition) == normal(template) for s in signature.seen)
    words = set(_LETTERS.findall(template))
    if not words:
        return True
    said = [set(_LETTERS.findall(" ".join(parts[0::2]))) for parts in signature.texts]
    return any(len(words & mine) >= 0.75 * len(words) for mine in said)


def _logical(signature: Signature, logical: str) -> bool:
    return bool(logical) and any(
        s.function in logical
        or (s.function.rpartition(".")[2] in logical and s.path.rpartition("/")[2][:-3] in logical)
        for s in signature.seen
    )


def stored(url: str) -> list[Signature]:
    """Return the signatures of a database, that of the settings where none is named."""
    if not url:
        from app.settings import Settings

        url = Settings.from_environment().database_url
    with Store(url).reading() as connection:
        return list(queries.signatures(connection))


def _rows(bench: Bench, only: str, cases: Path, grow: int) -> Iterator[Row]:
    if "1" in only:
        yield from bench.self_test()
    if "2" in only:
        yield from bench.damaged()
        yield from bench.in_forms()
    if cases.exists() and ("3" in only or "5" in only):
        yield from bench.cases(cases)
        yield from bench.speed()
    if "4" in only:
        yield from bench.foreign()
        yield from bench.unknown()
    if "5" in only:
        yield from matching.hostile_rows(bench.index)
        yield from matching.race(bench.signatures, bench.index, bench.random)
        yield from matching.growth(bench.signatures, [n for n in (10_000, 100_000, 1_000_000) if n <= grow])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", default="", help="URL; default: the settings'")
    parser.add_argument("--cases", type=Path, default=CASES, help="JSON lines with pasted and expected")
    parser.add_argument("--sample", type=int, default=0, help="at most so many texts in a measure; 0: all")
    parser.add_argument("--grow", type=int, default=1_000_000, help="largest number of made-up records")
    parser.add_argument("--only", default="12345", help="which measures")
    parser.add_argument("--verbose", action="store_true", help="name each miss")
    parser.add_argument("--seed", type=int, default=4)
    chosen = parser.parse_args()
    started = perf_counter()
    bench = Bench(stored(chosen.database), sample=chosen.sample, seed=chosen.seed, verbose=chosen.verbose)
    for row in _rows(bench, chosen.only, chosen.cases, chosen.grow):
        print(row, flush=True)
    print(f"in {perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
