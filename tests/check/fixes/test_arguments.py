"""An argument list is divided as argparse divides it, and edited without touching the rest."""

from __future__ import annotations

import pytest

from app.check.fixes import arguments
from tests.check.fixes.table import OPTIONS


def words(line: str) -> tuple[str, ...]:
    return tuple(line.split())


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--model m --tp 2", [("model_path", ("m",)), ("tp_size", ("2",))]),
        ("--tp-size=2 --page-size -1", [("tp_size", ("2",)), ("page_size", ("-1",))]),
        ("--graph-bs 1 2 4 --tp 2", [("graph_bs", ("1", "2", "4")), ("tp_size", ("2",))]),
        ("--enable-unified-memory true", [("enable_unified_memory", ()), ("true", ("true",))]),
        ("--bogus 1 2 --tp 2", [("--bogus", ("1", "2")), ("tp_size", ("2",))]),
        ("--tp", [("tp_size", ())]),
        ("", []),
    ],
)
def test_words_belong_to_the_option_before_them(line: str, expected: list[tuple[str, tuple[str, ...]]]) -> None:
    assert [(one.key, one.values) for one in arguments.given(words(line), OPTIONS)] == expected


@pytest.mark.parametrize(
    ("line", "key", "left"),
    [
        ("--model m --tp 2 --page-size 1", "tp_size", "--model m --page-size 1"),
        ("--tp 2 --model m --tensor-parallel-size=4", "tp_size", "--model m"),
        ("--old-backend fa3 --attention-backend triton", "attention_backend", ""),
        ("--bogus 1 --tp 2", "--bogus", "--tp 2"),
        ("--tp 2", "page_size", "--tp 2"),
    ],
)
def test_an_option_is_left_out_however_it_is_given(line: str, key: str, left: str) -> None:
    assert arguments.without(words(line), OPTIONS, key) == words(left)


@pytest.mark.parametrize(
    ("line", "name", "values", "after"),
    [
        ("--model m --tp 2 --page-size 1", "--tp-size", ("4",), "--model m --tp 4 --page-size 1"),
        ("--tp-size=2 --model m", "--tp-size", ("4",), "--tp-size=4 --model m"),
        ("--tp 2 --tp 8", "--tp", ("4",), "--tp 4"),
        ("--model m", "--page-size", ("64",), "--model m --page-size 64"),
        ("--model m", "--disable-radix-cache", (), "--model m --disable-radix-cache"),
        ("--old-backend fa3 --tp 2", "--attention-backend", ("triton",), "--attention-backend triton --tp 2"),
    ],
)
def test_a_value_is_put_where_the_option_stood(line: str, name: str, values: tuple[str, ...], after: str) -> None:
    assert arguments.put(words(line), OPTIONS, name, values) == words(after)
