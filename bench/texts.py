"""What the measures of identify paste: the texts of records with random values in their holes."""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from app.match.normal import normal
from app.store.queries import Seen, Signature

_TYPO_SHARE = 0.04
_VALUES: tuple[Callable[[random.Random], str], ...] = (
    lambda r: str(r.randrange(100_000)),
    lambda r: f"{r.uniform(-5, 5000):.3f}",
    lambda r: r.choice(("None", "True", "False", "auto", "cuda", "fp8", "bfloat16", "triton", "0")),
    lambda r: "'" + word(r) + "'",
    lambda r: word(r) + "-" + word(r),
    lambda r: "/" + "/".join(word(r) for _ in range(r.randrange(1, 5))),
    lambda r: "[" + ", ".join(str(r.randrange(4096)) for _ in range(r.randrange(1, 6))) + "]",
    lambda r: "{" + ", ".join(f"'{word(r)}'" for _ in range(r.randrange(1, 4))) + "}",
    lambda r: f"torch.Size([{r.randrange(9)}, {r.randrange(9999)}])",
    lambda r: " ".join(word(r) for _ in range(r.randrange(2, 7))),
)


def word(r: random.Random) -> str:
    """Return a word that means nothing."""
    return "".join(r.choice("abcdefghijklmnoprstuvwxyz") for _ in range(r.randrange(3, 10)))


def value(r: random.Random) -> str:
    """Return what may fill a hole: a number, a name, a path, a list, some words."""
    return r.choice(_VALUES)(r)


@dataclass(frozen=True)
class Text:
    """A text of a record, at one place of it; `count` is at how many sites of how many releases it stands."""

    owner: Signature
    parts: tuple[str, ...]
    seen: Seen
    count: int = 1

    @property
    def letters(self) -> int:
        """Return how many characters of it are literal."""
        return sum(len(normal(part)) for part in self.parts[0::2])

    def rendered(self, r: random.Random) -> str:
        """Return it with random values, as a program prints it."""
        return "".join(p if i % 2 == 0 else value(r) for i, p in enumerate(self.parts))

    def printed(self, message: str) -> str:
        """Return the last line of its traceback."""
        exception = self.owner.exception
        return f"{exception}: {message}" if exception and message else exception or message


def framed(text: Text, message: str, *, statement: str = "") -> str:
    """Return a traceback that ends at the text's own raise; `statement` stands for its source line."""
    root = "/usr/local/lib/python3.12/dist-packages/"
    function = text.seen.function.rpartition(".")[2]
    frames = [
        f'  File "{root}sglang/srt/managers/scheduler.py", line 3130, in run_scheduler_process\n    scheduler.run()',
        f'  File "{root}{text.seen.path}", line {text.seen.lines[0]}, in {function}\n'
        f"    {statement or text.seen.statement}",
    ]
    return "\n".join(["Traceback (most recent call last):", *frames, text.printed(message)])


def texts_of(signatures: Iterable[Signature]) -> Iterator[Text]:
    """Yield every text of every record, at the newest place of it."""
    for signature in signatures:
        count = sum(len(seen.versions) for seen in signature.seen)
        for parts in signature.texts:
            yield Text(signature, parts, signature.seen[-1], count)


def places_of(signatures: Iterable[Signature]) -> Iterator[Text]:
    """Yield every record that is raised at each of its places, with its first text."""
    for signature in signatures:
        for seen in signature.seen if signature.exception else ():
            parts = signature.texts[0] if signature.texts else ("",)
            yield Text(signature, parts, seen, len(seen.versions))


def same_text(found: Signature, text: Text) -> bool:
    """Return whether a record has the text."""
    literals = tuple(map(normal, text.parts[0::2]))
    return any(tuple(map(normal, parts[0::2])) == literals for parts in found.texts)


def twin(found: Signature, place: Text) -> bool:
    """Return whether a record is at the same file, function, statement and text: the frame cannot tell it apart."""
    seen = place.seen
    return (found.texts[:1] == place.owner.texts[:1] or same_text(found, place)) and any(
        (s.path, s.function, s.statement) == (seen.path, seen.function, seen.statement) for s in found.seen
    )


def with_typos(text: str, r: random.Random) -> str:
    """Return the text with 4 % of its characters exchanged, doubled up with another one, or lost."""
    made = []
    for character in text:
        if r.random() >= _TYPO_SHARE:
            made.append(character)
            continue
        other = r.choice(string.ascii_lowercase)
        made.append((other, character + other, "")[r.randrange(3)])
    return "".join(made)
