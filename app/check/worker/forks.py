"""Fork one confined child per check from a preloaded engine, and pass on what they say.

The parent is one thread: it reads jobs from its standard input, forks, collects lines from its children's
pipes, kills what is over its time, and answers on its standard output. A child is not trusted: its lines are
read strictly and bounded, and whatever is no outcome is `Lost`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import json
import os
import resource
import selectors
import shutil
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from app.check.protocol import (
    Answer,
    Cancel,
    Job,
    Lost,
    Model,
    Outcome,
    Pools,
    Progress,
    ProtocolError,
    Reason,
    Request,
    Stage,
    dump,
    load,
)
from app.processes import end_with_parent

CHUNK = 1 << 16
RANKS_LIMIT = 8
"""Pipeline ranks that are run at most: the first, the last, and those after the first."""

Check = Callable[[Request, Callable[[Stage], None], int], Outcome]


def folder_name(name: str) -> PurePosixPath | None:
    """Return where below the check's folder a model of this name is put, or None if the name cannot be one."""
    path = PurePosixPath(name)
    parts = path.parts[1:] if path.is_absolute() else path.parts
    clean = parts and len(name) <= 200 and all(part not in ("..", "~") and "\0" not in part for part in parts)
    return PurePosixPath(*parts) if clean else None


def place_models(request: Request, folder: Path) -> Request:
    """Write the request's models below `folder` and return the request with names that cannot be folders replaced.

    A relative name becomes that very folder, so SGLang's messages name the model as the asker does.
    Raises: ValueError: a file's name is not bare.
    """
    renamed: dict[str, str] = {}
    for number, model in enumerate(request.models):
        place = folder_name(model.name) or PurePosixPath(f"model-{number}")
        _write_model(model, folder / place)
        if str(place) != model.name:
            renamed[model.name] = str(place)
    if not renamed:
        return request
    return dataclasses.replace(request, arguments=tuple(_renamed(word, renamed) for word in request.arguments))


def _write_model(model: Model, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in model.files.items():
        if PurePosixPath(name).name != name or name in ("", ".", ".."):
            raise ValueError(f"not the bare name of a file: {name[:80]!r}")
        (folder / name).write_text(text, encoding="utf-8")


def _renamed(word: str, names: dict[str, str]) -> str:
    if word in names:
        return names[word]
    flag, equals, value = word.partition("=")
    return f"{flag}={names[value]}" if equals and flag.startswith("--") and value in names else word


@dataclasses.dataclass(slots=True)
class Child:
    """A forked check that has not ended."""

    job: Job
    rank: int
    pid: int
    pipe: int
    deadline: float
    began: float
    folder: str
    received: int = 0
    buffer: bytes = b""
    stage: str = "arguments"
    outcome: Outcome | None = None
    lost: Lost | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Spare:
    """A forked child that waits for a job: what forking costs is paid before anybody waits for an answer."""

    pid: int
    pipe: int
    orders: int


@dataclasses.dataclass(slots=True)
class Ranks:
    """The pipeline ranks of one job: what has been heard, and which are still to run."""

    outcomes: list[Outcome] = dataclasses.field(default_factory=list)
    left: list[int] = dataclasses.field(default_factory=list)
    deadline: float = 0.0


class Forks:
    """The parent's loop. `check` is what a child runs; at most `children` run at once."""

    def __init__(self, check: Check, children: int, source: int, sink: int) -> None:
        self._check = check
        self._most = max(children, 1)
        self._source, self._sink = source, sink
        self._selector = selectors.DefaultSelector()
        self._waiting: deque[tuple[Job, int, Ranks]] = deque()
        self._children: dict[int, tuple[Child, Ranks]] = {}
        self._dying: dict[int, int] = {}  # the pipe of a child that has been heard, and its process
        self._spare: Spare | None = None
        self._input = b""
        self._open = True

    def serve(self) -> None:
        """Answer jobs until the input ends; then end every child and return."""
        os.set_blocking(self._source, False)
        self._selector.register(self._source, selectors.EVENT_READ)
        self._spare = self._fork_spare()
        try:
            while self._open:
                self._fill()
                for key, _ in self._selector.select(self._patience()):
                    if key.fd == self._source:
                        self._read_jobs()
                    elif key.fd in self._children:
                        self._read_child(key.fd)
                    elif key.fd in self._dying and not os.read(key.fd, CHUNK):
                        self._bury(key.fd)
                self._kill_late()
        finally:
            spare = [self._spare.pid] if self._spare else []
            for pid in (*spare, *self._dying.values(), *(child.pid for child, _ in self._children.values())):
                _kill(pid)

    def _patience(self) -> float | None:
        if not self._children:
            return None
        return max(0.0, min(child.deadline for child, _ in self._children.values()) - time.monotonic())

    # -- jobs

    def _read_jobs(self) -> None:
        try:
            data = os.read(self._source, CHUNK)
        except BlockingIOError:
            return
        if not data:
            self._open = False
            return
        *lines, self._input = (self._input + data).split(b"\n")
        for line in lines:
            try:
                message = load(line)
            except ProtocolError as error:
                print(f"not a message: {error}", file=sys.stderr)
                continue
            if isinstance(message, Job):
                deadline = time.monotonic() + message.limits.wall_s
                self._waiting.append((message, 0, Ranks(deadline=deadline)))
            elif isinstance(message, Cancel):
                self._cancel(message.id)

    def _cancel(self, number: int) -> None:
        self._waiting = deque(entry for entry in self._waiting if entry[0].id != number)
        for child, ranks in list(self._children.values()):
            if child.job.id == number:
                ranks.left.clear()
                self._stop(child, "cancelled")

    def _fill(self) -> None:
        while self._waiting and len(self._children) < self._most:
            job, rank, ranks = self._waiting.popleft()
            self._fork(job, rank, ranks)

    def _fork(self, job: Job, rank: int, ranks: Ranks) -> None:
        """Give a job to the child that waits for one, and let another wait in its place."""
        spare = self._spare or self._fork_spare()
        policy = job.limits.policy
        folder = str(policy["folder"]) if policy else tempfile.mkdtemp(prefix="errata-check-")
        with contextlib.suppress(BrokenPipeError), os.fdopen(spare.orders, "wb") as orders:
            orders.write(json.dumps([rank, folder]).encode() + b"\n" + dump(job))
        now = time.monotonic()
        deadline = min(now + job.limits.wall_s, ranks.deadline) if rank else now + job.limits.wall_s
        ranks.deadline = deadline
        self._children[spare.pipe] = (Child(job, rank, spare.pid, spare.pipe, deadline, now, folder), ranks)
        self._selector.register(spare.pipe, selectors.EVENT_READ)
        self._spare = self._fork_spare()

    def _fork_spare(self) -> Spare:
        reader, writer = os.pipe()
        orders, handed = os.pipe()
        pid = os.fork()
        if pid == 0:
            for descriptor in (reader, handed):
                os.close(descriptor)
            self._selector.close()
            _child(self._check, orders, writer)
        for descriptor in (writer, orders):
            os.close(descriptor)
        return Spare(pid, reader, handed)

    # -- children

    def _read_child(self, pipe: int) -> None:
        child, _ = self._children[pipe]
        data = os.read(pipe, CHUNK)
        if not data:
            self._end(child)
            return
        child.received += len(data)
        if child.received > child.job.limits.output_bytes:
            self._stop(child, "output")
            return
        *lines, child.buffer = (child.buffer + data).split(b"\n")
        for line in lines:
            if not self._take(child, line):
                self._stop(child, "protocol")
                return
            if child.outcome is not None or child.lost is not None:
                self._end(child)  # it has nothing more to say: nobody waits until it is gone
                return

    def _take(self, child: Child, line: bytes) -> bool:
        """Take one line of a child; tell whether it was one that a child may send."""
        try:
            message = load(line)
        except ProtocolError:
            return False
        if isinstance(message, Progress) and message.id == child.job.id:
            child.stage = message.stage.name
            if child.rank == 0:
                self._say(dump(message))
            return True
        if isinstance(message, Answer) and message.id == child.job.id and child.outcome is None and child.lost is None:
            child.outcome, child.lost = message.outcome, message.lost
            return True
        return False

    def _kill_late(self) -> None:
        now = time.monotonic()
        for child, _ in list(self._children.values()):
            if child.deadline <= now:
                self._stop(child, "timeout")

    def _stop(self, child: Child, reason: Reason) -> None:
        child.outcome, child.lost = None, Lost(reason, stage=child.stage)
        self._end(child)

    def _end(self, child: Child) -> None:
        """Kill a child that is done, and answer for it or go on with the next pipeline rank."""
        _, ranks = self._children.pop(child.pipe)
        _kill(child.pid)
        self._dying[child.pipe] = child.pid
        silent = child.outcome is None and child.lost is None
        status = self._bury(child.pipe) if silent else 0
        if child.job.limits.policy is None:
            shutil.rmtree(child.folder, ignore_errors=True)
        elapsed = round((time.monotonic() - child.began) * 1000, 2)
        if child.outcome is None:
            lost = child.lost or Lost(_reason(status), f"wait status {status}", child.stage)
            self._say(dump(Answer(child.job.id, lost=dataclasses.replace(lost, elapsed_ms=elapsed))))
            return
        outcome = dataclasses.replace(child.outcome, elapsed_ms=elapsed)
        ranks.outcomes.append(outcome)
        if child.rank == 0 and child.job.request.all_pipeline_ranks:
            ranks.left = _other_ranks(outcome.pipeline_ranks)
        if outcome.verdict == "pass" and ranks.left:
            self._waiting.appendleft((child.job, ranks.left.pop(0), ranks))
            return
        self._say(dump(Answer(child.job.id, outcome=merged(ranks.outcomes))))

    def _bury(self, pipe: int) -> int:
        """Forget a child that has ended and return its wait status."""
        self._selector.unregister(pipe)
        os.close(pipe)
        _, status, _ = os.wait4(self._dying.pop(pipe), 0)
        return status

    def _say(self, line: bytes) -> None:
        view = memoryview(line)
        while view:
            view = view[os.write(self._sink, view) :]


def _other_ranks(count: int) -> list[int]:
    """Return the pipeline ranks to run after the first: the last, then those after the first."""
    if count <= 1:
        return []
    return [count - 1, *range(1, count - 1)][: RANKS_LIMIT - 1]


def merged(outcomes: list[Outcome]) -> Outcome:
    """Return one outcome of several pipeline ranks: the rank that fails decides, else the one with fewest tokens.

    Shape: `outcomes` as the ranks were run, at least one; only the last can be other than a pass.
    """
    if len(outcomes) == 1:
        return outcomes[0]
    last = outcomes[-1]
    decisive = last if last.verdict != "pass" else min(outcomes, key=_tokens)
    rest = [one for one in outcomes if one is not decisive]
    ran = tuple(rank for one in outcomes for rank in one.ranks)
    total = max(one.pipeline_ranks for one in outcomes)
    notes = list(dict.fromkeys(note for one in (decisive, *rest) for note in one.assumptions))
    notes.append(
        f"Pipeline rank {decisive.ranks[0]} of {total} is shown: "
        + ("it is the one that stops." if last.verdict != "pass" else "it holds the fewest tokens.")
    )
    if len(ran) < total and last.verdict == "pass":
        notes.append(f"{len(ran)} of {total} pipeline ranks were run.")
    return dataclasses.replace(
        decisive,
        stages=tuple(
            dataclasses.replace(stage, ms=round(stage.ms + sum(one.stages[i].ms for one in rest), 2))
            if stage.outcome != "not reached"
            else stage
            for i, stage in enumerate(decisive.stages)
        ),
        pools=(*decisive.pools, *(pool for one in rest for pool in one.pools)),
        ranks=(decisive.ranks[0], *(rank for rank in ran if rank != decisive.ranks[0])),
        warnings=tuple(dict.fromkeys(text for one in outcomes for text in one.warnings)),
        assumptions=tuple(notes),
        elapsed_ms=round(sum(one.elapsed_ms for one in outcomes), 2),
        cpu_ms=round(sum(one.cpu_ms for one in outcomes), 2),
        peak_bytes=max(one.peak_bytes for one in outcomes),
    )


def _tokens(outcome: Outcome) -> int:
    target: list[Pools] = [pool for pool in outcome.pools if pool.role == "target"]
    return target[0].tokens if target else 1 << 62


def _reason(status: int) -> Reason:
    """Return why a child that said nothing has ended."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number == signal.SIGXCPU:
            return "timeout"
        if number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT):
            return "memory" if number == signal.SIGKILL else "died"
    return "died"


def _kill(pid: int) -> None:
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


# -- in the child


def _child(check: Check, orders: int, pipe: int) -> None:
    """Wait for a job, confine this process, run the check, write its answer and end. Never returns."""
    code = 1
    try:
        end_with_parent()
        os.setpgid(0, 0)
        gc.disable()  # the process ends with the check: collecting costs more than it frees
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        with os.fdopen(orders, "rb") as stream:
            first, _, second = stream.read().partition(b"\n")
        rank, folder = json.loads(first)
        job = load(second)
        if isinstance(job, Job):
            _write(pipe, dump(_answer(check, job, rank, pipe, folder)))
            code = 0
    except BaseException:
        pass  # nothing to say it with: the parent sees the end of the pipe
    finally:
        os._exit(code)


def _write(pipe: int, line: bytes) -> None:
    view = memoryview(line)
    while view:
        view = view[os.write(pipe, view) :]


def _answer(check: Check, job: Job, rank: int, pipe: int, folder: str) -> Answer:
    placed: list[Request] = []

    def prepare() -> None:
        placed.append(place_models(job.request, Path(folder)))

    _limit(job)
    try:
        layers = _confine(job, pipe, prepare)
    except Exception as error:
        return Answer(job.id, lost=Lost("sandbox", f"{type(error).__name__}: {error}"[:500]))
    os.chdir(folder)
    try:
        outcome = check(placed[0], lambda stage: _write(pipe, dump(Progress(job.id, stage))), rank)
    except MemoryError:
        return Answer(job.id, lost=Lost("memory"))
    except BaseException as error:
        return Answer(job.id, lost=Lost("broken", f"{type(error).__name__}: {error}"[:500]))
    return Answer(job.id, outcome=dataclasses.replace(outcome, sandbox=layers))


def _limit(job: Job) -> None:
    limits = job.limits
    for name, value in (
        ("RLIMIT_AS", limits.memory_bytes),
        ("RLIMIT_CPU", limits.cpu_s),
        ("RLIMIT_FSIZE", limits.file_bytes),
        ("RLIMIT_NOFILE", limits.open_files),
        ("RLIMIT_CORE", 0),
    ):
        kind = getattr(resource, name)
        _, hard = resource.getrlimit(kind)
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (most, most))


def _confine(job: Job, pipe: int, prepare: Callable[[], None]) -> tuple[str, ...]:
    if job.limits.policy is None:
        prepare()
        return ()
    from app.check import sandbox

    return sandbox.enter(job.limits.policy, keep=(pipe,), prepare=prepare)
