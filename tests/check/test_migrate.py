"""A command is rewritten for another release by nothing but the releases' own tables."""

from __future__ import annotations

from typing import Any

import pytest

from app.check.migrate import FlagChange, Step, flag_changes, migrated
from app.check.options import Options
from app.check.protocol import Option


def option(*names: str, **values: Any) -> Option:
    dest = values.pop("dest", names[0].strip("-").replace("-", "_"))
    return Option(names=names, dest=dest, **values)


OLD = Options(
    "1.0",
    (
        option("--model-path", "--model"),
        option("--bs", dest="max_bs_decode", nargs=""),
        option("--some-sizes", dest="sizes_decode", nargs="+"),
        option("--no-graph", nargs="0", deprecated=True, instead="--graph-{decode,prefill}=disabled"),
        option("--no-prefill-graph", dest="graph_prefill", nargs="0", deprecated=True, instead="--graph-prefill=off"),
        option("--mode", choices=("a", "b")),
        option("--cp-mode", choices=("split",), deprecated=True, instead="--strategy"),
        option("--gone", nargs="0"),
    ),
)
NEW = Options(
    "1.1",
    (
        option("--model-path", "--model"),
        option("--max-bs-decode", nargs=""),
        option("--sizes-decode", nargs="+"),
        option("--graph-prefill"),
        option("--no-graph", nargs="0", deprecated=True, instead="--graph-{decode,prefill}=disabled"),
        option("--mode", choices=("b", "c")),
        option("--strategy", choices=("zigzag",)),
        option("--fast", nargs="0", deprecated=True, instead="--speed=high"),
        option("--speed", choices=("high", "low")),
        option("--dp-old", nargs="0", deprecated=True, instead="--dp <size>"),
    ),
)


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("--model x --bs 8", "--model x --max-bs-decode 8"),
        ("--bs=8 --mode b", "--max-bs-decode 8 --mode b"),
        ("--some-sizes 1 2 4 --mode b", "--sizes-decode 1 2 4 --mode b"),
        ("--no-prefill-graph --mode b", "--graph-prefill=off --mode b"),
        ("--gone word --mode b", "word --mode b"),
        ("--fast", "--speed=high"),
    ],
)
def test_options_get_the_names_of_the_newer_release(before: str, after: str) -> None:
    found, steps = migrated(words(before), [OLD], NEW)

    assert found == words(after)
    assert len(steps) == 1


@pytest.mark.parametrize(
    "text",
    [
        "--model x --mode c",
        "--no-graph",  # points to no one option
        "--dp-old",  # points to an option whose value nobody gave
        "--never-known 3",
        "positional",
    ],
)
def test_what_cannot_be_rewritten_stays(text: str) -> None:
    assert migrated(words(text), [OLD], NEW) == (words(text), ())


def test_a_value_that_the_successor_does_not_take_is_not_handed_on() -> None:
    found, steps = migrated(words("--cp-mode split --mode b"), [OLD], NEW)

    assert found == words("--mode b")
    assert steps == (Step("--cp-mode split", "", "1.1 has no --cp-mode"),)


def test_deprecated_options_may_be_left_alone() -> None:
    assert migrated(words("--fast --bs 8"), [OLD], NEW, deprecated=False)[0] == words("--fast --max-bs-decode 8")


def test_the_newest_release_that_knew_an_option_says_what_it_meant() -> None:
    older = Options("0.9", (option("--bs", dest="something_else", nargs="0"),))

    assert migrated(words("--bs 8"), [older, OLD], NEW)[0] == words("--max-bs-decode 8")


def test_what_became_of_the_options_of_a_command() -> None:
    found = flag_changes(words("--bs 8 --no-prefill-graph --mode a --gone --fast --model x --nonsense"), OLD, NEW)

    assert found == (
        FlagChange("--bs", "removed", "--max-bs-decode"),
        FlagChange("--no-prefill-graph", "removed", "--graph-prefill=off"),
        FlagChange("--mode a", "value not accepted"),
        FlagChange("--gone", "removed"),
        FlagChange("--fast", "new"),
    )


def test_what_was_deprecated_already_is_no_change() -> None:
    assert flag_changes(words("--no-graph"), OLD, NEW) == ()
    assert flag_changes(words("--fast"), NEW, NEW) == ()
