"""The conditions under which control reaches a statement, and the configuration fields that they read.

Convention: a guard is source text that holds when the site fires, outermost first. A branch not taken reads
`not (condition)`, of a condition that is itself a negation only what is negated; an assert, which fires when its
condition is false, ends with that negation too; a handler reads `except X`, a case `match subject: case pattern`.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from app.mine.source import clip, source_of

GUARD_LIMIT = 300
MAX_GUARDS = 12
MAX_EXITS = 6
_WORD = re.compile(r"[^\W\d]\w*")
_ORDINARY = {"self", "cls", "not", "and", "or", "is", "in", "None", "True", "False", "len", "isinstance", "if", "else"}


@dataclass(slots=True)
class Guard:
    """One condition; its text is written when a site needs it.

    Shape: `leaves` is how an early exit leaves ("raise", "return", ...), "" for a branch that control is in.
    """

    node: ast.expr | None
    negated: bool = False
    fixed: str = ""
    leaves: str = ""
    repeated: bool = False  # tested before each iteration of a loop
    clock: int = 0  # when it was established, to tell whether its names were assigned since
    fields: set[str] | None = None  # the configuration fields it reads, once known
    _text: str = ""
    _words: frozenset[str] | None = None

    @property
    def text(self) -> str:
        """Return the guard as it is shown."""
        if not self._text:
            self._text = self.fixed or _written(self.node, self.negated)
        return self._text

    @property
    def words(self) -> frozenset[str]:
        """Return the identifiers it mentions that mean something."""
        if self._words is None:
            self._words = frozenset(_WORD.findall(self.text)) - _ORDINARY
        return self._words


def _written(node: ast.expr | None, negated: bool) -> str:
    if node is None:
        return ""
    if not negated:
        return clip(source_of(node), GUARD_LIMIT)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return clip(source_of(node.operand), GUARD_LIMIT)
    return f"not ({clip(source_of(node), GUARD_LIMIT - 6)})"


def chosen(guards: list[Guard], own: frozenset[str]) -> list[Guard]:
    """Return the guards worth showing for a site that itself mentions the names `own`.

    Of early exits the nearest stay, and of those that raise (which are other errors) only what shares a name with
    the site or a branch around it. The innermost guards win where there are too many.
    """
    branches = [guard for guard in guards if not guard.leaves]
    subject = own.union(*(guard.words for guard in branches)) if branches else own
    kept: list[Guard] = []
    exits = 0
    for guard in reversed(guards):
        if guard.leaves:
            if exits >= MAX_EXITS or (guard.leaves == "raise" and not (guard.words & subject)):
                continue
            exits += 1
        kept.append(guard)
        if len(kept) == MAX_GUARDS:
            break
    kept.reverse()
    return kept


def words_of(text: str) -> frozenset[str]:
    """Return the identifiers of a text that mean something."""
    return frozenset(_WORD.findall(text)) - _ORDINARY
