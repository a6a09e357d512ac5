"""Other values of an option: named ones first, then near ones."""

from __future__ import annotations

import pytest

from app.check.fixes.values import others
from tests.check.fixes.table import OPTIONS


@pytest.mark.parametrize(
    ("name", "present", "named", "numbers", "first"),
    [
        ("--tp", "8", [], [28.0], ["28", "4"]),
        ("--tp", "8", ["4"], [], ["4"]),
        ("--page-size", "1000", [], [64.0], ["64", "960", "1024"]),
        ("--page-size", None, ["1"], [], ["1"]),
        ("--attention-backend", "fa3", ["flashinfer"], [], ["flashinfer", "triton"]),
        ("--attention-backend", None, ["none"], [], ["fa3", "triton", "flashinfer"]),
        ("--mem-fraction-static", "0.9", [], [0.93], ["0.93", "0.95", "0.85"]),
        ("--mem-fraction-static", "0.93", [], [102816385.0, 1.0], ["0.88", "0.83"]),
        ("--mem-fraction-static", None, [], [2353.28], []),
        ("--served-name", "a:b", ["ab", "None"], [3.0], ["ab"]),
        ("--enable-unified-memory", None, ["1"], [1.0], []),
    ],
)
def test_the_first_values(
    name: str, present: str | None, named: list[str], numbers: list[float], first: list[str]
) -> None:
    option = OPTIONS.named(name)
    assert option is not None

    found = others(option, present, named, numbers)

    assert list(found[: len(first)]) == first
    assert bool(found) is bool(first)
    assert present not in found


@pytest.mark.parametrize("present", ["inf", "nan", "-1e400", "9" * 400, "x", ""])
def test_what_is_no_number_breaks_nothing(present: str) -> None:
    for name in ("--tp", "--mem-fraction-static"):
        option = OPTIONS.named(name)
        assert option is not None
        assert all(len(value) < 20 for value in others(option, present, ["inf"], [1e300, 0.0]))
