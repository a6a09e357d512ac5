"""Command-line options that a file declares, and the expressions that read them.

Two ways of declaring are understood: a call `parser.add_argument("--tp-size", dest=...)`, and a class field whose
annotation carries metadata: `A[int, "help"]`, `Annotated[str, Arg(aliases=["--model"])]`.
"""

from __future__ import annotations

import ast
import re

from app.mine.source import dotted

_OPTION = re.compile(r"--[A-Za-z][\w.-]*\Z")
_ARGUMENTS = re.compile(r"(?:.*[._])?(?:args|opts|options|arguments)\Z|(?:.*\.)?get_[a-z_]*args\(\)\Z")
_ACCESSOR = re.compile(r"(?:[a-z_]\w*\.)?get_[a-z_]+\(\)(?:\.[a-z_]+)?\Z")


def registered(node: ast.Call) -> dict[str, tuple[str, ...]]:
    """Return the options of one `add_argument` call by field, empty if it declares no long option.

    A default that is read from a configuration class (`default=ServerArgs.tp_size`) names its field too.
    """
    options = tuple(option for option in _strings(node.args) if _OPTION.match(option))
    if not options:
        return {}
    field = options[0][2:].replace("-", "_")
    also = ""
    for keyword in node.keywords:
        value = keyword.value
        if keyword.arg == "dest" and isinstance(value, ast.Constant) and isinstance(value.value, str):
            field = value.value
        elif keyword.arg == "default" and isinstance(value, ast.Attribute) and dotted(value.value)[:1].isupper():
            also = value.attr
    if also and "--" + also.replace("_", "-") in options:
        return {also: options}  # one option, one name for it
    return {name: options for name in (field, also) if name}


def declared(node: ast.AnnAssign) -> tuple[str, tuple[str, ...]] | None:
    """Return the field and options of one annotated class field, if its metadata makes it an option."""
    annotation = node.annotation
    if (
        not isinstance(node.target, ast.Name)
        or not isinstance(annotation, ast.Subscript)
        or dotted(annotation.value).rpartition(".")[2] not in ("A", "Annotated")
        or not isinstance(annotation.slice, ast.Tuple)
    ):
        return None
    field = node.target.id
    primary = "--" + field.replace("_", "-")
    is_option = False
    options: list[str] = []
    for item in annotation.slice.elts[1:]:
        if isinstance(item, (ast.Constant, ast.JoinedStr, ast.BinOp)):
            is_option = True
        elif isinstance(item, ast.Call) and dotted(item.func).rpartition(".")[2] in ("Arg", "Option", "Parameter"):
            is_option = True
            options += [o for o in _strings(item.args) if _OPTION.match(o)]
            for keyword in item.keywords:
                if keyword.arg == "no_cli" and isinstance(keyword.value, ast.Constant) and keyword.value.value:
                    return None
                if keyword.arg == "cli_name" and isinstance(keyword.value, ast.Constant):
                    primary = str(keyword.value.value)
                if keyword.arg in ("aliases", "name") and isinstance(keyword.value, (ast.List, ast.Tuple)):
                    options += [o for o in _strings(keyword.value.elts) if _OPTION.match(o)]
    if not is_option or not _OPTION.match(primary):
        return None
    return field, tuple(dict.fromkeys((primary, *options)))


def _strings(nodes: list[ast.expr]) -> list[str]:
    return [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]


def canonical(field: str, options: tuple[str, ...]) -> str:
    """Return the option that stands for a field: the one its name gives, else the first."""
    own = "--" + field.replace("_", "-")
    return own if own in options else options[0]


def holds_arguments(base: str) -> bool:
    """Tell whether an expression's text names parsed arguments (`server_args`, `self.args`)."""
    return bool(_ARGUMENTS.match(base))


def is_accessor(base: str) -> bool:
    """Tell whether an expression's text is a configuration accessor (`get_memory()`)."""
    return bool(_ACCESSOR.match(base))
