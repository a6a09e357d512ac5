"""The pool of engines: a preloaded parent process per engine and hardware group, a forked, confined child per check.

    starting --Ready--> ready --last job, space needed--> stopped
        \\--Fault, death, silence--> failed (started anew on demand, not at once after repeated deaths)

A parent is ours but its children are not trusted: what they send is read strictly and bounded, and whatever is no
outcome is `Lost`. Nothing of a request is kept or logged here.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import secrets
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol

from app.check.protocol import (
    Answer,
    Cancel,
    Fault,
    Group,
    Hardware,
    Job,
    Limits,
    Lost,
    Outcome,
    Progress,
    ProtocolError,
    Ready,
    Request,
    Stage,
    Start,
    dump,
    load,
)
from app.check.sandbox import Policy
from app.errors import OutOfTime, TooMany, Unavailable

ROOT = Path(__file__).resolve().parents[2]
LINE_LIMIT = 8 << 20
QUICK_DEATHS = 3
REST_S = 30.0
# What any Python with compiled extensions reads, besides its own folders.
_SYSTEM = (
    "/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64", "/etc/ld.so.cache", "/dev/null", "/dev/urandom",
    "/proc/self", "/proc/meminfo", "/proc/cpuinfo", "/proc/stat", "/sys/devices/system/cpu", "/sys/devices/system/node",
)  # fmt: skip

CHECK_LIMITS = Limits(wall_s=20.0, cpu_s=20, memory_bytes=3 << 30, file_bytes=4 << 20, open_files=256)
State = Literal["stopped", "starting", "ready", "failed"]
OnStage = Callable[[Stage], None]
OnState = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Engine:
    """An installed engine.

    Shape: `python` is its interpreter, `release` the folder of the unpacked wheel, `overlays` folders of packages in
    front of the interpreter's own; `read` are further folders its process needs; `module` is what is run.
    """

    version: str
    python: Path
    release: Path
    overlays: tuple[Path, ...] = ()
    read: tuple[Path, ...] = ()
    module: str = "app.check.worker"


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much the pool may take. `wait_s` is for a free worker, `start_s` for an engine to get ready."""

    workers: int = max(1, min(8, os.cpu_count() or 1))
    waiting: int = 32
    engines: int = 3
    wait_s: float = 20.0
    start_s: float = 300.0
    limits: Limits = CHECK_LIMITS
    folder_bytes: int = 12 << 20
    threads: int = 64
    view: str = "auto"
    confined: bool = True


@dataclass(frozen=True, slots=True)
class ParentStatus:
    """One parent process, for `/readyz`, `/metrics` and the page on safety."""

    version: str
    group: Group
    state: State
    jobs: int
    rss_bytes: int = 0
    started_s: float = 0.0
    detail: str = ""


class Checker(Protocol):
    """Something that can run a request. `SandboxPool` is one; tests have another."""

    async def check(
        self, engine: Engine, request: Request, on_stage: OnStage | None = None, on_state: OnState | None = None
    ) -> Outcome | Lost:
        """Run `request`. Raises: TooMany, Unavailable, OutOfTime."""
        ...

    def status(self) -> tuple[ParentStatus, ...]:
        """Return the engine processes there are."""
        ...


@dataclass
class _Running:
    """A job that was sent and not answered."""

    answer: asyncio.Future[Outcome | Lost]
    on_stage: OnStage | None


class Parent:
    """One engine process. Started at most once; a dead one is replaced, never revived."""

    def __init__(self, engine: Engine, hardware: Hardware, children: int) -> None:
        self.engine, self.hardware, self.children = engine, hardware, children
        self.state: State = "starting"
        self.detail = ""
        self.ready = asyncio.get_running_loop().create_future()
        self.ready.add_done_callback(lambda future: future.cancelled() or future.exception())
        self.report: Ready | None = None
        self.began = time.monotonic()
        self.used = self.began
        self.jobs: dict[int, _Running] = {}
        self.promised = 0  # checks that chose this parent and wait for a slot
        self.process: asyncio.subprocess.Process | None = None
        self.reader: asyncio.Task[None] | None = None

    async def start(self, folder: Path, start_s: float) -> None:
        """Start the process and its reader. The `ready` future tells when it can take jobs."""
        start = Start(
            version=self.engine.version,
            release=str(self.engine.release),
            hardware=self.hardware,
            overlays=tuple(map(str, self.engine.overlays)),
            max_children=self.children,
        )
        self.process = await asyncio.create_subprocess_exec(
            str(self.engine.python), "-P", "-W", "ignore", "-m", self.engine.module,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            limit=LINE_LIMIT, cwd=folder, env=environment(folder), start_new_session=True,
        )  # fmt: skip
        self.reader = asyncio.create_task(self._read(start_s))
        self._send(dump(start))

    async def run(self, job: Job, on_stage: OnStage | None) -> Outcome | Lost:
        """Send `job` and wait for its answer, some time longer than its own limit."""
        if self.state != "ready":
            return Lost("died", self.detail)
        answer: asyncio.Future[Outcome | Lost] = asyncio.get_running_loop().create_future()
        self.jobs[job.id] = _Running(answer, on_stage)
        self.used = time.monotonic()
        try:
            self._send(dump(job))
            async with asyncio.timeout(job.limits.wall_s + 5.0):
                return await answer
        except TimeoutError:
            self.kill()  # it should have killed its child long ago
            return Lost("timeout", "the engine did not keep its own time limit")
        except asyncio.CancelledError:
            self._send(dump(Cancel(job.id)))
            raise
        finally:
            self.jobs.pop(job.id, None)
            self.used = time.monotonic()

    def kill(self) -> None:
        """End the process and its children at once."""
        if self.process is not None and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)

    async def stop(self) -> None:
        """End the process and wait until it is gone."""
        self.kill()
        if self.reader is not None:
            await asyncio.gather(self.reader, return_exceptions=True)

    def status(self) -> ParentStatus:
        """Return what the outside may know."""
        report = self.report
        return ParentStatus(
            self.engine.version, self.hardware.group, self.state, len(self.jobs), report.rss_bytes if report else 0,
            round(report.import_s + report.warmup_s, 2) if report else 0.0, self.detail,
        )  # fmt: skip

    def _send(self, line: bytes) -> None:
        if self.process is not None and self.process.stdin is not None and not self.process.stdin.is_closing():
            with contextlib.suppress(ConnectionError, RuntimeError):
                self.process.stdin.write(line)

    async def _read(self, start_s: float) -> None:
        assert self.process is not None and self.process.stdout is not None
        detail = "the engine's process ended"
        try:
            async with asyncio.timeout(start_s):
                line = await self.process.stdout.readline()
            self._began(line)
            while self.state == "ready" and (line := await self.process.stdout.readline()):
                self._take(line)
        except TimeoutError:
            detail = f"the engine was not ready within {start_s:g} s"
        except (ProtocolError, ValueError) as error:  # ValueError: a line over the limit
            detail = f"the engine's process spoke nonsense: {error}"
        finally:
            self._end(detail)
        await self.process.wait()

    def _began(self, line: bytes) -> None:
        if not line:
            return
        report = load(line)
        if isinstance(report, Fault):
            self.detail = report.detail
        elif isinstance(report, Ready):
            self.report, self.state = report, "ready"
            self.ready.set_result(None)
        else:
            raise ProtocolError("neither ready nor a fault")

    def _take(self, line: bytes) -> None:
        message = load(line)
        if isinstance(message, Progress):
            running = self.jobs.get(message.id)
            if running is not None and running.on_stage is not None:
                running.on_stage(message.stage)
        elif isinstance(message, Answer):
            running = self.jobs.get(message.id)
            if running is not None and not running.answer.done():
                running.answer.set_result(message.outcome or message.lost or Lost("protocol", "an empty answer"))
        else:
            raise ProtocolError("neither progress nor an answer")

    def _end(self, detail: str) -> None:
        self.kill()
        self.state, self.detail = "failed", self.detail or detail
        if not self.ready.done():
            self.ready.set_exception(Unavailable(f"SGLang {self.engine.version} could not be started: {self.detail}"))
        for running in self.jobs.values():
            if not running.answer.done():
                running.answer.set_result(Lost("died", detail))


@dataclass
class _Deaths:
    """How often a parent of one key died soon after its start."""

    times: list[float] = field(default_factory=list)

    def add(self, now: float) -> None:
        self.times = [*self.times[-QUICK_DEATHS + 1 :], now]

    def resting(self, now: float) -> bool:
        return len(self.times) == QUICK_DEATHS and now - self.times[-1] < REST_S and now - self.times[0] < 4 * REST_S


class SandboxPool:
    """The real `Checker`. Use it inside one event loop; `close` ends every process."""

    def __init__(self, bounds: Bounds = Bounds()) -> None:
        self.bounds = bounds
        self.folder = Path(tempfile.mkdtemp(prefix="errata-check-"))
        self.folder.chmod(0o711)  # a check's own user passes through to its own folder
        self._parents: dict[tuple[str, Group], Parent] = {}
        self._deaths: dict[tuple[str, Group], _Deaths] = {}
        self._starting = asyncio.Lock()
        self._slots = list(range(bounds.workers))
        self._free = asyncio.Semaphore(bounds.workers)
        self.waiting = 0
        self._ids = itertools.count(1)
        self.lost: dict[str, int] = {}

    async def check(
        self, engine: Engine, request: Request, on_stage: OnStage | None = None, on_state: OnState | None = None
    ) -> Outcome | Lost:
        """Run `request` on `engine`.

        Raises: TooMany: the queue is full. Unavailable: the engine does not start, or cannot confine a check.
                OutOfTime: no worker got free in time, or the check took too long.
        """
        if self.waiting >= self.bounds.waiting:
            raise TooMany(f"{self.waiting} checks are waiting already; try again in a few seconds.", retry_after_s=5)
        with self._queued() as leave_queue:
            parent = await self.parent(engine, request.hardware, on_state)
            parent.promised += 1
            try:
                async with self._slot(on_state) as slot:
                    leave_queue()
                    if parent.state != "ready":  # it died while this check waited
                        parent.promised -= 1
                        parent = await self.parent(engine, request.hardware, on_state)
                        parent.promised += 1
                    result = await self._run(parent, request, slot, on_stage)
            finally:
                parent.promised -= 1
        if isinstance(result, Lost):
            self.lost[result.reason] = self.lost.get(result.reason, 0) + 1
            if result.reason == "timeout":
                raise OutOfTime(f"The check was stopped after {self.bounds.limits.wall_s:g} s.", stage=result.stage)
            if result.reason == "sandbox":
                raise Unavailable(f"A check cannot be confined on this machine, so none is run: {result.detail}")
        return result

    async def parent(self, engine: Engine, hardware: Hardware, on_state: OnState | None = None) -> Parent:
        """Return a ready parent for `engine` and the group of `hardware`, starting one if needed."""
        key = (engine.version, hardware.group)
        async with self._starting:
            parent = self._parents.get(key)
            if parent is None or parent.state == "failed":
                parent = await self._start(key, engine, hardware)
        if parent.state == "starting" and on_state is not None:
            on_state("warming up")
        try:
            async with asyncio.timeout(self.bounds.start_s):
                await asyncio.shield(parent.ready)
        except TimeoutError:
            raise OutOfTime(f"SGLang {engine.version} was not ready in {self.bounds.start_s:g} s.") from None
        return parent

    async def warm(self, engine: Engine, hardware: Hardware) -> None:
        """Start a parent ahead of time; that it cannot start shows in `status`."""
        with contextlib.suppress(Unavailable, OutOfTime):
            await self.parent(engine, hardware)

    def status(self) -> tuple[ParentStatus, ...]:
        """Return all parents, in the order they were started."""
        return tuple(parent.status() for parent in self._parents.values())

    async def close(self) -> None:
        """End all processes and remove the pool's folder."""
        await asyncio.gather(*(parent.stop() for parent in self._parents.values()))
        self._parents.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    async def _start(self, key: tuple[str, Group], engine: Engine, hardware: Hardware) -> Parent:
        now = time.monotonic()
        deaths = self._deaths.setdefault(key, _Deaths())
        if (old := self._parents.pop(key, None)) is not None:
            deaths.add(now)
            if deaths.resting(now):
                self._parents[key] = old
                raise Unavailable(f"SGLang {engine.version} could not be started: {old.detail}", retry_after_s=REST_S)
        await self._make_room()
        parent = Parent(engine, hardware, self.bounds.workers)
        self._parents[key] = parent
        try:
            await parent.start(self.folder, self.bounds.start_s)
        except OSError as error:
            parent._end(f"{engine.python.name}: {error.strerror}")
        return parent

    async def _make_room(self) -> None:
        """Stop the parents longest unused until one more fits."""
        idle = sorted(
            (p for p in self._parents.values() if not p.promised and p.state != "starting"), key=lambda p: p.used
        )
        while len(self._parents) >= self.bounds.engines:
            if not idle:
                raise TooMany("Every engine process is busy; try again in a few seconds.", retry_after_s=5)
            parent = idle.pop(0)
            self._parents.pop((parent.engine.version, parent.hardware.group))
            await parent.stop()

    @contextlib.contextmanager
    def _queued(self) -> Iterator[Callable[[], None]]:
        """Count a check as waiting until the function that is given is called, or it ends."""
        left = False

        def leave() -> None:
            nonlocal left
            if not left:
                left = True
                self.waiting -= 1

        self.waiting += 1
        try:
            yield leave
        finally:
            leave()

    @contextlib.asynccontextmanager
    async def _slot(self, on_state: OnState | None) -> AsyncIterator[int]:
        if self._free.locked() and on_state is not None:
            on_state("waiting")
        try:
            async with asyncio.timeout(self.bounds.wait_s):
                await self._free.acquire()
        except TimeoutError:
            raise OutOfTime(f"No worker was free within {self.bounds.wait_s:g} s.") from None
        slot = self._slots.pop(0)
        try:
            yield slot
        finally:
            self._slots.append(slot)
            self._free.release()

    async def _run(self, parent: Parent, request: Request, slot: int, on_stage: OnStage | None) -> Outcome | Lost:
        folder = self.folder / secrets.token_hex(8)
        folder.mkdir(mode=0o700)
        policy = None
        if self.bounds.confined:
            policy = self.policy(parent.engine, folder, slot).to_json()
        try:
            job = Job(next(self._ids), request, replace(self.bounds.limits, policy=policy))
            return await parent.run(job, on_stage)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def policy(self, engine: Engine, folder: Path, slot: int = 0) -> Policy:
        """Return what a check on `engine` may touch, with `folder` as its own."""
        return Policy(
            read=readable(engine),
            folder=str(folder),
            folder_bytes=self.bounds.folder_bytes,
            processes=self.bounds.threads,
            view=self.bounds.view,
            cpus=_cpus(slot, self.bounds.workers),
        )


def environment(folder: Path) -> dict[str, str]:
    """Return the whole environment of an engine's process: nothing of ours is handed on."""
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }


def readable(engine: Engine) -> tuple[str, ...]:
    """Return what a check on `engine` may read: its Python, its release, the worker, the system's libraries."""
    real = engine.python.resolve()
    prefixes = {real.parent.parent}  # the interpreter that an environment was made from
    if engine.python.parent.name == "bin":
        prefixes.add(engine.python.parent.parent)
    own = {prefix for prefix in prefixes if prefix not in (Path("/"), Path("/usr"))}
    folders = {*own, engine.release, *engine.overlays, *engine.read, ROOT / "app" / "check"}
    return (*sorted(map(str, folders)), *_SYSTEM)


def _cpus(slot: int, workers: int) -> tuple[int, ...]:
    """Return the processors of a slot, so that a check cannot take its neighbours'; () where they do not suffice."""
    available = sorted(os.sched_getaffinity(0))
    share = len(available) // workers
    return tuple(available[slot * share : (slot + 1) * share])


async def probe(pool: SandboxPool, engine: Engine) -> dict[str, object]:
    """Enter the sandbox of a check in `engine`'s Python, try what must be refused, and return what happened."""
    folder = pool.folder / secrets.token_hex(8)
    folder.mkdir(mode=0o700)
    try:
        process = await asyncio.create_subprocess_exec(
            str(engine.python), "-P", "-W", "ignore", "-m", "app.check.probe",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            cwd=folder, env=environment(folder), start_new_session=True,
        )  # fmt: skip
        policy = json.dumps(pool.policy(engine, folder).to_json()).encode()
        try:
            async with asyncio.timeout(30):
                output, _ = await process.communicate(policy)
            result = json.loads(output)
        except (TimeoutError, ValueError):
            return {"unavailable": "the probe gave no answer"}
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    except OSError as error:
        return {"unavailable": f"{engine.python.name}: {error.strerror}"}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return result if isinstance(result, dict) else {"unavailable": "the probe gave no answer"}
