"""How fast identify is, how it grows, and how other ways do on the same messages: python -m bench.matching.

Measure 5 of `bench.identify`, which prints these rows too. Times of answers are processor time, of one thread.
"""

from __future__ import annotations

import argparse
import gc
import random
import resource
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter, process_time

from app.match.identify import identify
from app.match.index import Index
from app.store.queries import Signature
from bench import rivals
from bench.foreign import SAID
from bench.synthetic import signatures as made_up
from bench.texts import Text, texts_of, with_typos

MIB = 1024 * 1024


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    name: str
    value: str
    wanted: str = ""

    def __str__(self) -> str:
        return f"{self.name:<52} {self.value:<64} {self.wanted}"


def share(right: int, count: int) -> str:
    """Return a share with its base."""
    return f"{100 * right / max(count, 1):.2f} % of {count:,}"


def memory_mb() -> float:
    """Return the most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def hostile() -> Iterator[tuple[str, Callable[[int], str]]]:
    """Yield texts that are made to be slow, as long as asked for."""
    line = "[2026-03-04 09:11:08 TP0] Decode batch. #running-req: 12, #token: 4096, gen throughput (token/s): 1200.3\n"
    noise = "abcdefgh (){}[]:'\"\n\\=._-/0123456789"
    for name, piece in (
        ("a log without an error", line),
        ("one letter", "a"),
        ("line ends", "\n"),
        ("short lines", "a\n"),
        ("exception lines", "ValueError: x is not supported\n"),
        ("frames", '  File "/a/sglang/srt/b.py", line 1, in f\n    raise ValueError(\n'),
        ("quotes and escapes", '"message": \\"\''),
        ("not ASCII", "│ é ü “x” is not supported\n"),
        ("broken box lines", "│ " + "x" * 70 + " │\n"),
        ("JSON lines", '{"message": "Traceback (most recent call last):", "a": {"b": {"c": {}}}}\n'),
        ("brackets", "[[[((({{{"),
        ("ANSI", "\x1b[31m\x1b["),
        ("one long line of words", "the value must be positive "),
    ):
        yield name, partial(_repeated, piece)
    yield "noise", lambda size: "".join(random.Random(1).choices(noise, k=size))


def _repeated(piece: str, size: int) -> str:
    return (piece * (size // len(piece) + 1))[:size]


def hostile_rows(index: Index) -> Iterator[Row]:
    """Yield the time for 1 MiB of each hostile text, and for 4 MiB beside it."""
    for name, made in hostile():
        times = []
        for size in (MIB, 4 * MIB):
            text = made(size)
            started = process_time()
            identify(index, text)
            times.append((process_time() - started) * 1e3)
        yield Row(f"5. 1 MiB: {name}", f"{times[0]:.0f} ms; 4 MiB: x{times[1] / times[0]:.1f}", "<= 300 ms, <= x4")


def race(signatures: Sequence[Signature], index: Index, r: random.Random) -> Iterator[Row]:
    """Yield accuracy and time of this and of others on the same messages, whole ones and ones with typos."""
    every = [t for t in texts_of(signatures) if t.letters >= 8]
    texts = r.sample(every, min(400, len(every)))
    messages = [t.rendered(r) for t in texts]
    literals = list(dict.fromkeys(t.parts[0::2] for t in every))

    def this(message: str) -> int | None:
        found = identify(index, message).matches
        return numbers.get(found[0].parts[0::2], -1) if found else None

    numbers = {text: n for n, text in enumerate(literals)}
    shapes = [_shape(text) for text in literals]
    ways: list[tuple[str, Callable[[], rivals.Answer], int]] = [("this", lambda: this, len(texts))]
    for name, make, most in (*ways, *rivals.rivals(literals)):
        started = perf_counter()
        answer = make()
        built = perf_counter() - started
        whole = _scored(answer, texts[:most], messages[:most], shapes)
        typos = _scored(answer, texts[:most], [with_typos(m, r) for m in messages[:most]], shapes)
        foreign = sum(answer(line) is not None for line in SAID[:most])
        made = "" if name == "this" else f"; made in {built:.1f} s"
        yield Row(
            f"5. {name}",
            f"right {whole[0]:.1f} % in {whole[1]:.2f} ms, typos {typos[0]:.1f} % in {typos[1]:.2f} ms; "
            f"lines of others that get an answer: {foreign} of {len(SAID[:most])}{made}",
        )
        del answer
        gc.collect()


def _scored(
    answer: rivals.Answer, texts: Sequence[Text], messages: Sequence[str], shapes: Sequence[str]
) -> tuple[float, float]:
    """Return the share of right answers in percent and the time of one in milliseconds."""
    started = process_time()
    found = [answer(message) for message in messages]
    each = (process_time() - started) / max(len(messages), 1) * 1e3
    right = sum(
        n is not None and n >= 0 and shapes[n] == _shape(t.parts[0::2]) for n, t in zip(found, texts, strict=True)
    )
    return 100 * right / max(len(texts), 1), each


def _shape(literals: Sequence[str]) -> str:
    return "\x00".join("".join(part.split()).lower() for part in literals)


def growth(mined: Sequence[Signature], sizes: Sequence[int]) -> Iterator[Row]:
    """Yield time and accuracy over ever more made-up records, of this and of FTS5 and `re` beside it."""
    measured: list[tuple[int, float]] = []
    for size in sizes:
        r = random.Random(size)
        started = perf_counter()
        index = Index(made_up(mined, size))
        built = perf_counter() - started
        some = r.sample(index.signatures, 200)
        asked = [(s, "".join(p if i % 2 == 0 else "4711" for i, p in enumerate(s.texts[0]))) for s in some]
        texts = [s.texts[0][0::2] for s in index.signatures]
        for _, message in asked[:20]:
            identify(index, message)  # warm
        times, right = [], 0
        for signature, message in asked:
            started = process_time()
            found = identify(index, message).matches
            times.append(process_time() - started)
            right += bool(found) and _shape(found[0].parts[0::2]) == _shape(signature.texts[0][0::2])
        each = sorted(times)[len(times) // 2] * 1e3
        measured.append((size, each))
        yield Row(
            f"5. growth: {size:,} records",
            f"p50 {each:.2f} ms, {right / 2:.1f} % right; built in {built:.0f} s, arrays {index.grams.nbytes / 1e6:.0f}"
            f" MB, process {memory_mb():.0f} MB",
        )
        del index
        gc.collect()
        yield from _beside(size, texts, asked)
    (small, fast), (large, slow) = measured[0], measured[-1]
    yield Row("5. growth", f"x{slow / fast:.1f} for x{large // small} records", f"< x{(large / small) ** 0.5:.0f}")


def _beside(size: int, texts: Sequence[rivals.Literals], asked: Sequence[tuple[Signature, str]]) -> Iterator[Row]:
    ways: list[tuple[str, Callable[[], rivals.Answer], int]] = [
        ("FTS5 BM25", partial(rivals.full_text, texts, "unicode61"), 100)
    ]
    if size <= 100_000:  # beyond it the patterns alone fill the memory
        ways.append(("brute-force re", partial(rivals.brute_force, texts), 20))
    for name, make, most in ways:
        answer = make()
        started, right = process_time(), 0
        for signature, message in asked[:most]:
            n = answer(message)
            right += n is not None and _shape(texts[n]) == _shape(signature.texts[0][0::2])
        each = (process_time() - started) / most * 1e3
        yield Row(f"   {name}", f"{each:.2f} ms, {100 * right / most:.1f} % right")
        del answer
        gc.collect()


def main() -> None:
    """Print the rows of measure 5."""
    from bench.identify import stored

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", default="", help="URL; default: the settings'")
    parser.add_argument("--grow", type=int, default=1_000_000, help="largest number of made-up records")
    parser.add_argument("--only", default="hrg", help="h: hostile texts, r: rivals, g: growth")
    chosen = parser.parse_args()
    signatures = stored(chosen.database)
    index = Index(signatures)
    if "h" in chosen.only:
        for row in hostile_rows(index):
            print(row, flush=True)
    if "r" in chosen.only:
        for row in race(signatures, index, random.Random(4)):
            print(row, flush=True)
    if "g" in chosen.only:
        del index
        for row in growth(signatures, [n for n in (10_000, 100_000, 1_000_000) if n <= chosen.grow]):
            print(row, flush=True)


if __name__ == "__main__":
    main()
