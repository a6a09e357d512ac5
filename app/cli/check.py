"""`errata check`."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli import checking, compare, options
from app.cli.options import Format, FormatOption
from app.errors import BadInput, Unavailable

if TYPE_CHECKING:
    from app.check.service import Question
    from app.settings import Settings

EXIT = {"pass": 0, "fail": 1, "unknown": 3}
MARKS = {"pass": "ok", "fail": "REFUSED", "unknown": "?", "not reached": "-"}
CONFIG_LIMIT = 1 << 20
SERVER_TIMEOUT_S = 330.0


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(context_settings={"ignore_unknown_options": False})(check)


def check(
    command: Annotated[
        list[str],
        typer.Argument(metavar="-- COMMAND...", help="The launch command, or - to read it from standard input."),
    ],
    *,
    engine: Annotated[str, typer.Option(help="A release of SGLang, such as 0.5.18; all: compare all of them.")] = "",
    hardware: Annotated[str, typer.Option(help="A simulated machine, such as h100-80gb.")] = "",
    gpus: Annotated[int | None, typer.Option(help="GPUs of one node; default: what the command needs.")] = None,
    model_config: Annotated[Path | None, typer.Option(help="config.json of a model not in the catalogue.")] = None,
    draft_model_config: Annotated[Path | None, typer.Option(help="config.json of the draft model.")] = None,
    fix: Annotated[bool, typer.Option("--fix", help="Where SGLang refuses, look for edits that start.")] = False,
    format_: FormatOption = Format.TEXT,
) -> int:
    """Run a launch command through SGLang's start-up on a simulated machine.

    Exit code 0: it starts. 1: SGLang refuses it. 2: it is no launch command. 3: not decided. With --engine all
    that is said of all installed releases, and what changed from one to the next.
    """
    chosen = options.settings()
    given = {
        "command": _command(command),
        "engine": engine,
        "hardware": hardware,
        "gpus": gpus,
        "model_config": _config(model_config),
        "draft_model_config": _config(draft_model_config),
        "fixes": fix or None,
    }
    if engine == compare.EVERY:
        return _compared(chosen, given, format_)
    body = _asked_of(chosen.server, given) if chosen.server else _run_here(chosen, given)
    if format_ is Format.JSON:
        options.print_json(body)
    else:
        print("\n".join(lines(body)))
    return EXIT[body["verdict"]]


def _command(words: list[str]) -> str:
    """Return the command as text: one argument is text already, several are words that a shell has split."""
    if words == ["-"]:
        return sys.stdin.buffer.read((1 << 20) + 1).decode("utf-8", "replace")
    return words[0] if len(words) == 1 else shlex.join(words)


def _config(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            return file.read(CONFIG_LIMIT + 1).decode()
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not UTF-8") from None


def _run_here(chosen: Settings, given: Mapping[str, Any]) -> dict[str, Any]:
    """Run the check in this process's own pool."""
    from app.check.service import Question
    from app.store import migrate

    with options.opened() as store:
        linked = migrate.exists(store) and migrate.is_current(store)
        checks = checking.checks(chosen, store, warm=False, linked=linked)
        question = Question(**{name: value for name, value in given.items() if value is not None})
        return asyncio.run(_checked(checks.service, checks.close, question))


async def _checked(service: Callable[[], Any], close: Callable[[], Any], question: Question) -> dict[str, Any]:
    try:
        tell = _progress if sys.stderr.isatty() else None
        body: dict[str, Any] = await service().check(question, None, tell)
        return body
    finally:
        await close()


def _progress(state: str) -> None:
    if state == "warming up":
        print("errata: starting the engine, which takes some seconds; `errata serve` keeps one ready", file=sys.stderr)


def _compared(chosen: Settings, given: Mapping[str, Any], format_: Format) -> int:
    """Run the command on every installed release."""
    given = {name: value for name, value in given.items() if name not in ("engine", "fixes")}
    server = chosen.server
    body = _asked_of(server, given, "/api/check/compare") if server else compare.here(chosen, given)
    if format_ is Format.JSON:
        options.print_json(body)
    else:
        print("\n".join(compare.lines(body)))
    return compare.exit_code(body)


def _asked_of(server: str, given: Mapping[str, Any], path: str = "/api/check") -> dict[str, Any]:
    """Ask a running server."""
    if not server.startswith(("http://", "https://")):
        raise BadInput("ERRATA_SERVER is an address such as http://127.0.0.1:8000")
    content = json.dumps({name: value for name, value in given.items() if value not in (None, "")}).encode()
    request = urllib.request.Request(
        server.rstrip("/") + path, content, {"content-type": "application/json", "accept": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=SERVER_TIMEOUT_S) as answer:
            body: dict[str, Any] = json.load(answer)
            return body
    except urllib.error.HTTPError as error:
        with error:
            detail = _detail(error.read(1 << 20)) or f"{server} answered {error.code}"
        raise (BadInput if error.code in (413, 422) else Unavailable)(detail) from None
    except (OSError, ValueError) as error:
        raise Unavailable(f"{server} cannot be asked: {getattr(error, 'reason', error)}") from None


def _detail(problem: bytes) -> str:
    try:
        value = json.loads(problem)
    except ValueError:
        return ""
    return str(value.get("detail", "")) if isinstance(value, dict) else ""


# -- text ---------------------------------------------------------------------------------------------------


def lines(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield an answer as lines for people."""
    from app.web.checkview import answer_view

    view = answer_view(body)
    hardware = body["hardware"]
    yield view.line
    if view.reason:
        yield f"  {_clean(view.reason)}"
        if "config.json" in view.reason:
            yield "  (--model-config FILE, for a draft --draft-model-config FILE)"
    yield f"  on {hardware['gpus']} x {hardware['title']} ({hardware['gpus_chosen']})"
    yield ""
    for stage in view.stages:
        yield f"  {MARKS[stage.outcome]:8} {stage.name}{f'  {stage.ms}' if stage.ms else ''}"
    if view.error is not None:
        yield ""
        yield f"{view.error.exception}: {_clean(view.error.message or view.error.condition)}"
        yield f"  {_clean(view.error.place)}"
        if view.error.record is not None:
            yield f"  record: {view.error.record.title}"
            yield f"          {view.error.record.url}   (errata show {view.error.record.url.rpartition('/')[2]})"
    for fix in view.fixes:
        yield ""
        yield f"{'starts' if fix.verdict == 'pass' else fix.verdict}: {_clean(fix.edit)}   (run on {_clean(fix.where)})"
        yield f"  {_clean(fix.command)}"
    if view.search and not view.fixes:
        yield ""
        yield "No edit was found that starts. What was tried:"
        yield from (f"  {one.word:11} {_clean(one.edit)}" for one in view.tried)
        yield f"  {view.search}"
    if view.memory:
        yield ""
        yield view.memory_title
        for share in view.memory:
            yield f"  {share.text:>11}  {share.name}"
    if view.facts:
        yield ""
        width = max(len(name) for name, _ in view.facts)
        for name, value in view.facts:
            yield f"  {name:{width}}  {_clean(value)}"
    for title, said in (
        ("Not calibrated", view.uncalibrated),
        ("Warnings", view.warnings),
        ("Assumed", view.assumptions),
    ):
        if said:
            yield ""
            yield f"{title}:"
            yield from (f"  - {_clean(line)}" for line in said)


def _clean(text: str) -> str:
    """Return text without control characters: an answer must not drive the reader's terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text).replace("\n", "\n  ")
