"""Which other values of an option are worth a try: those that are named, then those near the present one. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice

from app.check.protocol import Option

CHOICES_TRIED = 6
NUMBERS_TRIED = 8
LARGEST = 1e12
HIGHEST_FRACTION = 0.95
_FRACTION_STEPS = (0.05, -0.05, 0.1, -0.1, 0.2, -0.2)


def others(option: Option, present: str | None, named: Sequence[str], numbers: Sequence[float]) -> tuple[str, ...]:
    """Return values of `option` to try instead of `present`, best first.

    Shape: `named` stand beside the option in the error or its conditions, `numbers` are all in its message. The default
    is not among them: leaving the option out is another change.
    """
    if option.nargs == "0":
        return ()
    if option.choices:
        found: Iterator[str] = _choices(option, present, named)
    elif is_number(option):
        found = _numbers(option, _number(present), [n for n in map(_number, named) if n is not None], numbers)
    else:
        found = (value for value in named if value.lower() not in ("none", "true", "false"))
    default = None if option.default is None or present is None else str(option.default)
    return tuple(dict.fromkeys(value for value in found if value not in (present, default)))


def directed(values: Sequence[str], present: str | None, direction: int) -> list[str]:
    """Return the values on the side of the present number that `direction` names; all of them where it names none."""
    before = _number(present)
    if not direction or before is None:
        return list(values)
    return [value for value in values if (after := _number(value)) is None or (after - before) * direction > 0]


def distance(option: Option, present: str | None, value: str) -> float:
    """Return how far a number is from the present one, in doublings; 0 for what is no number."""
    before, after = _number(present), _number(value)
    if before is None or after is None or not is_number(option):
        return 0.0
    return abs(math.log2(after / before)) if before > 0 and after > 0 else 4.0


def is_number(option: Option) -> bool:
    """Say whether an option takes numbers: by its type's name or its default."""
    kind = option.type.lower()
    plain = isinstance(option.default, (int, float)) and not isinstance(option.default, bool)
    return "int" in kind.replace("print", "") or "float" in kind or plain


def _choices(option: Option, present: str | None, named: Sequence[str]) -> Iterator[str]:
    yield from (value for value in named if value in option.choices)
    yield from islice((value for value in option.choices if value not in named and value != present), CHOICES_TRIED)


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return value if abs(value) < LARGEST else None


def _numbers(option: Option, present: float | None, named: Sequence[float], numbers: Sequence[float]) -> Iterator[str]:
    whole = not ("float" in option.type.lower() or isinstance(option.default, float))
    said = [n for n in (*named, *numbers) if abs(n) < LARGEST]
    near = _whole_near(present, said) if whole else _broken_near(present, said)
    for value in islice(dict.fromkeys(near), NUMBERS_TRIED):
        yield str(int(value)) if value == int(value) and (whole or abs(value) > 1) else f"{value:g}"


def _whole_near(present: float | None, named: Sequence[float]) -> Iterator[float]:
    """Yield whole numbers: the named ones, multiples and divisors of them near the present value, then halves."""
    whole = [n for n in named if n == int(n) and n != present]
    if present is None:
        yield from whole
        return
    yield from (n for n in whole if n > 0)
    for n in whole:
        if n > 1 and present > 1:
            if n < present:
                yield present - present % n
                yield present - present % n + n
            if (common := math.gcd(int(n), int(present))) > 1:
                yield common
    yield from (n for n in whole if n <= 0)
    half = present
    while half >= 2:
        half = half // 2
        yield half
    yield present * 2


def _broken_near(present: float | None, named: Sequence[float]) -> Iterator[float]:
    """Yield numbers that need not be whole. Where the present one is none or up to 1 they are fractions, below 1."""
    if present is None or 0 < present <= 1:
        yield from (n for n in named if n != present and 0 < n < 1)
        if present is not None:
            steps = (round(present + step, 3) for step in _FRACTION_STEPS)
            yield from (value for value in steps if 0 < value <= HIGHEST_FRACTION)
    else:
        yield from (n for n in named if n != present)
        yield from (present / 2, present * 2, 1.0)
