"""Guards in plain words."""

from __future__ import annotations

import pytest

from app.mine.model import Site, Template
from app.mine.wording import trigger


def site(*guards: str, function: str = "C.f", flags: tuple[str, ...] = ()) -> Site:
    return Site("raise", "E", Template(), "p/m.py", function, 1, 1, "raise E", guards=guards, flags=flags)


CASES = {
    (): "Raised by `C.f`.",
    ("a",): "Raised by `C.f` when `a` is set.",
    ("a and not b",): "Raised by `C.f` when `a` is set and `b` is not set.",
    ("not (a or b > 1)", "c is None"): ("Raised by `C.f` when `a` is not set, `b` is at most 1, and `c` is None."),
    ("a == 'x' or b",): "Raised by `C.f` when either `a` is `'x'` or `b` is set.",
    ("not (a in ('x', 'y'))",): "Raised by `C.f` when `a` is neither `'x'` nor `'y'`.",
    ("len(a) == 0", "not (isinstance(b, (X, Y)))"): (
        "Raised by `C.f` when `a` is empty and `b` is no instance of `X` or `Y`."
    ),
    ("except OSError", "f(x)"): "Raised by `C.f` while handling `OSError`, when `f(x)` is true.",
    ("match a: case [b]",): "Raised by `C.f` when `a` matches `[b]`.",
    ("a < b < c",): "Raised by `C.f` when `a < b < c` holds.",
    ("match is None",): "Raised by `C.f` when `match` is None.",
    ("a and b and …",): "Raised by `C.f` when `a and b and …` holds.",
    # What one clause settles is not said again.
    ("not (a is not None and b)", "not (a is not None)"): "Raised by `C.f` when `a` is None.",
    ("not (a and b)", "a"): "Raised by `C.f` when `b` is not set and `a` is set.",
}


@pytest.mark.parametrize(("guards", "sentence"), CASES.items(), ids=map(str, CASES))
def test_reads_like_a_sentence(guards: tuple[str, ...], sentence: str) -> None:
    assert trigger(site(*guards)) == sentence


def test_names_the_option_behind_an_attribute() -> None:
    guarded = site("get_memory().unified and server_args.tp_size > 1", flags=("--tp-size", "--unified"))

    assert trigger(guarded) == (
        "Raised by `C.f` when `--unified` is set (`get_memory().unified`) and `--tp-size` (`server_args.tp_size`) is "
        "more than 1."
    )


def test_says_that_a_module_is_being_imported() -> None:
    assert trigger(site("a", function="<module>")) == "Raised by `p/m.py` while it is imported when `a` is set."


def test_keeps_a_backquote_from_ending_the_code() -> None:
    assert trigger(site("a == '`'")).count("`") % 2 == 0
