"""Enter the sandbox and try what it must refuse: the live proof behind `/about/safety`. Standard library only.

Run as `python -m app.check.probe` with a policy as JSON on standard input; prints one JSON object.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable

from app.check import sandbox

Attempt = Callable[[str], object]


def attempts() -> dict[str, Attempt]:
    """Return what is tried, by what a reader understands. None may succeed."""
    own = os.path.abspath(__file__)
    return {
        "read /etc/passwd": lambda folder: os.open("/etc/passwd", os.O_RDONLY),
        "list the home folders": lambda folder: os.listdir("/home"),
        "read the memory of the parent process": lambda folder: os.open(f"/proc/{os.getppid()}/mem", os.O_RDONLY),
        "read the environment of the parent process": lambda folder: os.open(
            f"/proc/{os.getppid()}/environ", os.O_RDONLY
        ),
        "write to /tmp": lambda folder: os.open("/tmp/errata-probe", os.O_WRONLY | os.O_CREAT),
        "change the program's own source": lambda folder: os.open(own, os.O_WRONLY),
        "empty the program's own source": lambda folder: os.open(own, os.O_RDONLY | os.O_TRUNC),
        "change permissions": lambda folder: os.chmod(own, 0o777),
        "write a file larger than the folder": _flood,
        "open a TCP connection": lambda folder: socket.create_connection(("127.0.0.1", 22), 1),
        "open a UDP socket": lambda folder: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        "open a Unix socket": lambda folder: socket.socket(socket.AF_UNIX),
        "run a program": lambda folder: os.execv("/bin/true", ["true"]),
        "fork": _fork,
        "start 1,000 threads": _threads,
        "signal the parent process": lambda folder: os.kill(os.getppid(), 0),
        "signal every process": lambda folder: os.kill(-1, 0),
        "trace the parent process": lambda folder: _call(101, 117, 16, os.getppid(), 0, 0),
        "mount a file system": lambda folder: _call(165, 40, b"none", b"/tmp", b"tmpfs", 0, 0),
        "open new namespaces": lambda folder: _call(272, 97, 0x10000000),
        "load a BPF program": lambda folder: _call(321, 280, 0, 0, 0),
        "set up io_uring": lambda folder: _call(425, 425, 8, 0),
        "become root": lambda folder: os.setresuid(0, 0, 0),
    }


def main() -> int:
    """Print {"layers": [...], "tried": [{"what", "refused", "how"}]} or {"unavailable": why}."""
    policy = json.load(sys.stdin)
    tried = attempts()
    try:
        layers = sandbox.enter(policy)
    except sandbox.SandboxUnavailable as error:
        print(json.dumps({"unavailable": str(error)}))
        return 3
    folder = str(policy["folder"])
    print(json.dumps({"layers": layers, "tried": [_result(what, attempt, folder) for what, attempt in tried.items()]}))
    return 0


def _result(what: str, attempt: Attempt, folder: str) -> dict[str, object]:
    try:
        attempt(folder)
    except (OSError, RuntimeError) as error:
        return {"what": what, "refused": True, "how": str(getattr(error, "strerror", None) or error)}
    return {"what": what, "refused": False, "how": "it was possible"}


def _flood(folder: str) -> None:
    descriptor = os.open(folder + "/flood", os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        for _ in range(64):
            os.write(descriptor, b"x" * (1 << 20))
    finally:
        os.close(descriptor)


def _fork(folder: str) -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def _threads(folder: str) -> None:
    stop = threading.Event()
    threading.stack_size(1 << 16)
    try:
        for _ in range(1000):
            threading.Thread(target=stop.wait, daemon=True).start()
    finally:
        stop.set()


def _call(x86: int, arm: int, *arguments: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(x86 if os.uname().machine == "x86_64" else arm, *arguments) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    signal.alarm(20)
    sys.exit(main())
