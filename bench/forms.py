"""The forms in which errors are pasted: a traceback or a message as logs, collectors, clients and people print it."""

from __future__ import annotations

import json
import random
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

_STAMP = "2026-03-04 09:11:08"
_CALLER = (
    "/usr/local/lib/python3.12/dist-packages/sglang/srt/managers/scheduler.py",
    "run_scheduler_process",
    "scheduler.run()",
)
_SIGQUIT = "Received sigquit from a child process. It usually means the child failed."


@dataclass(frozen=True)
class Error:
    """One error to print: `path` is what the wheel calls the file, `statement` the line that raises."""

    exception: str
    message: str
    path: str
    line: int
    function: str
    statement: str

    @property
    def last(self) -> str:
        """Return the last line of its traceback."""
        return f"{self.exception}: {self.message}" if self.message else self.exception

    def traceback(self, root: str = "/sgl-workspace/sglang/python/") -> list[str]:
        """Return the lines that Python prints."""
        (caller, calling, call), name = _CALLER, self.function.rpartition(".")[2]
        return [
            "Traceback (most recent call last):",
            f'  File "{caller}", line 3130, in {calling}',
            f"    {call}",
            f'  File "{root}{self.path}", line {self.line}, in {name}',
            f"    {self.statement}",
            *self.last.split("\n"),
        ]


def _ranks(error: Error, r: random.Random) -> str:
    """Return the log of eight ranks whose lines come mixed, each line with its rank."""
    queues = {
        f"[{_STAMP} TP{rank}] ": ["Scheduler hit an exception: " + error.traceback()[0], *error.traceback()[1:]]
        for rank in range(8)
    }
    lines = []
    while queues:
        rank = r.choice(sorted(queues))
        lines.append(rank + queues[rank].pop(0))
        if not queues[rank]:
            del queues[rank]
    return "\n".join([*lines, f"[{_STAMP}] {_SIGQUIT}", "Killed"])


def _not_last(error: Error, r: random.Random) -> str:
    other = [
        "Traceback (most recent call last):",
        '  File "/usr/lib/python3.12/multiprocessing/connection.py", line 399, in _recv',
        "    raise EOFError",
        "EOFError",
    ]
    head = f"[{_STAMP} TP{r.randrange(8)}] Scheduler hit an exception: "
    return "\n".join([head + error.traceback()[0], *error.traceback()[1:], "", *other, f"[{_STAMP}] {_SIGQUIT}"])


def _each(prefix: str, suffix: str = "", *, strip: bool = False) -> Callable[[Error, random.Random], str]:
    def form(error: Error, r: random.Random) -> str:
        rank = r.randrange(8)
        return "\n".join(
            prefix.format(rank=rank, line=n) + (line.strip() if strip else line) + suffix
            for n, line in enumerate("\n".join(error.traceback()).split("\n"))
        )

    return form


def _json_lines(error: Error, r: random.Random) -> str:
    text = "\x1b[31m" + "\n".join(error.traceback()) + "\x1b[0m"
    return "\n".join(
        [
            json.dumps({"ts": _STAMP, "level": "info", "message": "Decode batch"}),
            json.dumps({"ts": _STAMP, "level": "error", "rank": r.randrange(8), "message": text}),
        ]
    )


def _box(error: Error, r: random.Random) -> str:
    width = r.choice((88, 96, 120))
    lines = [
        line[at : at + width]
        for line in "\n".join(error.traceback()).split("\n")
        for at in range(0, max(1, len(line)), width)
    ]
    edge = "─" * (width + 2)
    return "\n".join([f"╭{edge}╮", *(f"│ {line:<{width}} │" for line in lines), f"╰{edge}╯"])


def _pane(error: Error, r: random.Random) -> str:
    """Return a pane of a split terminal: the other pane's edge stands after every line."""
    width = r.choice((90, 110))
    lines = "\n".join(error.traceback()).split("\n")
    pieces = [line[at : at + width] for line in lines for at in range(0, max(1, len(line)), width)]
    return "\n".join(f"{piece:<{width}}│" for piece in pieces)


def _chained(error: Error, r: random.Random) -> str:
    outer = [
        "Traceback (most recent call last):",
        '  File "/opt/app/serve.py", line 12, in main',
        "    start()",
        "RuntimeError: the engine did not start",
    ]
    how = r.choice(
        (
            "During handling of the above exception, another exception occurred:",
            "The above exception was the direct cause of the following exception:",
        )
    )
    return "\n".join([*error.traceback(), "", how, "", *outer])


def _group(error: Error, r: random.Random) -> str:
    inner = "\n".join(error.traceback()).split("\n")
    return "\n".join(
        [
            "  + Exception Group Traceback (most recent call last):",
            '  |   File "/opt/app/serve.py", line 12, in main',
            "  |     await start()",
            "  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)",
            "  +-+---------------- 1 ----------------",
            *("    | " + line for line in inner),
            "    +------------------------------------",
        ]
    )


def _carets(error: Error, r: random.Random) -> str:
    lines = error.traceback("/opt/venv/lib/python3.12/site-packages/")
    return "\n".join([*lines[:5], "    " + "^" * len(error.statement), *lines[5:]])


def _markdown(error: Error, r: random.Random) -> str:
    return f"**{error.exception}**: {error.message.replace('_', chr(92) + '_')}"


def _bare_names(error: Error, r: random.Random) -> str:
    name, function = error.path.rpartition("/")[2], error.function.rpartition(".")[2]
    return (
        f"{error.last}\n  {name}, line {error.line}, in {function}\n  scheduler.py, line 3130, in run_scheduler_process"
    )


def _wrapped(error: Error, r: random.Random) -> str:
    prefix = f"[{_STAMP} TP1] "
    return prefix + "\n".join(textwrap.wrap(error.last, r.randrange(40, 72), break_long_words=False))


# Forms of a whole traceback: the site is expected.
TRACEBACKS: dict[str, Callable[[Error, random.Random], str]] = {
    "eight ranks, lines mixed": _ranks,
    "not the last error": _not_last,
    "docker compose": _each("sglang-1  | "),
    "compose and rank": _each(f"sglang_service-1  | [{_STAMP}.123 DP{{rank}} TP3] "),
    "first bracket lost": _each(f"{_STAMP} TP{{rank}}] "),
    "Ray": _each("(WorkerDict pid=27{rank}2, ip=10.1.2.3) ", " " * 12),
    "Ray actor class": _each("(SGLangEngine pid=27{rank}2) "),
    "Kubernetes, blanks lost": _each("2026-03-04T09:11:08.{line:09d}Z stderr F ", strip=True),
    "cloud log, blanks lost": _each("2026-03-04T09:11:08.123Z ERROR ", strip=True),
    "module - LEVEL -": _each(f"{_STAMP},948 - sglang.launch - ERROR - "),
    "gpustack": _each("2026-03-04T09:11:08+08:00 - gpustack.worker.serve - ERROR - "),
    "dynamo": _each("2026-03-04T09:11:08.125Z ERROR dynamo.sglang.worker: "),
    "slime": _each(f"(RolloutManager pid=81, ip=10.0.0.{{rank}}) [{_STAMP} TP{{rank}}] "),
    "torchrun": _each("[rank{rank}]: "),
    "systemd": _each("Mar  4 09:11:08 node-3 python3[12{rank}]: "),
    "box": _box,
    "tmux pane": _pane,
    "JSON lines with colours": _json_lines,
    "chained": _chained,
    "exception group": _group,
    "carets": _carets,
    "quoted mail": _each("> "),
    "blanks lost": _each("", strip=True),
}
# Forms of the message: a record of that text is expected.
MESSAGES: dict[str, Callable[[Error, random.Random], str]] = {
    "message and class": lambda e, r: e.last,
    "log line": lambda e, r: f"[{_STAMP} TP{r.randrange(8)}] {e.last}",
    "OpenAI body": lambda e, r: json.dumps({"error": {"message": e.message, "type": "BadRequestError", "code": 400}}),
    "object error": lambda e, r: json.dumps({"object": "error", "message": e.message, "code": 400}, indent=2),
    "client repr": lambda e, r: "Error code: 400 - " + repr({"object": "error", "message": e.message, "code": 400}),
    "bytes repr": lambda e, r: "got " + repr(json.dumps({"object": "error", "message": e.message}).encode()),
    "markdown": _markdown,
    "title case": lambda e, r: re.sub(r"\b[a-z]", lambda m: m.group().upper(), e.last),
    "wrapped, rank before": _wrapped,
    "wrapper text": lambda e, r: f"RuntimeError: Failed to load LoRA adapter my-lora: {e.message}",
    "frames below, bare names": _bare_names,
    "in backticks": lambda e, r: f"I get `{e.last}` when I start the server",
    "issue title": lambda e, r: f"[Bug] {e.last}",
}
