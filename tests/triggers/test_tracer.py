"""A run tells which conditions it met, how far each was from either truth, and what was compared."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from app.triggers.tracer import Watch

SOURCE = """
CHOICES = ("a", "b")


def check(kind, size):
    if kind in CHOICES and size > 4:
        raise ValueError("no")
    return kind


def unwatched():
    return [x for x in range(3) if x]
"""


@pytest.fixture
def module(tmp_path: Path) -> ModuleType:
    (tmp_path / "watched_module.py").write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("watched_module", tmp_path / "watched_module.py")
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def seen(module: ModuleType, tmp_path: Path, *calls: tuple[str, int]) -> list[Any]:
    watch = Watch(tmp_path, {"watched_module.py": [7]})
    before = sys.gettrace()
    sys.settrace(watch.call)
    try:
        for arguments in calls:
            module.check(*arguments)
        module.unwatched()
    finally:
        sys.settrace(before)
    return watch.seen()


def test_the_nearest_visit_counts_for_each_truth(module: ModuleType, tmp_path: Path) -> None:
    ((path, entry, last, tests),) = seen(module, tmp_path, ("z", 1), ("a", 3))

    true, false = tests["6:7"]
    assert (path, entry, last) == ("watched_module.py", 5, 8)
    assert true == [1, [True, False], [["a", ["a", "b"]], [3, 4]]]
    assert false[0] == 0


def test_a_function_that_was_not_entered_is_not_told_of(module: ModuleType, tmp_path: Path) -> None:
    assert seen(module, tmp_path) == []
