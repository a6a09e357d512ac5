"""Why a site was not reached, where code can tell. What no check here proves is "not yet"."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Literal

from app.check.options import Options
from app.check.worker.standins import REGISTRY
from app.triggers.conditions import FunctionNode, Goal, Leaf, Step, leaves
from app.triggers.reads import Release
from app.triggers.search import Entry, Hunt, Search

Reason = Literal[
    "no caller", "abstract", "left out", "contradictory", "every choice passes", "same on every machine", "not yet"
]
SAID: dict[Reason, str] = {
    "no caller": "nothing in the release names its function",
    "abstract": "its function holds nothing but the statement, and no start-up enters it",
    "left out": "its function is among those that a check leaves out or replaces",
    "contradictory": "one of its conditions must be true and false",
    "every choice passes": "no value that the argument parser lets through makes its condition come out so",
    "same on every machine": "a condition without an option in it came out alike on every kind of simulated machine",
    "not yet": "the search found no command",
}
GROUPS = 3
"""Kinds of machine that a condition must have been met on before it counts as the same on all."""


def reason(search: Search, hunt: Hunt) -> tuple[Reason, str]:
    """Return why a site was not reached, and what shows it."""
    release, goal = search.proposer.release, hunt.goal
    entry: Entry = (goal.path, goal.entry)
    name = goal.function.rpartition(".")[2]
    if entry not in search.entered:
        if not _called(release, goal):
            return "no caller", name
        if replaced := _replaced(goal):
            return "left out", replaced
        function = release.source(goal.path).function(goal.entry)
        if function is not None and _bare(function):
            return "abstract", name
    if text := _contradiction(goal.steps):
        return "contradictory", text
    for step in goal.steps:
        for leaf in _needed(step):
            if _constant_choice(leaf, search.proposer.options):
                return "every choice passes", leaf.text
            if _same_everywhere(search, goal, step, leaf):
                return "same on every machine", leaf.text
    return "not yet", ""


def _called(release: Release, goal: Goal) -> bool:
    """Say whether anything names the goal's function, or its class where it is called by construction."""
    *owner, name = goal.function.split(".")
    found = release.mentions(owner[-1] if name.startswith("__") and owner else name)
    return found is None or bool(found)


def _replaced(goal: Goal) -> str:
    module = goal.path.removesuffix(".py").replace("/", ".")
    full = f"{module}.{goal.function}"
    return next((target for target in REGISTRY if target == full), "")


def _bare(function: FunctionNode) -> bool:
    body = [s for s in function.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    return len(body) == 1 and isinstance(body[0], ast.Raise)


def _contradiction(steps: Iterable[Step]) -> str:
    """Return a condition that must be true and false, both without a call in it."""
    wanted: dict[str, bool] = {}
    for step in steps:
        for leaf in _needed(step):
            if any(isinstance(part, ast.Call) for part in ast.walk(leaf.node)):
                continue
            if wanted.setdefault(leaf.text, leaf.want) is not leaf.want:
                return leaf.text
    return ""


def _needed(step: Step) -> list[Leaf]:
    """Return the parts that must all come out as they should."""
    node, want = step.test.node, step.want
    while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        node, want = node.operand, not want
    if isinstance(node, ast.BoolOp):
        if isinstance(node.op, ast.And) is not want:
            return []
        return [leaf for value in node.values if len(found := leaves(value, want)) == 1 for leaf in found]
    return leaves(node, want)


def _constant_choice(leaf: Leaf, options: Options) -> bool:
    """Say whether the part compares one option with constants and no value of the option can satisfy it."""
    node = leaf.node
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.left, ast.Attribute):
        return False
    option = options.setting(node.left.attr)
    if option is None or not option.choices or option.type != "str" or option.nargs not in ("", "0"):
        return False
    try:
        right = ast.literal_eval(node.comparators[0])
    except ValueError:
        return False
    values = [*option.choices, option.default]
    compared = isinstance(node.ops[0], (ast.In, ast.NotIn, ast.Eq, ast.NotEq))
    return compared and not any(_holds(node.ops[0], value, right) is leaf.want for value in values)


def _holds(operator: ast.cmpop, left: object, right: object) -> bool:
    if isinstance(operator, (ast.In, ast.NotIn)):
        inside = isinstance(right, (tuple, list, set, dict, str)) and left in right
        return inside is isinstance(operator, ast.In)
    return (left == right) is isinstance(operator, ast.Eq)


def _same_everywhere(search: Search, goal: Goal, step: Step, leaf: Leaf) -> bool:
    """Say whether a condition of one part that reads nothing of the command never came out as it should."""
    if len(leaves(step.test.node)) != 1:
        return False
    key = (goal.path, goal.entry, step.test.key)
    if (*key, step.want) in search.met or len(search.machines_met.get(key, ())) < GROUPS:
        return False
    function = search.proposer.release.source(goal.path).function(goal.entry)
    return function is not None and _of_the_module(leaf.node, function)


def _of_the_module(node: ast.expr, function: FunctionNode) -> bool:
    """Say whether an expression has only names of the module in it, called without arguments."""
    own = {argument.arg for argument in ast.walk(function) if isinstance(argument, ast.arg)}
    own |= {name.id for name in ast.walk(function) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}
    parts = list(ast.walk(node))
    return (
        not any(isinstance(part, ast.Name) and part.id in own for part in parts)
        and not any(isinstance(part, ast.Call) and (part.args or part.keywords) for part in parts)
        and not any(isinstance(part, (ast.Attribute, ast.Subscript)) for part in parts)
    )
