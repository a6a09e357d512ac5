"""A change is applied as it is said."""

from __future__ import annotations

import pytest

from app.check.fixes import changes
from app.check.fixes.changes import Change, Drop, Machine, Put, Release, Rename, Variable
from tests.check.fixes.table import ENGINE, NEXT, table, variant

START = variant("--model m --tp 2 --enable-unified-memory", SGLANG_A="1")


@pytest.mark.parametrize(
    ("change", "text", "arguments"),
    [
        (Drop("tp_size", "--tp 2"), "drop --tp 2", "--model m --enable-unified-memory"),
        (Put("--tp", ("4",), "tp_size", ("2",)), "change --tp 2 to 4", "--model m --tp 4 --enable-unified-memory"),
        (Put("--page-size", ("1",), "page_size"), "add --page-size 1",
         "--model m --tp 2 --enable-unified-memory --page-size 1"),
        (Rename("--tp", "--tensor-parallel-size"), "write --tensor-parallel-size instead of --tp", None),
    ],
)  # fmt: skip
def test_a_change_of_the_arguments(change: Change, text: str, arguments: str | None) -> None:
    after = change.apply(START, table)

    assert change.text == text
    assert (None if after is None else " ".join(after.arguments)) == arguments


def test_an_unknown_option_is_written_otherwise() -> None:
    start = variant("--model m --page_size 4 --enable_unified_memory x")

    first = Rename("--page_size", "--page-size").apply(start, table)
    second = Rename("--enable_unified_memory", "--enable-unified-memory").apply(start, table)

    assert first is not None
    assert second is not None
    assert first.arguments == ("--model", "m", "--page-size", "4", "--enable_unified_memory", "x")
    assert second.arguments == ("--model", "m", "--page_size", "4", "--enable-unified-memory")


def test_what_changes_nothing_is_no_change() -> None:
    nothing: list[Change] = [
        Drop("page_size", ""), Put("--tp", ("2",), "tp_size"), Put("--new-thing", (), "new_thing"), Release(ENGINE),
        Machine("h100-80gb", ""), Variable("SGLANG_A", "1"), Variable("SGLANG_B", None),
    ]  # fmt: skip

    assert [change.apply(START, table) for change in nothing] == [None] * len(nothing)


def test_an_edit_is_its_changes_in_order() -> None:
    edit: changes.Edit = (Release(NEXT), Put("--new-thing", (), "new_thing"), Variable("SGLANG_A", None))

    after = changes.applied(edit, START, table)

    assert after is not None
    assert (after.engine, after.environment, after.arguments[-1]) == (NEXT, (), "--new-thing")
    assert changes.text(edit) == "upgrade to SGLang 1.1, add --new-thing and drop SGLANG_A"
    assert changes.applied(edit[1:], START, table) is None
