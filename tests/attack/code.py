"""What hostile code tries once it runs inside a check. Each returns what it got; most never return."""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from app.check.protocol import Request

Attack = Callable[[Request], object]
SECRET_OPTION = "--secret-file"


def _secret(request: Request) -> Path:
    return Path(request.arguments[1])


def _call(x86: int, arm: int, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(x86 if os.uname().machine == "x86_64" else arm, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(result)


def _address(request: Request) -> tuple[str, int]:
    return "127.0.0.1", int(request.arguments[2])


def spin(request: Request) -> object:
    while True:
        pass


def spin_threads(request: Request) -> object:
    for _ in range(32):
        threading.Thread(target=spin, args=(request,), daemon=True).start()
    return spin(request)


def eat_memory(request: Request) -> object:
    kept = []
    while True:
        kept.append(bytearray(64 << 20))


def eat_disk(request: Request) -> object:
    number = 0
    written = 0
    while True:
        with open(f"file-{number}", "wb") as file:
            written += file.write(b"x" * (1 << 20))
        number += 1
        if written > 64 << 20:
            return f"wrote {written} bytes"


def eat_files(request: Request) -> object:
    for number in range(100_000):
        Path(f"f{number}").touch()
    return "made 100,000 files"


def eat_descriptors(request: Request) -> object:
    return [os.open("/dev/null", os.O_RDONLY) for _ in range(100_000)]


def flood_output(request: Request) -> object:
    while True:
        for descriptor in range(1, 16):
            try:
                os.write(descriptor, b"x" * (1 << 16))
            except OSError:
                continue


def long_answer(request: Request) -> object:
    return "x" * (64 << 20)


def sleep(request: Request) -> object:
    time.sleep(600)
    return "slept"


def fork_bomb(request: Request) -> object:
    while True:
        os.fork()


def thread_bomb(request: Request) -> object:
    threading.stack_size(1 << 16)
    count = 0
    while True:
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
        count += 1
        if count > 5000:
            return f"started {count} threads"


def crash(request: Request) -> object:
    return ctypes.string_at(0)


def recursion(request: Request) -> object:
    sys.setrecursionlimit(10**9)

    def deeper(n: int) -> int:
        return deeper(n + 1) + 1

    return deeper(0)


def forged_lines(request: Request) -> object:
    """Speak to the service in the name of other jobs."""
    for descriptor in range(3, 64):
        for number in range(1, 20):
            try:
                os.write(descriptor, b'{"answer":{"id":%d,"lost":{"reason":"broken","detail":"forged"}}}\n' % number)
            except OSError:
                break
    return "forged"


def symlink_out(request: Request) -> object:
    os.symlink(_secret(request), "link")
    return Path("link").read_text()


def hard_link_out(request: Request) -> object:
    os.link(_secret(request), "link")
    return Path("link").read_text()


def through_descriptors(request: Request) -> object:
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
        if not target.startswith(("pipe:", "/dev/null", "anon_inode", "/proc/")):
            found.append(target)
    if not found:
        raise PermissionError("nothing of others is open")
    return found


def through_parents_pipes(request: Request) -> object:
    return [Path(f"/proc/{os.getppid()}/fd/{n}").read_bytes() for n in range(8)]


def environment(request: Request) -> object:
    return dict(os.environ)


def other_processes(request: Request) -> object:
    others = [n for n in os.listdir("/proc") if n.isdigit() and int(n) != os.getpid()]
    if not others:
        raise PermissionError("no other process can be seen")
    return [Path(f"/proc/{n}/cmdline").read_bytes() for n in others]


def unpickle(request: Request) -> object:
    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.system, ("touch /tmp/errata-attack-pickle",)

    code = pickle.loads(pickle.dumps(Evil()))
    if code != 0:
        raise PermissionError(f"the shell was not run: {code}")
    return code


def terminal(request: Request) -> object:
    return os.open("/dev/tty", os.O_RDWR)


def fill_shared_memory(request: Request) -> object:
    return os.open("/dev/shm/errata-attack", os.O_CREAT | os.O_RDWR)


def write_pyc(request: Request) -> object:
    import app.check.protocol as module

    assert module.__file__
    return os.open(str(Path(module.__file__).parent / "__pycache__" / "evil.pyc"), os.O_CREAT | os.O_WRONLY)


def abstract_socket(request: Request) -> object:
    client = socket.socket(socket.AF_UNIX)
    client.connect("\0errata-attack")
    return client.send(b"x")


def dns(request: Request) -> object:
    return socket.getaddrinfo("example.com", 443)


ATTACKS: dict[str, Attack] = {
    "read a secret file": lambda r: _secret(r).read_text(),
    "read /etc/passwd": lambda r: Path("/etc/passwd").read_text(),
    "list the folder of the secret": lambda r: os.listdir(_secret(r).parent),
    "see whether the secret exists": lambda r: os.stat(_secret(r)),
    "read the secret through /proc/self/root": lambda r: Path(f"/proc/self/root{_secret(r)}").read_text(),
    "read the secret through /proc/self/cwd": lambda r: Path(f"/proc/self/cwd/../../../..{_secret(r)}").read_text(),
    "read the secret through the parent": lambda r: Path(f"/proc/{os.getppid()}/root{_secret(r)}").read_text(),
    "read the secret by a symbolic link": symlink_out,
    "read the secret by a hard link": hard_link_out,
    "read the environment of the parent": lambda r: Path(f"/proc/{os.getppid()}/environ").read_bytes(),
    "read the memory of the parent": lambda r: Path(f"/proc/{os.getppid()}/maps").read_text(),
    "read what others have open": through_parents_pipes,
    "look at other processes": other_processes,
    "use descriptors that were left open": through_descriptors,
    "write beside the secret": lambda r: (_secret(r).parent / "evil").write_text("x"),
    "overwrite the secret": lambda r: _secret(r).write_text("x"),
    "remove the secret": lambda r: os.unlink(_secret(r)),
    "write to /tmp": lambda r: Path("/tmp/errata-attack-file").write_text("x"),
    "write to shared memory": fill_shared_memory,
    "plant byte-code": write_pyc,
    "open the terminal": terminal,
    "connect by TCP": lambda r: socket.create_connection(_address(r), 2).send(b"x"),
    "send by UDP": lambda r: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", _address(r)),
    "connect to a Unix socket": lambda r: socket.socket(socket.AF_UNIX).connect(str(_secret(r).parent / "socket")),
    "connect to an abstract socket": abstract_socket,
    "look up a name": dns,
    "listen": lambda r: socket.create_server(("127.0.0.1", 0)),
    "run a program": lambda r: subprocess.run(["/bin/sh", "-c", "echo ran"], capture_output=True, check=True).stdout,
    "replace itself by a program": lambda r: os.execv("/bin/sh", ["sh", "-c", "echo ran"]),
    "run a shell by a pickle": unpickle,
    "signal the parent": lambda r: os.kill(os.getppid(), signal.SIGKILL),
    "signal everybody": lambda r: os.kill(-1, signal.SIGKILL),
    "trace the parent": lambda r: _call(101, 117, 16, os.getppid(), 0, 0),
    "write into the parent's memory": lambda r: _call(311, 271, os.getppid(), 0, 0, 0, 0, 0),
    "mount": lambda r: _call(165, 40, b"none", b"/tmp", b"tmpfs", 0, 0),
    "new namespaces": lambda r: _call(272, 97, 0x10020000),
    "io_uring": lambda r: _call(425, 425, 8, 0),
    "a program in memory": lambda r: _call(319, 279, b"x", 0),
    "fork bomb": fork_bomb,
    "thread bomb": thread_bomb,
    "eat memory": eat_memory,
    "eat disk": eat_disk,
    "make files without end": eat_files,
    "open files without end": eat_descriptors,
    "flood every descriptor": flood_output,
    "an answer of 64 MB": long_answer,
    "spin": spin,
    "spin in 32 threads": spin_threads,
    "sleep": sleep,
    "crash": crash,
    "recurse without end": recursion,
    "answer for others": forged_lines,
    "its own environment": environment,
}  # fmt: skip
