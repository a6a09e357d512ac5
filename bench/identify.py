"""The measures of identify, in one table: python -m bench.identify [--cases FILE] [--sample N] [--database URL].

1. self test: every site's text with random values, alone and with the frame of its raise
2. damaged: cut in half, wrapped, 4 % typos, prefixes
3. cases: real pastes with the expected site
4. foreign: errors of other installed software
5. speed: this, brute-force `re`, FTS5 BM25; growth up to a million made-up texts
"""

from __future__ import annotations

import argparse
import json
import random
import re
import resource
import sqlite3
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from app.match.identify import identify
from app.match.index import Grams, Index
from app.match.normal import normal
from app.store import queries
from app.store.engine import Store
from app.store.queries import Seen, Signature
from bench.foreign import tracebacks

CASES = Path(__file__).resolve().parents[2] / "shared" / "cases" / "identify.jsonl"
_VALUES: tuple[Callable[[random.Random], str], ...] = (
    lambda r: str(r.randrange(100_000)),
    lambda r: f"{r.uniform(-5, 5000):.3f}",
    lambda r: r.choice(("None", "True", "False", "auto", "cuda", "fp8", "bfloat16", "triton", "0")),
    lambda r: "'" + _word(r) + "'",
    lambda r: _word(r) + "-" + _word(r),
    lambda r: "/" + "/".join(_word(r) for _ in range(r.randrange(1, 5))),
    lambda r: "[" + ", ".join(str(r.randrange(4096)) for _ in range(r.randrange(1, 6))) + "]",
    lambda r: "{" + ", ".join(f"'{_word(r)}'" for _ in range(r.randrange(1, 4))) + "}",
    lambda r: f"torch.Size([{r.randrange(9)}, {r.randrange(9999)}])",
    lambda r: " ".join(_word(r) for _ in range(r.randrange(2, 7))),
)


def _word(r: random.Random) -> str:
    return "".join(r.choice("abcdefghijklmnoprstuvwxyz") for _ in range(r.randrange(3, 10)))


@dataclass(frozen=True)
class Text:
    """A text of a record, at one place of it."""

    owner: Signature
    parts: tuple[str, ...]
    seen: Seen

    @property
    def letters(self) -> int:
        """Return how many characters of it are literal."""
        return sum(len(normal(part)) for part in self.parts[0::2])

    def rendered(self, r: random.Random) -> str:
        """Return it with random values, as a program prints it."""
        return "".join(p if i % 2 == 0 else r.choice(_VALUES)(r) for i, p in enumerate(self.parts))


def printed(exception: str, message: str) -> str:
    """Return the last line of a traceback."""
    return f"{exception}: {message}" if exception and message else exception or message


def framed(text: Text, message: str) -> str:
    """Return a traceback that ends at the text's own raise."""
    root = "/usr/local/lib/python3.12/dist-packages/"
    function = text.seen.function.rpartition(".")[2]
    frames = [
        f'  File "{root}sglang/srt/managers/scheduler.py", line 3130, in run_scheduler_process\n    scheduler.run()',
        f'  File "{root}{text.seen.path}", line {text.seen.lines[0]}, in {function}\n    {text.seen.statement}',
    ]
    return "\n".join(["Traceback (most recent call last):", *frames, printed(text.owner.exception, message)])


def texts_of(signatures: Iterable[Signature]) -> Iterator[Text]:
    """Yield every text of every record, at the newest place of it."""
    for signature in signatures:
        for parts in signature.texts:
            yield Text(signature, parts, signature.seen[-1])


def places_of(signatures: Iterable[Signature]) -> Iterator[Text]:
    """Yield every record at each of its places, with its first text."""
    for signature in signatures:
        for seen in signature.seen:
            yield Text(signature, signature.texts[0] if signature.texts else ("",), seen)


def same_text(found: Signature, text: Text) -> bool:
    """Return whether a record has the text."""
    literals = tuple(map(normal, text.parts[0::2]))
    return any(tuple(map(normal, parts[0::2])) == literals for parts in found.texts)


@dataclass
class Row:
    """A line of the table."""

    name: str
    value: str
    wanted: str = ""


class Bench:
    """The measures over one database."""

    def __init__(self, signatures: Sequence[Signature], *, sample: int, seed: int, verbose: bool) -> None:
        self.signatures = signatures
        self.by_id = {s.record_id: s for s in signatures}
        started = perf_counter()
        self.index = Index(signatures)
        self.build_s = perf_counter() - started
        self.random = random.Random(seed)
        self.sample = sample
        self.verbose = verbose
        self.times: list[float] = []

    def top(self, pasted: str, count: int = 1) -> list[Signature]:
        """Return the first records for a paste; its time is noted."""
        started = perf_counter()
        found = identify(self.index, pasted)
        self.times.append(perf_counter() - started)
        return [self.by_id[m.record_id] for m in found.matches[:count]]

    def _sampled(self, texts: Iterable[Text]) -> list[Text]:
        every = list(texts)
        return every if not self.sample or len(every) <= self.sample else self.random.sample(every, self.sample)

    def self_test(self) -> list[Row]:
        """Return the shares of texts and of places that are found again."""
        rows = []
        texts = self._sampled(t for t in texts_of(self.signatures) if t.letters)
        for least in (1, 8, 16):
            chosen = [t for t in texts if t.letters >= least] if least > 1 else texts
            right = 0
            for text in chosen if least == 1 else ():
                message = text.rendered(self.random)
                found = self.top(printed(text.owner.exception, message))
                good = bool(found) and same_text(found[0], text)
                self._say(good, "text", text, message, found)
                self._right[id(text)] = good
                right += good
            right = sum(self._right[id(t)] for t in chosen)
            rows.append(Row(f"1. message alone, >= {least} literal letters", _share(right, len(chosen)), ">= 99.9 %"))
        places = self._sampled(p for p in places_of(self.signatures) if p.owner.exception)
        exact = alike = 0
        for place in places:
            message = place.rendered(self.random)
            found = self.top(framed(place, message))
            good = bool(found) and found[0] is place.owner
            twin = bool(found) and not good and _twin(found[0], place)
            exact += good
            alike += twin
            self._say(good or twin, "place", place, message, found)
        rows.append(Row("1. with the frame: that very site", _share(exact, len(places)), ">= 99.5 %"))
        rows.append(Row("   ... or one that the frame cannot tell apart", _share(exact + alike, len(places))))
        return rows

    _right: dict[int, bool] = {}  # noqa: RUF012

    def damaged(self) -> list[Row]:
        """Return the shares of damaged texts that are found again."""
        ways: dict[str, Callable[[str], str]] = {
            "cut in half": lambda s: s[: (len(s) + 1) // 2],
            "wrapped": lambda s: "\n".join(textwrap.wrap(s, self.random.randrange(24, 60))) or s,
            "4 % typos": self._with_typos,
            "prefix noise": lambda s: f"sglang-1  | [2026-03-04 09:11:08.123 DP{self.random.randrange(8)} TP3] {s}",
        }
        rows, right_all, count_all = [], 0, 0
        texts = [t for t in texts_of(self.signatures) if t.letters >= 24]
        if len(texts) > (self.sample or 4000):
            texts = self.random.sample(texts, self.sample or 4000)
        for name, way in ways.items():
            right = 0
            for text in texts:
                message = text.rendered(self.random)
                whole = name != "cut in half"  # the message is cut, not the name of its exception
                message = (
                    way(printed(text.owner.exception, message))
                    if whole
                    else printed(text.owner.exception, way(message))
                )
                found = self.top(message)
                good = bool(found) and (
                    same_text(found[0], text) or (name == "cut in half" and _equal(found[0], text, message))
                )
                self._say(good, name, text, message, found)
                right += good
            rows.append(Row(f"2. {name}", _share(right, len(texts))))
            right_all += right
            count_all += len(texts)
        return [Row("2. damaged (>= 24 literal letters)", _share(right_all, count_all), ">= 97 %"), *rows]

    def _with_typos(self, text: str) -> str:
        made = []
        for character in text:
            if self.random.random() >= 0.04:
                made.append(character)
                continue
            kind = self.random.randrange(3)
            other = self.random.choice("abcdefghijklmnopqrstuvwxyz")
            made.append(other if kind == 0 else character + other if kind == 1 else "")
        return "".join(made)

    def cases(self, path: Path) -> list[Row]:
        """Return the measures over real pastes."""
        first = five = known = false = null = 0
        for line in path.read_text().splitlines():
            case = json.loads(line)
            found = self.top(case["pasted"], 10)
            expected = case["expected"]
            if expected is None:
                null += 1
                # Text that was returned and never raised may be named by the record of that message only.
                wrong = [s for s in found if not (case.get("kind") == "not_raise" and s.kind == "message")]
                false += bool(wrong)
                if wrong:
                    print("false match:", case["id"], wrong[0].message[:100], file=sys.stderr)
                continue
            wanted = [expected, *expected.get("also_acceptable", ())]
            if not any(_there(s, w) for w in wanted for s in self.signatures):
                continue
            known += 1
            logical = expected.get("logical_site", "")
            good = [any(_is(s, w) for w in wanted) or _logical(s, logical) for s in found]
            first += bool(good[:1] and good[0])
            five += any(good[:5])
            if not (good and good[0]):
                print("missed:", case["id"], [s.message[:60] for s in found[:3]], file=sys.stderr)
        return [
            Row("3. cases: top-1 of those in a release", _share(first, known), ">= 95 %"),
            Row("3. cases: top-5", _share(five, known), ">= 99 %"),
            Row("3. cases: false matches on the nulls", f"{false} of {null}", "0"),
        ]

    def foreign(self) -> list[Row]:
        """Return the false matches on errors of other software, with their frames and without."""
        printed_ = tracebacks(limit=200)
        rows = []
        for name, texts in (
            ("tracebacks", printed_),
            ("last lines alone", ["\n".join(_last(p)) for p in printed_]),
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
            rows.append(Row(f"4. foreign {name}: false matches", _share(wrong, len(texts)), "<= 1 %"))
        return rows

    def speed(self) -> list[Row]:
        """Return times, memory and growth."""
        times = sorted(self.times)
        rows = [
            Row("5. records / texts", f"{len(self.signatures):,} / {len(self.index.texts):,}"),
            Row("5. index", f"built in {self.build_s:.2f} s, arrays {self.index.grams.nbytes / 1e6:.1f} MB", "< 3 s"),
            Row(
                "5. peak memory of this process", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB"
            ),
            Row("5. p50", f"{times[len(times) // 2] * 1e3:.2f} ms", "<= 3 ms"),
            Row("5. p95", f"{times[int(len(times) * 0.95)] * 1e3:.2f} ms", "<= 20 ms"),
        ]
        for name, text in hostile():
            started = perf_counter()
            identify(self.index, text)
            rows.append(Row(f"5. 1 MiB: {name}", f"{(perf_counter() - started) * 1e3:.0f} ms", "<= 300 ms"))
        return rows

    def baselines(self) -> list[Row]:
        """Return accuracy and time of a brute-force `re` and of FTS5 BM25 on the same messages, and of this."""
        texts = [t for t in texts_of(self.signatures) if t.letters >= 8]
        texts = self.random.sample(texts, min(300, len(texts)))
        pasted = [(t, t.rendered(self.random)) for t in texts]
        return [
            self._race("this", pasted, lambda t, m: next(iter(self.top(printed(t.owner.exception, m))), None)),
            self._race("brute-force re", pasted[:60], self._brute()),
            self._race("FTS5 BM25", pasted, self._bm25()),
        ]

    def _race(
        self, name: str, pasted: Sequence[tuple[Text, str]], answer: Callable[[Text, str], Signature | None]
    ) -> Row:
        right, started = 0, perf_counter()
        for text, message in pasted:
            found = answer(text, message)
            right += found is not None and same_text(found, text)
        each = (perf_counter() - started) / len(pasted) * 1e3
        return Row(f"5. {name}", f"{_share(right, len(pasted))} right, {each:.2f} ms each")

    def _brute(self) -> Callable[[Text, str], Signature | None]:
        patterns = [
            (sum(map(len, t.parts[0::2])), re.compile(".*?".join(map(re.escape, t.parts[0::2])), re.DOTALL), t.owner)
            for t in texts_of(self.signatures)
        ]
        patterns.sort(key=lambda p: -p[0])

        def answer(_: Text, message: str) -> Signature | None:
            # Five lazy holes are exponential in practice; a message of 400 characters is all it can be given.
            return next((owner for _, pattern, owner in patterns if pattern.fullmatch(message[:400])), None)

        return answer

    def _bm25(self) -> Callable[[Text, str], Signature | None]:
        database = sqlite3.connect(":memory:")
        database.execute("CREATE VIRTUAL TABLE t USING fts5(body)")
        owners = []
        for text in texts_of(self.signatures):
            owners.append(text.owner)
            database.execute("INSERT INTO t(rowid, body) VALUES (?, ?)", (len(owners), " ".join(text.parts[0::2])))

        def answer(_: Text, message: str) -> Signature | None:
            words = dict.fromkeys(re.findall(r"\w+", message))
            if not words:
                return None
            query = " OR ".join(f'"{word}"' for word in list(words)[:60])
            row = database.execute("SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT 1", (query,)).fetchone()
            return owners[row[0] - 1] if row else None

        return answer

    def growth(self, sizes: Sequence[int]) -> list[Row]:
        """Return the time of the first stage over ever more made-up texts of the same words."""
        words = sorted({w for t in self.index.texts for p in t.parts[0::2] for w in re.findall(r"[A-Za-z_]{3,}", p)})
        rows, measured = [], []
        for size in sizes:
            r = random.Random(size)
            made = [(normal(" ".join(r.choice(words) for _ in range(r.randrange(4, 14)))),) for _ in range(size)]
            started = perf_counter()
            grams = Grams(made)
            built = perf_counter() - started
            asked = [made[r.randrange(size)][0] for _ in range(200)]
            right = 0
            started = perf_counter()
            for text in asked:
                answers = grams.search([text], most=1, favoured=1, each=32)
                right += any(made[n][0] == text for n, _ in answers[0].texts[:1])
            each = (perf_counter() - started) / len(asked) * 1e3
            measured.append((size, each))
            rows.append(
                Row(
                    f"5. growth: {size:,} texts",
                    f"{each:.2f} ms, {right}/200 first, built in {built:.1f} s, {grams.nbytes / 1e6:.0f} MB",
                )
            )
            del grams, made
        (small, fast), (large, slow) = measured[0], measured[-1]
        rows.append(
            Row("5. growth", f"x{slow / fast:.1f} for x{large // small} texts", f"< x{(large / small) ** 0.5:.0f}")
        )
        return rows

    def _say(self, good: bool, what: str, text: Text, message: str, found: Sequence[Signature]) -> None:
        if self.verbose and not good:
            got = (found[0].message[:70], found[0].seen[-1].path, found[0].seen[-1].function) if found else None
            print(f"{what}: {message[:110]!r} {text.seen.path} {text.seen.function} -> {got}", file=sys.stderr)


def _last(printed_: str) -> list[str]:
    """Return what follows the last frame of a traceback."""
    lines = printed_.strip().split("\n")
    at = max(i for i, line in enumerate(lines) if line.startswith(("  ", "Traceback")) or i == 0)
    return lines[at + 1 :] or lines[-1:]


def hostile() -> Iterator[tuple[str, str]]:
    """Yield texts of 1 MiB that are made to be slow."""
    size = 1024 * 1024
    line = "[2026-03-04 09:11:08 TP0] Decode batch. #running-req: 12, #token: 4096, gen throughput (token/s): 1200.3\n"
    yield "a log without an error", (line * (size // len(line) + 1))[:size]
    yield "one letter", "a" * size
    yield "line ends", "\n" * size
    yield "short lines", ("a\n" * size)[:size]
    yield "exception lines", ("ValueError: x is not supported\n" * size)[:size]
    yield "frames", ('  File "/a/sglang/srt/b.py", line 1, in f\n    raise ValueError(\n' * size)[:size]
    yield "quotes and escapes", ('"message": \\"\'' * size)[:size]
    yield "not ASCII", ("│ é ü “x” is not supported\n" * size)[:size]
    yield "noise", "".join(random.Random(1).choices("abcdefgh (){}[]:'\"\n\\=._-/0123456789", k=size))


def _share(right: int, count: int) -> str:
    return f"{100 * right / max(count, 1):.2f} % of {count:,}"


def _twin(found: Signature, place: Text) -> bool:
    """Return whether a record is at the same file, function, statement and text: the frame cannot tell it apart."""
    seen = place.seen
    return (found.texts[:1] == place.owner.texts[:1] or same_text(found, place)) and any(
        (s.path, s.function, s.statement) == (seen.path, seen.function, seen.statement) for s in found.seen
    )


def _equal(found: Signature, text: Text, message: str) -> bool:
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
    """Return whether a record is the wanted site and has its text."""
    if not _is(signature, wanted):
        return False
    template = wanted.get("template")
    if template is None or not signature.texts:
        return True
    words = set(re.findall(r"[A-Za-z]{4,}", template)) - {"format", "numerator", "denominator"}
    best = max((len(words & set(re.findall(r"[A-Za-z]{4,}", " ".join(parts)))) for parts in signature.texts), default=0)
    return best >= 0.75 * len(words)


def _logical(signature: Signature, logical: str) -> bool:
    return bool(logical) and any(
        s.function in logical
        or (s.function.rpartition(".")[2] in logical and s.path.rpartition("/")[2][:-3] in logical)
        for s in signature.seen
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", default="", help="URL; default: the settings'")
    parser.add_argument("--cases", type=Path, default=CASES, help="JSON lines with pasted and expected")
    parser.add_argument("--sample", type=int, default=0, help="at most so many texts in a measure; 0: all")
    parser.add_argument("--grow", type=int, default=1_000_000, help="largest number of made-up texts")
    parser.add_argument("--only", default="12345", help="which measures")
    parser.add_argument("--verbose", action="store_true", help="name each miss")
    parser.add_argument("--seed", type=int, default=4)
    chosen = parser.parse_args()
    url = chosen.database
    if not url:
        from app.settings import Settings

        url = Settings.from_environment().database_url
    store = Store(url)
    with store.reading() as connection:
        signatures = list(queries.signatures(connection))
    bench = Bench(signatures, sample=chosen.sample, seed=chosen.seed, verbose=chosen.verbose)
    rows: list[Row] = []
    if "1" in chosen.only:
        rows += bench.self_test()
    if "2" in chosen.only:
        rows += bench.damaged()
    if "3" in chosen.only and chosen.cases.exists():
        rows += bench.cases(chosen.cases)
    if "4" in chosen.only:
        rows += bench.foreign()
    if "5" in chosen.only:
        if not bench.times:
            bench.cases(chosen.cases)
        rows += bench.speed() + bench.baselines()
        rows += bench.growth([n for n in (1_000, 10_000, 100_000, 1_000_000) if n <= chosen.grow])
    for row in rows:
        print(f"{row.name:<52} {row.value:<48} {row.wanted}")


if __name__ == "__main__":
    main()
