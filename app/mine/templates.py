"""From an expression to the text a reader meets: f-strings, `%`, `.format`, `+`, conditional expressions."""

from __future__ import annotations

import ast
import inspect
import re
import string
import textwrap
from collections.abc import Callable, Iterator
from typing import Protocol

from app.mine.source import clip, dotted, source_of
from app.mine.text import Hole, Number, Text, concatenated, either, hole, mapped, one

HOLE_LIMIT = 200
_PERCENT = re.compile(
    r"%(?:\((?P<key>[^)]*)\))?(?P<flags>[#0\- +]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d+))?[hlL]?(?P<type>.)",
    re.DOTALL,
)
_TRANSLATORS = {"_", "gettext", "gettext_lazy", "ugettext", "ugettext_lazy", "gettext_noop"}
_CONVERSIONS: dict[str, Callable[[object], str]] = {"s": str, "r": repr, "a": ascii}
_LAYOUTS: dict[str, Callable[[str], str]] = {"dedent": textwrap.dedent, "cleandoc": inspect.cleandoc, "str": str}
_STRIPPERS = {"strip", "lstrip", "rstrip", "removeprefix", "removesuffix"}


class Names(Protocol):
    """What an expression's names stand for, at the place where it is read."""

    def text(self, node: ast.Name | ast.Attribute) -> Text | None:
        """Return the text that a variable, constant or attribute holds, if anything is known."""

    def call(self, node: ast.Call) -> Text | None:
        """Return the text of a call of the package's own function, if it is one."""


def text_of(node: ast.expr, names: Names) -> Text:
    """Return what an expression reads as when it becomes a message."""
    if isinstance(node, ast.Constant):
        return one(node.value if isinstance(node.value, str) else Number(node.value))
    if isinstance(node, ast.JoinedStr):
        return concatenated(_formatted(value, names) for value in node.values)
    if isinstance(node, ast.BinOp):
        return _binary(node, names)
    if isinstance(node, ast.Call):
        return _call(node, names)
    if isinstance(node, ast.IfExp):
        return _choice((node.body, node.orelse), node, names)
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        return _choice(tuple(node.values), node, names)
    if isinstance(node, ast.NamedExpr):
        return text_of(node.value, names)
    if isinstance(node, (ast.Name, ast.Attribute)):
        found = names.text(node)
        if found is not None:
            return found
    return unknown(node)


def unknown(node: ast.expr) -> Text:
    """Return the expression as a hole."""
    return hole(clip(source_of(node), HOLE_LIMIT))


def _choice(arms: tuple[ast.expr, ...], node: ast.expr, names: Names) -> Text:
    texts = [text_of(arm, names) for arm in arms]
    if not any(text.known for text in texts):
        return unknown(node)
    whole = clip(source_of(node), HOLE_LIMIT)
    alternatives = either(texts, whole).alternatives
    return one(*alternatives[0]) if len(alternatives) == 1 else Text((Hole(whole),), alternatives)


def _formatted(node: ast.expr, names: Names) -> Text:
    if not isinstance(node, ast.FormattedValue):
        return text_of(node, names)
    if node.format_spec is not None:
        return _spelled(node, names)
    return _converted(node.value, chr(node.conversion) if node.conversion > 0 else "s", names)


def _spelled(node: ast.FormattedValue, names: Names) -> Text:
    """Return the text of a constant under a constant format spec, else a hole."""
    if isinstance(node.value, ast.Constant) and isinstance(node.format_spec, ast.JoinedStr) and node.conversion < 0:
        spec = text_of(node.format_spec, names).literal
        if spec is not None:
            try:
                return one(format(node.value.value, spec[:20]))
            except (ValueError, TypeError):
                pass
    return unknown(node.value)


def _converted(node: ast.expr, conversion: str, names: Names) -> Text:
    """Return the text of a value under `!s`, `!r` or `!a`."""
    if isinstance(node, ast.Constant):
        value = node.value
        return one(_CONVERSIONS[conversion](value))
    text = text_of(node, names)
    if conversion == "s":
        return text if text.known else _as_hole(text, node)
    if text.literal is not None:
        return one(_CONVERSIONS[conversion](text.literal))
    return _as_hole(text, node, plain=True)


def _as_hole(text: Text, node: ast.expr, *, plain: bool = False) -> Text:
    """Keep a lone hole (it may be a parameter or a reference); write out anything else."""
    if not plain and len(text.alternatives) == 1 and len(text.general) == 1:
        return text
    return unknown(node)


def _binary(node: ast.BinOp, names: Names) -> Text:
    if isinstance(node.op, ast.Add):
        left, right = text_of(node.left, names), text_of(node.right, names)
        if left.spelled or right.spelled:  # else it may be a sum of numbers
            return concatenated((left, right))
    elif isinstance(node.op, ast.Mod):
        left = text_of(node.left, names)
        if left.spelled and len(left.alternatives) == 1:
            return _percent(left, node.right, names)
    return unknown(node)


def _percent(base: Text, right: ast.expr, names: Names) -> Text:
    arguments = iter(right.elts) if isinstance(right, ast.Tuple) else None
    mapping = (
        {k.value: v for k, v in zip(right.keys, right.values, strict=True) if isinstance(k, ast.Constant)}
        if isinstance(right, ast.Dict)
        else None
    )
    specs = sum(
        len([m for m in _PERCENT.finditer(part) if m["type"] != "%"]) for part in base.general if isinstance(part, str)
    )
    index = 0

    def argument(match: re.Match[str]) -> ast.expr | str:
        nonlocal index
        index += 1
        if match["key"] is not None:
            found = mapping.get(match["key"]) if mapping is not None else None
            return found if found is not None else f"{clip(source_of(right), HOLE_LIMIT)}[{match['key']!r}]"
        if arguments is not None:
            for asterisk in (match["width"], match["precision"]):
                if asterisk == "*":
                    next(arguments, None)
            found = next(arguments, None)
            return found if found is not None and not isinstance(found, ast.Starred) else f"args[{index - 1}]"
        return right if specs == 1 else f"{clip(source_of(right), HOLE_LIMIT)}[{index - 1}]"

    texts: list[Text] = []
    for part in base.general:
        if not isinstance(part, str):
            texts.append(one(part))
            continue
        position = 0
        for match in _PERCENT.finditer(part):
            texts.append(one(part[position : match.start()]))
            position = match.end()
            if match["type"] == "%":
                texts.append(one("%"))
                continue
            value = argument(match)
            texts.append(hole(value) if isinstance(value, str) else _percent_value(match, value, names))
        texts.append(one(part[position:]))
    return concatenated(texts)


def _percent_value(match: re.Match[str], value: ast.expr, names: Names) -> Text:
    plain = not match["flags"] and match["width"] is None and match["precision"] is None
    if plain and match["type"] in "sra":
        return _converted(value, match["type"], names)
    if isinstance(value, ast.Constant) and "*" not in match[0] and len(match[0]) < 20 and match["key"] is None:
        try:
            return one(match[0] % (value.value,))
        except (ValueError, TypeError, OverflowError):
            pass
    return unknown(value)


def _call(node: ast.Call, names: Names) -> Text:
    function = node.func
    if isinstance(function, ast.Attribute):
        method = function.attr
        if method == "format":
            base = text_of(function.value, names)
            if base.known and len(base.alternatives) == 1:
                return _format(base, node, names)
        elif method == "join" and len(node.args) == 1:
            joined = _join(function.value, node.args[0], names)
            if joined is not None:
                return joined
            return unknown(node)
        elif method in _STRIPPERS and len(node.args) <= 1 and not node.keywords:
            base = text_of(function.value, names)
            arguments = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            if base.known and len(arguments) == len(node.args) and (arguments or not method.startswith("remove")):
                return mapped(base, lambda flat: str(getattr(flat, method)(*arguments)))
    name = dotted(function).rpartition(".")[2]
    if len(node.args) == 1 and not node.keywords:
        if name in _TRANSLATORS:
            return text_of(node.args[0], names)
        if name in _LAYOUTS:
            inner = text_of(node.args[0], names)
            if inner.known:
                return mapped(inner, _LAYOUTS[name])
            return unknown(node)
    return names.call(node) or unknown(node)


def _join(separator: ast.expr, items: ast.expr, names: Names) -> Text | None:
    """Return the joined text of a written-out list of strings."""
    if not isinstance(items, (ast.List, ast.Tuple)) or any(isinstance(i, ast.Starred) for i in items.elts):
        return None
    between = text_of(separator, names).literal
    if between is None or len(items.elts) > 50:
        return None
    texts: list[Text] = []
    for i, item in enumerate(items.elts):
        texts += [one(between)] * (i > 0) + [text_of(item, names)]
    joined = concatenated(texts)
    return joined if joined.known else None


def _format(base: Text, node: ast.Call, names: Names) -> Text:
    keywords = {k.arg: k.value for k in node.keywords if k.arg is not None}
    automatic = 0

    def field(name: str, conversion: str | None, spec: str) -> Text:
        nonlocal automatic
        first, rest = re.match(r"([^.\[]*)(.*)", name, re.DOTALL).groups()  # type: ignore[union-attr]
        if first == "":
            first = str(automatic)
            automatic += 1
        for _, inner, _, _ in string.Formatter().parse(spec):
            automatic += inner == ""
        value = _argument(node, keywords, first)
        if value is None:
            return hole(f"args[{first}]{rest}" if first.isdecimal() else first + rest)
        if rest:
            return hole(clip(source_of(value), HOLE_LIMIT) + rest)
        if not spec:
            return _converted(value, conversion or "s", names)
        if isinstance(value, ast.Constant) and not conversion and "{" not in spec and len(spec) < 20:
            try:
                return one(format(value.value, spec))
            except (ValueError, TypeError):
                pass
        return unknown(value)

    texts: list[Text] = []
    try:
        for part in base.general:
            if not isinstance(part, str):
                texts.append(one(part))
                continue
            for literal, name, spec, conversion in string.Formatter().parse(part):
                texts.append(one(literal))
                if name is not None:
                    texts.append(field(name, conversion, spec or ""))
    except ValueError:
        return unknown(node)
    return concatenated(texts)


def _argument(node: ast.Call, keywords: dict[str, ast.expr], first: str) -> ast.expr | None:
    if not first.isdecimal():
        return keywords.get(first)
    index = int(first)
    if index >= len(node.args) or any(isinstance(a, ast.Starred) for a in node.args[: index + 1]):
        return None
    return node.args[index]


def string_like(node: ast.expr) -> bool:
    """Tell whether an assignment of this expression is worth reading as text at once."""
    if isinstance(node, ast.JoinedStr):
        return True
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, (ast.Add, ast.Mod)) and (string_like(node.left) or string_like(node.right))
    if isinstance(node, ast.IfExp):
        return string_like(node.body) or string_like(node.orelse)
    if isinstance(node, ast.Call):
        function = node.func
        if isinstance(function, ast.Attribute):
            return function.attr in ("format", "join", *_STRIPPERS) and string_like(function.value)
        return isinstance(function, ast.Name) and function.id in _TRANSLATORS
    return False


def walk_calls(node: ast.expr) -> Iterator[ast.Call]:
    """Yield the calls in an expression, outermost first."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call):
            yield inner
