"""The way to a statement is read from source: conditions with the truth they must have."""

from __future__ import annotations

import ast
import itertools

import pytest

from app.triggers.conditions import Source, distance, leaves

TEXT = """
class Arguments:
    @property
    def checked(self):
        if self.size < 1:
            raise ValueError("small")
        elif self.kind not in ("a", "b"):
            assert self.other, "other"
        else:
            try:
                load()
            except ImportError:
                raise ValueError("missing")
"""


def steps(line: int) -> list[tuple[str, bool]]:
    goal = Source("a.py", TEXT).goal(line)
    assert goal is not None
    return [(step.test.text, step.want) for step in goal.steps]


def test_branches_taken_and_not_taken_are_steps() -> None:
    assert steps(6) == [("self.size < 1", True)]
    assert steps(8) == [
        ("self.size < 1", False), ("self.kind not in ('a', 'b')", True), ("self.other", False),
    ]  # fmt: skip


def test_a_handler_is_named_and_a_decorated_function_begins_at_its_decorator() -> None:
    goal = Source("a.py", TEXT).goal(13)

    assert goal is not None
    assert (goal.function, goal.entry, goal.handles) == ("Arguments.checked", 3, "ImportError")


def test_a_line_of_no_statement_is_no_goal() -> None:
    assert Source("a.py", TEXT).goal(99) is None


@pytest.mark.parametrize("text", ["a", "not a", "a and b", "a or not b", "not (a and (b or not c))", "(a or b) and c"])
def test_no_part_stands_against_a_truth_exactly_when_the_condition_has_it(text: str) -> None:
    node = ast.parse(text, mode="eval").body
    parts = [leaf.text for leaf in leaves(node)]

    for values in itertools.product((True, False), repeat=len(parts)):
        whole = eval(text, dict(zip(parts, values, strict=True)))
        assert (distance(node, True, iter(values)) == 0) == whole
        assert (distance(node, False, iter(values)) == 0) == (not whole)


def test_the_parts_say_which_truth_each_should_get() -> None:
    node = ast.parse("not a and (b or c)", mode="eval").body

    assert [(leaf.text, leaf.want) for leaf in leaves(node)] == [("a", False), ("b", True), ("c", True)]
    assert distance(node, True, iter([True, False, False])) == 2
    assert distance(node, True, iter([False, None, True])) == 0
