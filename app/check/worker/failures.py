"""Turn the exception that stopped a start-up into an error with its place, and judge what it proves.

An *explicit* error is one that a `raise` or `assert` statement decided. Anything else broke by itself, and
counts as a refusal only if nothing simulated took part in the statement that broke.
"""

from __future__ import annotations

import ast
import dis
import inspect
import linecache
import os
import sys
import sysconfig
import textwrap
import traceback
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from app.check.protocol import Error, Frame
from app.check.worker import packages

HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_PLAIN = ("arguments", "checks")
"""Stages in which no tensor is made and nothing is received: what breaks there breaks anywhere."""
MESSAGE_LIMIT = 4000
FRAMES_LIMIT = 60
_NETWORK = ("huggingface_hub/", "transformers/utils/hub.py", "requests/", "urllib3/", "httpx/", "httpcore/")
unanswered: list[str] = []
"""What a hub's client has said in this process of files that are not here; SGLang may repeat it in its own error."""
_VALIDATION = ("huggingface_hub/utils/_validators.py", "huggingface_hub/dataclasses.py", "huggingface_hub/errors.py")


@dataclass(frozen=True, slots=True)
class Step:
    """One frame of a traceback and the instruction it stopped at."""

    frame: types.FrameType
    line: int
    instruction: int

    @property
    def path(self) -> str:
        """Return the file's path below the folder that holds its package."""
        return short_path(self.frame.f_code.co_filename)

    @property
    def ours(self) -> bool:
        """Tell whether the frame is of this program, not of the engine or its libraries."""
        return self.frame.f_code.co_filename.startswith(HERE)

    @property
    def span(self) -> tuple[int, int]:
        """Return the first and last line of the statement or expression that the instruction belongs to."""
        positions = list(self.frame.f_code.co_positions())
        start, end, _, _ = positions[self.instruction // 2]
        return start or self.line, end or start or self.line

    @property
    def raises(self) -> bool:
        """Tell whether the instruction is that of a `raise` or `assert` statement."""
        opcode = self.frame.f_code.co_code[self.instruction]
        return dis.opname[opcode] == "RAISE_VARARGS"


def short_path(filename: str) -> str:
    """Return a file's path below the entry of sys.path that it was found in ("sglang/srt/server_args.py")."""
    entries = [
        entry for entry in (*sys.path, sysconfig.get_path("stdlib")) if entry and filename.startswith(entry + os.sep)
    ]
    if not entries:
        return os.path.basename(filename)
    return filename[len(max(entries, key=len)) + 1 :]


def steps(error: BaseException) -> list[Step]:
    """Return the frames of an exception's traceback, outermost first."""
    found = []
    trace = error.__traceback__
    while trace is not None:
        found.append(Step(trace.tb_frame, trace.tb_lineno, trace.tb_lasti))
        trace = trace.tb_next
    return found


def _source(step: Step) -> str:
    start, end = step.span
    return "".join(linecache.getline(step.frame.f_code.co_filename, number) for number in range(start, end + 1))


def _condition(source: str) -> str:
    """Return the condition of an assert statement, or "" if the source is none."""
    try:
        tree = ast.parse(textwrap.dedent(source))
    except SyntaxError:
        return ""
    found = tree.body[0] if tree.body else None
    return ast.unparse(found.test) if isinstance(found, ast.Assert) else ""


def guards(code: types.CodeType, line: int) -> tuple[str, ...]:
    """Return the conditions around a line of a function, outermost first; empty where the source is not to be had."""
    lines = linecache.getlines(code.co_filename)
    first = 1 if code.co_name == "<module>" else code.co_firstlineno
    try:
        block = lines if code.co_name == "<module>" else inspect.getblock(lines[first - 1 :])
        tree = ast.parse(textwrap.dedent("".join(block)))
    except SyntaxError:
        return ()
    return tuple(_around(tree, line - first + 1))


def _around(node: ast.AST, line: int) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        start, end = getattr(child, "lineno", None), getattr(child, "end_lineno", None)
        if start is not None and end is not None and not start <= line <= end:
            continue
        if isinstance(child, ast.If):
            test = ast.unparse(child.test)
            if any(_holds(statement, line) for statement in child.body):
                yield test
            elif any(_holds(statement, line) for statement in child.orelse):
                yield f"not ({test})"
        yield from _around(child, line)


def _holds(statement: ast.stmt, line: int) -> bool:
    return statement.lineno <= line <= (statement.end_lineno or statement.lineno)


def _shown(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        text = ""
    return text[:MESSAGE_LIMIT]


def describe(error: BaseException, *, said: str = "", rank: int = 0, want_traceback: bool = True) -> Error:
    """Return the error with its place. `said` is what was printed, for a parser that prints and exits."""
    trail = [step for step in steps(error) if not step.ours] or steps(error)
    last = trail[-1] if trail else None
    exiting = isinstance(error, SystemExit)
    message = (said.strip().splitlines() or [str(error.code)])[-1] if exiting else _shown(error)  # type: ignore[attr-defined]
    if last is None:
        return Error(type(error).__name__, message, "", 0, "", "", "", False, rank=rank)
    explicit = exiting or last.raises
    source = _source(last)
    start = last.span[0] if last.raises else last.line
    code = last.frame.f_code
    condition = _condition(source) if last.raises and type(error) is AssertionError else ""
    top = last.path.partition("/")[0].removesuffix(".py")
    return Error(
        exception=type(error).__name__,
        message=message[:MESSAGE_LIMIT],
        path=last.path,
        line=start,
        function=code.co_name,
        qualified=code.co_qualname,
        statement=linecache.getline(code.co_filename, start).strip()[:500],
        explicit=explicit,
        condition=condition[:1000],
        guards=guards(code, start)[-12:] if last.raises else (),
        foreign="" if top == "sglang" else top,
        rank=rank,
        traceback=_lines(error, trail) if want_traceback else (),
        frames=tuple(
            Frame(step.path, step.line, step.frame.f_code.co_name, _line(step)) for step in trail[-FRAMES_LIMIT:]
        ),
    )


def _line(step: Step) -> str:
    return linecache.getline(step.frame.f_code.co_filename, step.line).strip()[:500]


def _lines(error: BaseException, trail: list[Step]) -> tuple[str, ...]:
    """Return the traceback as Python prints it, with short paths and without our own frames."""
    found = ["Traceback (most recent call last):"]
    for step in trail[-FRAMES_LIMIT:]:
        found.append(f'  File "{step.path}", line {step.line}, in {step.frame.f_code.co_name}')
        if text := _line(step):
            found.append(f"    {text}")
    last = "".join(traceback.format_exception_only(type(error), error)).rstrip()
    return (*found, *last[:MESSAGE_LIMIT].splitlines())


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether an error proves that a real launch would be refused, and why. `stand_in` names what broke of ours."""

    refused: bool
    why: str
    stand_in: str = ""


def judge(error: BaseException, stage: str, absent: frozenset[str], made_up: set[types.CodeType]) -> Judgement:
    """Tell whether a real launch would meet this error too.

    Shape: `stage` is the one that was running; `absent` holds top-level modules that the request, or a plain install,
           leaves out; `made_up` the code that read a value which does not exist without a device.
    """
    trail = steps(error)
    if isinstance(error, (MemoryError, RecursionError)):
        return Judgement(False, "the check itself ran out of memory or depth")
    if not trail:
        return Judgement(False, "the error carries no place")
    last = trail[-1]
    if last.ours:
        if isinstance(error, FileNotFoundError):
            return Judgement(False, f"needs a program that a check does not run: {_shown(error)[:200]}")
        name = os.path.basename(last.frame.f_code.co_filename)
        return Judgement(False, f"a stand-in ({name}) broke: {type(error).__name__}", name)
    if reason := _outside(error, trail):
        return Judgement(False, reason)
    if isinstance(error, ModuleNotFoundError) and not last.raises:
        top = (error.name or "").partition(".")[0]
        if top in absent:
            return Judgement(True, f"the package {top!r} is not installed on the simulated machine")
        return Judgement(False, f"the module {error.name!r} is not simulated", f"package {top}")
    if last.frame.f_code in made_up:
        return Judgement(False, "the decision rests on a value that only a device can give")
    if any(said and said[:100] in _shown(error) for said in unanswered):
        return Judgement(False, f"needs files that a check does not have: {_shown(error)[:300]}")
    if isinstance(error, SystemExit) and not error.code:
        return Judgement(False, "the command asks for help or a version: it starts nothing")
    if isinstance(error, SystemExit):
        return Judgement(True, "SGLang's argument parser refuses the command")
    if last.raises:
        where = "SGLang" if last.path.startswith("sglang/") else last.path.partition("/")[0]
        return Judgement(True, f"{where} refuses with its own {type(error).__name__}")
    if lacking := _lacking_in_torch(error):
        return Judgement(False, f"the CPU build of torch has no {lacking}", "torch")
    if simulated := _simulated_operand(error, last):
        return Judgement(False, f"{type(error).__name__} in a statement that touches {simulated}", simulated)
    if stage not in _PLAIN and not isinstance(error, AttributeError):
        return Judgement(False, f"{type(error).__name__} that no statement of SGLang raised, past the arguments")
    return Judgement(True, f"SGLang breaks by itself with {type(error).__name__}; nothing simulated takes part")


def _lacking_in_torch(error: BaseException) -> str:
    """Return what SGLang looked for in a module of torch and did not find: a build for a device may have it."""
    module = error.obj if isinstance(error, AttributeError) else None
    if not isinstance(module, types.ModuleType) or module.__name__.partition(".")[0] != "torch":
        return ""
    return f"{module.__name__}.{getattr(error, 'name', '')}"


def _outside(error: BaseException, trail: list[Step]) -> str:
    """Return why the error comes from what a check does not have (files, network), or ""."""
    paths = [step.path for step in trail]
    if isinstance(error, (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError)):
        return f"a check has no such file: {_shown(error)[:300]}"
    if isinstance(error, (ConnectionError, TimeoutError)):
        return "a check has no network"
    if any(path.startswith(_NETWORK) and not path.startswith(_VALIDATION) for path in paths[-6:]):
        return f"needs a file from a model hub that the check does not have: {_shown(error)[:300]}"
    if type(error).__name__ == "HFValidationError":
        return f"names a folder that the check does not have: {_shown(error)[:300]}"
    return ""


def _simulated_operand(error: BaseException, step: Step) -> str:
    """Name what is simulated among the values that the broken statement uses, or return ""."""

    def simulated(value: Any) -> str:
        if packages.is_blank(value):
            return "a blank package"
        if getattr(value, "is_meta", None) is True:
            return "a tensor without storage"
        if type(value).__module__.startswith("app.check.worker"):
            return "a stand-in"
        return ""

    if found := simulated(getattr(error, "obj", None)):
        return found
    if "NoneType" in _shown(error):
        return "a missing value, which may be the simulation's doing"
    try:
        names = {node.id for node in ast.walk(ast.parse(textwrap.dedent(_source(step)))) if isinstance(node, ast.Name)}
    except SyntaxError:
        names = set(step.frame.f_code.co_varnames) | set(step.frame.f_code.co_names)
    scope = {**step.frame.f_globals, **step.frame.f_locals}
    for name in sorted(names):
        value = scope.get(name)
        if found := simulated(value):
            return found
        parts = value if isinstance(value, (list, tuple)) else ()
        for part in parts[:50]:
            if found := simulated(part):
                return found
    return ""
