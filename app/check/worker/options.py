"""What the release's own argument parser declares, as values that can leave the process."""

from __future__ import annotations

import argparse
import itertools
import json
import re
from typing import Any

from app.check.protocol import Json, Option

CHOICES_LIMIT = 400
TEXT_LIMIT = 300
_RETIRED = re.compile(r"[\[(\s]*(?:deprecated|removed|obsolete)\b", re.IGNORECASE)
_NAME = re.compile(r"(?<![\w-])--[a-z][\w-]*(?:=[\w.-]+)?", re.IGNORECASE)


def declared(parser: argparse.ArgumentParser) -> tuple[Option, ...]:
    """Return the options of `parser`, in its order."""
    return tuple(_option(action) for action in parser._actions if action.option_strings)


def _option(action: argparse.Action) -> Option:
    said = _said(action)
    retired = "deprecated" in type(action).__name__.lower() or _RETIRED.match(said) is not None
    return Option(
        names=tuple(action.option_strings),
        dest=action.dest,
        nargs="" if action.nargs is None else str(action.nargs),
        choices=tuple(_word(choice) for choice in itertools.islice(action.choices or (), CHOICES_LIMIT)),
        default=None if action.default is argparse.SUPPRESS else _plain(action.default),
        const=_plain(action.const if action.const is not None else getattr(action, "const_value", None)),
        type=_type(action),
        required=action.required,
        deprecated=retired,
        instead=_instead(action, said) if retired else "",
        help=said.partition("\n")[0][:TEXT_LIMIT],
    )


def _said(action: argparse.Action) -> str:
    return "" if action.help in (None, argparse.SUPPRESS) else str(action.help).strip()


def _type(action: argparse.Action) -> str:
    if action.nargs == 0:
        return "bool"
    kind = action.type if action.type is not None else str
    return str(getattr(kind, "__name__", type(kind).__name__))


def _instead(action: argparse.Action, said: str) -> str:
    """Return what a retired option points to: what its action was told, else the other option that its help names."""
    told: Any = getattr(action, "new_flag", None) or getattr(action, "error_message", None)
    if told:
        return str(told)[:TEXT_LIMIT]
    named = [name for name in _NAME.findall(said) if name.partition("=")[0] not in action.option_strings]
    return named[0] if named else said.partition("\n")[0][:TEXT_LIMIT]


def _word(value: Json) -> str:
    return str(getattr(value, "value", value))


def _plain(value: Any) -> Json:
    """Return a value as JSON; what is neither JSON nor short is its text."""
    value = getattr(value, "value", value)
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return str(value)[:TEXT_LIMIT]
    return json.loads(text) if len(text) <= TEXT_LIMIT * 10 else text[:TEXT_LIMIT]
