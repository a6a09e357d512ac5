"""What somebody put into the one box: a launch command, an error, a record id or words."""

from __future__ import annotations

import re
from typing import Literal

Kind = Literal["command", "error", "record", "words", "nothing"]

MAX_LENGTH = 1024 * 1024
# Only the beginning decides: a log of a megabyte is recognised as fast as a line.
_LOOKED_AT = 20_000
_RECORD = re.compile(r"[0-9a-f]{16}")
_COMMAND = re.compile(
    r"""^\s*(?:\$\s+|\#\s+)?                                # a prompt
        (?:(?:export\s+)?[A-Z_][A-Z0-9_]*=\S*\s+)*           # FOO=1 before it
        (?:sudo\s+)?
        (?:docker\s+run\b|podman\s+run\b|(?:\S*/)?python[0-9.]*\s|(?:\S*/)?sglang\s|uv\s+run\b|srun\s|torchrun\s|--[a-z][\w-]*)""",
    re.VERBOSE | re.MULTILINE,
)
_LAUNCH = re.compile(r"sglang\.launch_server|sglang\s+serve|--model(?:-path)?[\s=]|--tp(?:-size)?[\s=]")
_TRACE = re.compile(r"Traceback \(most recent call last\)|^\s*File \"[^\"\n]+\", line \d+", re.MULTILINE)
# "ValueError: text", also behind a log prefix, quoted or in bold; a module may stand before the class.
_EXCEPTION = re.compile(
    r"(?:^|[\s\]:*`'\"(])(?:[A-Za-z_][\w.]{0,200}\.)?(?:[A-Z]\w{0,80})?(?:Error|Exception|Interrupt|Exit|Warning)\b[*`]{0,3}\s*:",
    re.MULTILINE,
)
_STATEMENT = re.compile(r"(?:assert|raise) +\S")
_BODY = re.compile(r"""["'](?:message|error|detail|object)["']\s{0,8}:|\bError code: \d""")
_LOG_LEVEL = re.compile(r"\b(?:ERROR|WARNING|CRITICAL|INFO|DEBUG)\b|\[\d{4}-\d\d-\d\d[ T]\d\d:\d\d")
_MOST_WORDS = 12


def kind_of(text: str) -> Kind:
    """Return what a text is, by its first 20,000 characters. Total: any text is something."""
    start = text[:_LOOKED_AT].strip()
    if not start:
        return "nothing"
    if _RECORD.fullmatch(start):
        return "record"
    if _TRACE.search(start):
        return "error"
    if _COMMAND.search(start) and _LAUNCH.search(start):
        return "command"
    if any(found.search(start) for found in (_EXCEPTION, _LOG_LEVEL, _BODY)) or _STATEMENT.match(start):
        return "error"
    if start.count("\n") >= 2 or len(start.split()) > _MOST_WORDS:
        return "error"
    return "words"
