"""Write a changed launch in the asker's own form: the pasted text with the changed words. Pure.

The text is edited word by word and read again. Only if it then reads as exactly the launch that was run it is shown;
else the launch is written on one line.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from app.check import command
from app.check.command import LaunchCommand
from app.errors import ErrataError

TEXT_LIMIT = 8_000
_START = re.compile(r"launch_server(?:\.py)?|sglang\s+serve|sglang")
_BEGINS = re.compile(r"\s*(?:[$#>] )?(?:[A-Za-z_]\w*=\S*\s+)*")
_LAUNCHER = re.compile(r"(?:\S*python[\d.]*\s+(?:-m\s*sglang|\S*launch_server\.py)|\S*\bsglang\s+serve)")


def rewritten(
    text: str,
    launch: LaunchCommand,
    arguments: tuple[str, ...],
    environment: tuple[tuple[str, str], ...],
    release: str = "",
) -> str:
    """Return `text`, which was read as `launch`, with other arguments, variables and, where it names one, `release`."""
    changed = replace(launch, arguments=arguments, environment=environment)
    edited = _edited(text.strip(), launch, changed) if len(text) <= TEXT_LIMIT else None
    if edited is not None and release and launch.release:
        edited = re.sub(rf"(?<![\d.]){re.escape(launch.release)}(?![\d.])", release, edited)
    return changed.text() if edited is None or not _reads_as(edited, changed) else edited


def _reads_as(text: str, launch: LaunchCommand) -> bool:
    try:
        read = command.read(text)
    except ErrataError:
        return False
    return read.arguments == launch.arguments and dict(read.environment) == dict(launch.environment)


def _edited(text: str, launch: LaunchCommand, changed: LaunchCommand) -> str | None:
    spans = _spans(text, launch.arguments)
    if spans is None:
        return None
    glue = " \\\n  " if re.search(r"\\\n", text) else " "
    matcher = SequenceMatcher(None, launch.arguments, changed.arguments, autojunk=False)
    for operation, a, b, c, d in reversed(matcher.get_opcodes()):
        words = " ".join(map(shlex.quote, changed.arguments[c:d]))
        if operation == "replace":
            words = _quoted_alike(text[spans[a][0]], changed.arguments[c:d]) or words
            text = text[: spans[a][0]] + words + text[spans[b - 1][1] :]
        elif operation == "delete":
            start = spans[a - 1][1] if a else spans[a][0]
            text = text[:start] + text[spans[b - 1][1] :]
        elif operation == "insert":
            end = spans[a - 1][1] if a else 0
            text = text[:end] + glue + words + text[end:]
    return _with_variables(text, dict(launch.environment), dict(changed.environment))


def _quoted_alike(mark: str, words: Sequence[str]) -> str:
    """Return one word in the quotes that its forerunner had (a manifest's `"3"` is text, its `3` a number), else ""."""
    if mark not in "\"'" or len(words) != 1 or re.search(r"[\"'$`\\]", words[0]):
        return ""
    return f"{mark}{words[0]}{mark}"


def _spans(text: str, words: Sequence[str]) -> list[tuple[int, int]] | None:
    """Return where each word stands in `text`, in order; None where one is written in a way not looked for."""
    found = _START.search(text)
    place = found.end() if found else 0
    spans: list[tuple[int, int]] = []
    for word in words:
        spelled = dict.fromkeys((shlex.quote(word), f'"{word}"', f"'{word}'", word))
        match = re.compile("|".join(rf"(?<![^\s=]){re.escape(one)}(?!\S)" for one in spelled)).search(text, place)
        if match is None and word != "--model-path":
            return None
        # `sglang serve NAME` is read with the name of the option in front.
        spans.append((place, place) if match is None else match.span())
        place = spans[-1][1]
    return spans


def _with_variables(text: str, before: dict[str, str], after: dict[str, str]) -> str:
    for name in before.keys() - after.keys():
        text = re.sub(rf"(?:export\s+)?\b{re.escape(name)}=\S*\s*", "", text, count=1)
    for name, value in after.items():
        if name in before and before[name] != value:
            said = f"{name}={shlex.quote(value)}".replace("\\", "\\\\")
            text = re.sub(rf"\b{re.escape(name)}=\S*", said, text, count=1)
        elif name not in before and (launcher := _LAUNCHER.search(text)) is not None:
            start = launcher.start()
            # Only a shell takes an assignment at the beginning of a command; behind a wrapper or an image `env` does.
            line = re.split(r"(?<!\\)\n", text[:start])[-1].replace("\\\n", " ")
            how = "" if _BEGINS.fullmatch(line) else "env "
            text = f"{text[:start]}{how}{name}={shlex.quote(value)} {text[start:]}"
    return text
