"""A stand-in for an engine's process: the same protocol, real forks, the real sandbox, no SGLang.

Started like the real one (`python -m tests.check.fake_engine`). The first argument of a command says what its child
does; everything else about the conversation is as `app.check.worker` does it.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable

from app.check import sandbox
from app.check.protocol import Answer, Cancel, Fault, Job, Lost, Outcome, Progress, Ready, Stage, Start, dump, load


def outcome(job: Job, verdict: str = "pass", basis: str = "fake") -> Outcome:
    """Return an outcome that repeats what was asked."""
    return Outcome(
        verdict=verdict,  # type: ignore[arg-type]
        basis=basis,
        stages=(Stage("arguments", "pass", 1.0), Stage("pools", "pass", 1.0)),
        resolved={"arguments": list(job.request.arguments), "environment": dict(os.environ)},
    )


def child(job: Job, report: int) -> None:
    """Confine this process, do what the first argument says, and write the answer."""

    def say(message: Answer | Progress) -> None:
        os.write(report, dump(message))

    try:
        if job.limits.policy is not None:
            sandbox.enter(job.limits.policy, keep=(report,))
    except sandbox.SandboxUnavailable as error:
        say(Answer(job.id, lost=Lost("sandbox", str(error))))
        return
    what, _, value = job.request.arguments[0].partition(":") if job.request.arguments else ("", "", "")
    say(Progress(job.id, Stage("arguments", "pass", 1.0)))
    if what == "sleep":
        time.sleep(float(value))
    elif what == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "nonsense":
        os.write(report, b"{}\n")
    elif what == "flood":
        for _ in range(64):
            os.write(report, b"x" * (1 << 20))
    elif what == "write":
        try:
            with open(os.path.join(str((job.limits.policy or {}).get("folder")), "file"), "w") as file:
                file.write(value)
        except OSError as error:
            say(Answer(job.id, outcome=outcome(job, "unknown", str(error))))
            return
    say(Answer(job.id, outcome=outcome(job)))


def main() -> None:
    """Serve until standard input ends."""
    line = b""
    while not line.endswith(b"\n"):
        line += os.read(0, 1)
    start = load(line)
    assert isinstance(start, Start)

    def out(data: bytes) -> None:
        os.write(1, data)

    if start.version == "broken":
        out(dump(Fault("this engine never starts")))
        return
    if start.version == "dead":
        return
    if start.version == "slow":
        time.sleep(30)
    out(dump(Ready(start.version, start.hardware.group, os.getpid(), 0.1, 0.0, 1 << 20, 1)))
    _serve(out)


def _serve(out: Callable[[bytes], None]) -> None:
    live: dict[int, tuple[int, int, float]] = {}  # pipe -> job, pid, deadline
    buffer = b""
    while True:
        ready, _, _ = select.select([0, *live], [], [], 0.02)
        for pipe in [p for p in ready if p != 0]:
            _forward(pipe, live, out)
        for pipe, (_, pid, deadline) in list(live.items()):
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
                _finish(pipe, live, out, Lost("timeout"))
        if 0 not in ready:
            continue
        chunk = os.read(0, 1 << 16)
        if not chunk:
            return
        buffer += chunk
        while b"\n" in buffer:
            line, _, buffer = buffer.partition(b"\n")
            message = load(line)
            if isinstance(message, Cancel):
                for pipe, (job, pid, _) in list(live.items()):
                    if job == message.id:
                        os.kill(pid, signal.SIGKILL)
                        _finish(pipe, live, out, Lost("cancelled"))
            elif isinstance(message, Job):
                _fork(message, live, out)


def _fork(job: Job, live: dict[int, tuple[int, int, float]], out: Callable[[bytes], None]) -> None:
    if job.request.arguments[:1] == ("kill the parent",):
        os._exit(1)
    if job.request.arguments[:1] == ("parent nonsense",):
        out(b"not a message\n")
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        try:
            child(job, write)
        finally:
            os._exit(0)
    os.close(write)
    live[read] = (job.id, pid, time.monotonic() + job.limits.wall_s)


_partial: dict[int, bytes] = {}


def _forward(pipe: int, live: dict[int, tuple[int, int, float]], out: Callable[[bytes], None]) -> None:
    """Hand on what a child writes; its end without an answer is a loss."""
    chunk = os.read(pipe, 1 << 16)
    _partial[pipe] = _partial.get(pipe, b"") + chunk
    if len(_partial[pipe]) > 1 << 20:
        os.kill(live[pipe][1], signal.SIGKILL)
        _finish(pipe, live, out, Lost("output"))
        return
    while b"\n" in _partial[pipe]:
        line, _, _partial[pipe] = _partial[pipe].partition(b"\n")
        try:
            message = load(line)
        except ValueError:
            _finish(pipe, live, out, Lost("protocol"))
            return
        if isinstance(message, Answer):
            _finish(pipe, live, out, message)
            return
        if isinstance(message, Progress):
            out(dump(message))
    if not chunk:
        _finish(pipe, live, out, Lost("died"))


def _finish(
    pipe: int, live: dict[int, tuple[int, int, float]], out: Callable[[bytes], None], end: Answer | Lost
) -> None:
    job, pid, _ = live.pop(pipe)
    _partial.pop(pipe, None)
    os.close(pipe)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    out(dump(end if isinstance(end, Answer) else Answer(job, lost=end)))


if __name__ == "__main__":
    main()
