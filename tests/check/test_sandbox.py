"""What a confined process can and cannot do, with namespaces and with Landlock and seccomp alone."""

from __future__ import annotations

import ctypes
import encodings.idna  # noqa: F401 - so that looking up a host name fails at the network, not at an import
import fcntl
import mmap
import os
import platform
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.check import sandbox, seccomp
from app.check.sandbox import Policy, SandboxUnavailable, read_policy
from tests.check.confined import confined, policy

HERE = Path(__file__).resolve()
X86 = os.uname().machine == "x86_64"
libc = ctypes.CDLL(None, use_errno=True)


def _reachable() -> bool:
    return os.getuid() != 0 or all(sandbox._reachable(p) for p in policy("/x").read if os.path.exists(p))


# Alone, Landlock and seccomp need an engine that an unprivileged user may read.
VIEWS = [
    "require",
    pytest.param("off", marks=pytest.mark.skipif(not _reachable(), reason="engine is in a private home")),
]


def call(number: int, *arguments: object) -> int:
    result = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(result)


def threads(count: int) -> int:
    stop = threading.Event()
    threading.stack_size(1 << 16)
    started = 0
    try:
        for _ in range(count):
            threading.Thread(target=stop.wait, daemon=True).start()
            started += 1
    finally:
        stop.set()
    return started


def raw(x86: int, arm: int, *arguments: object) -> Callable[[str], object]:
    return lambda folder: call(x86 if X86 else arm, *arguments)


# what is tried -> the errors with which it may fail; nothing here may return
REFUSED: dict[str, Callable[[str], object]] = {
    "read a system file": lambda f: Path("/etc/passwd").read_text(),
    "read a secret": lambda f: Path("/etc/shadow").read_bytes(),
    "read a home folder": lambda f: os.listdir("/root"),
    "list the root": lambda f: os.listdir("/"),
    "read through the process's root": lambda f: Path("/proc/self/root/etc/passwd").read_text(),
    "read through the working folder": lambda f: Path("/proc/self/cwd/../../../etc/passwd").read_text(),
    "read the parent's memory": lambda f: os.open(f"/proc/{os.getppid()}/mem", os.O_RDONLY),
    "read the parent's environment": lambda f: Path(f"/proc/{os.getppid()}/environ").read_bytes(),
    "read the parent's command": lambda f: Path(f"/proc/{os.getppid()}/cmdline").read_bytes(),
    "read the first process": lambda f: Path("/proc/1/status").read_text(),
    "write to the system": lambda f: Path("/tmp/errata-attack").write_text("x"),
    "write to shared memory": lambda f: Path("/dev/shm/errata-attack").write_text("x"),
    "write to our source": lambda f: (HERE.parents[2] / "app" / "check" / "evil.py").write_text("x"),
    "append to our source": lambda f: os.open(HERE.parents[2] / "app" / "check" / "pool.py", os.O_APPEND | os.O_WRONLY),
    "remove our source": lambda f: os.unlink(HERE.parents[2] / "app" / "check" / "pool.py"),
    "rename our source": lambda f: os.rename(HERE.parents[2] / "app" / "check" / "pool.py", f + "/pool.py"),
    "truncate by a reader": lambda f: os.open(HERE.parents[2] / "app/check/pool.py", os.O_RDONLY | os.O_TRUNC),
    "change permissions": lambda f: os.chmod(HERE.parents[2] / "app" / "check" / "pool.py", 0o777),
    "change times": lambda f: os.utime(HERE.parents[2] / "app" / "check" / "pool.py"),
    "make a symbolic link": lambda f: os.symlink("/etc/passwd", f + "/link"),
    "make a hard link": lambda f: os.link("/proc/self/maps", f + "/link"),
    "make a device": lambda f: os.mknod(f + "/device", 0o20666, os.makedev(1, 1)),
    "make a pipe with a name": lambda f: os.mkfifo(f + "/pipe"),
    "write a file over the limit of the folder": lambda f: Path(f + "/big").write_bytes(b"x" * (9 << 20)),
    "write too many files": lambda f: [Path(f"{f}/{i}").write_text("") for i in range(600)],
    "connect by TCP": lambda f: socket.create_connection(("127.0.0.1", 22), 1),
    "connect by TCP over IPv6": lambda f: socket.create_connection(("::1", 22), 1),
    "listen": lambda f: socket.create_server(("127.0.0.1", 0)),
    "send UDP": lambda f: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 53)),
    "a raw socket": lambda f: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1),
    "a netlink socket": lambda f: socket.socket(16, socket.SOCK_RAW, 0),
    "a Unix socket": lambda f: socket.socket(socket.AF_UNIX).connect("/run/x"),
    "an abstract Unix socket": lambda f: socket.socket(socket.AF_UNIX).connect("\0x"),
    "look up a name": lambda f: socket.getaddrinfo("example.com", 80),
    "run a program": lambda f: os.execv("/bin/true", ["true"]),
    "run a program by a shell": lambda f: subprocess.run("true", shell=True, check=True),
    "spawn": lambda f: os.posix_spawn("/bin/true", ["true"], {}),
    "fork": lambda f: os.fork() or os._exit(0),
    "fork by number": raw(57, 1 << 20),
    "vfork by number": raw(58, 1 << 20),
    "clone a process": raw(56, 220, 17, 0, 0, 0, 0),
    "clone3": raw(435, 435, 0, 0),
    "too many threads": lambda f: threads(5000),
    "signal the parent": lambda f: os.kill(os.getppid(), signal.SIGTERM),
    "signal everybody": lambda f: os.kill(-1, signal.SIGKILL),
    "signal the group": lambda f: os.kill(0, signal.SIGTERM),
    "make a descriptor signal somebody": lambda f: fcntl.fcntl(0, 8, os.getppid()),
    "trace the parent": raw(101, 117, 16, os.getppid(), 0, 0),
    "read another's memory": raw(310, 270, os.getppid(), 0, 0, 0, 0, 0),
    "write another's memory": raw(311, 271, os.getppid(), 0, 0, 0, 0, 0),
    "open a process": raw(434, 434, os.getppid(), 0),
    "mount": raw(165, 40, b"none", b"/tmp", b"tmpfs", 0, 0),
    "unmount": raw(166, 39, b"/", 2),
    "change the root": os.chroot,
    "new namespaces": raw(272, 97, 0x10000000),
    "enter namespaces": raw(308, 268, 0, 0),
    "io_uring": raw(425, 425, 8, 0),
    "bpf": raw(321, 280, 0, 0, 0),
    "perf": raw(298, 241, 0, 0, 0, 0, 0),
    "userfaultfd": raw(323, 282, 0),
    "a file in memory": raw(319, 279, b"x", 0),
    "keys": raw(250, 219, 0, 0),
    "shared memory": raw(29, 194, 0, 4096, 0o666),
    "become root": lambda f: os.setresuid(0, 0, 0),
    "become root's group": lambda f: os.setgroups([0]),
    "raise the priority": lambda f: os.nice(-5),
    "choose a processor": lambda f: os.sched_setaffinity(0, {0}),
    "raise a limit": lambda f: resource.setrlimit(resource.RLIMIT_NPROC, (10**6, 10**6)),
    "limit another": lambda f: resource.prlimit(os.getppid(), resource.RLIMIT_CPU),
    "loosen the filter": raw(317, 277, 1, 0, 0),
    "handles": raw(304, 265, 0, 0, 0),
}  # fmt: skip
# These need the memory-backed folder, else the folder is read-only and they fail for that reason.
FOLDER_ONLY = {"write a file over the limit of the folder", "write too many files"}
ERRORS = (
    "PermissionError",
    "FileNotFoundError",
    "OSError",
    "RuntimeError",
    "ValueError",
    "gaierror",
    "CalledProcessError",
)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str, view: str) -> None:
    how, value, layers = confined(REFUSED[what], view=view)

    assert layers, value
    assert how in ERRORS, value


@pytest.mark.skipif(os.getuid() != 0 or not os.path.exists("/usr/bin/python3"), reason="needs root and a system Python")
def test_an_ordinary_user_is_confined_too(public_copy: str) -> None:
    """The same attacks by a process that was never root, with and without namespaces."""
    script = HERE.with_name("ordinary_user.py")
    code = script.read_text()
    done = subprocess.run(
        ["/usr/bin/python3", "-c", code], user=65534, group=65534, extra_groups=[], cwd="/", capture_output=True,
        text=True, env={"ERRATA_SOURCE": public_copy}, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["require", "off"]


@pytest.fixture
def public_copy() -> Iterator[str]:
    """A folder that everybody may read, with the modules of the sandbox."""
    with tempfile.TemporaryDirectory(prefix="errata-public-") as folder:
        target = Path(folder, "app", "check")
        target.mkdir(parents=True)
        for name in ("sandbox.py", "seccomp.py", "__init__.py"):
            shutil.copy(HERE.parents[2] / "app" / "check" / name, target / name)
        (target.parent / "__init__.py").touch()
        Path(folder).chmod(0o755)
        yield folder


def test_what_a_check_needs_still_works() -> None:
    def work(folder: str) -> object:
        Path(folder, "note").write_text("x" * 1000)
        os.mkdir(folder + "/sub")
        os.rename(folder + "/note", folder + "/sub/note")
        Path("/dev/null").write_text("x")
        left, right = socket.socketpair()
        left.send(b"x")
        thread = threading.Thread(target=lambda: None)
        thread.start()
        thread.join()
        os.kill(os.getpid(), 0)
        mmap.mmap(-1, 1 << 20).close()
        return [
            Path(folder, "sub", "note").stat().st_size, len(os.urandom(4)), right.recv(1).decode(),
            "MemTotal" in Path("/proc/meminfo").read_text(), len(Path("/proc/self/maps").read_text()) > 0,
            Path(os.__file__).read_text() != "", os.listdir(folder),
        ]  # fmt: skip

    how, value, layers = confined(work, view="require")

    assert (how, value) == ("returned", [1000, 4, "x", True, True, True, ["sub"]])
    assert {"private view", "no network", "no capabilities", "no_new_privs", "seccomp"} <= set(layers)


def put_model() -> None:
    os.mkdir("model")
    Path("model", "config.json").write_text("{}")


def test_prepared_files_are_there_and_nothing_reaches_the_disk(tmp_path: Path) -> None:
    how, value, _ = confined(
        lambda folder: Path("model", "config.json").read_text(),
        prepare=put_model,
        view="require",
    )

    assert (how, value) == ("returned", "{}")


def test_the_rest_of_the_file_system_cannot_even_be_seen() -> None:
    def look(folder: str) -> object:
        return [os.path.exists(p) for p in ("/etc/passwd", "/root/.bashrc", "/home", str(HERE), "/proc/1", "/tmp/x")]

    how, value, _ = confined(look, view="require")

    assert (how, value) == ("returned", [False] * 6)


def test_inherited_descriptors_are_closed() -> None:
    secret = os.open(HERE, os.O_RDONLY)

    how, _, _ = confined(lambda folder: os.read(secret, 1), view="require")

    assert how == "OSError"
    os.close(secret)


def test_processors_can_be_given() -> None:
    one = min(os.sched_getaffinity(0))

    how, value, _ = confined(lambda folder: sorted(os.sched_getaffinity(0)), view="require", cpus=(one,))

    assert (how, value) == ("returned", [one])


def test_it_fails_closed_without_landlock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "landlock_abi", lambda: 0)

    how, value, layers = confined(lambda folder: "ran", view="auto")

    assert (how, layers) == ("SandboxUnavailable", ())
    assert "Landlock" in str(value)


def test_it_fails_closed_on_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")

    assert confined(lambda folder: "ran")[0] == "SandboxUnavailable"


def test_it_fails_closed_when_the_filter_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seccomp, "for_process", lambda name, pid: b"\xff" * 8)

    assert confined(lambda folder: "ran", view="require")[0] == "SandboxUnavailable"


def test_it_fails_closed_with_threads() -> None:
    stop = threading.Event()

    def with_a_thread() -> None:
        thread = threading.Thread(target=stop.wait, daemon=True)
        thread.start()
        sandbox.enter(policy("/tmp").to_json())

    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            with_a_thread()
        except SandboxUnavailable:
            os.write(write, b"refused")
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)

    assert os.read(read, 100) == b"refused"
    os.close(read)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"read": ["relative"], "folder": "/x"},
        {"read": [], "folder": "x"},
        {"read": [], "folder": "/x", "view": "never"},
        {"read": [], "folder": "/x", "processes": 0},
        {"read": [], "folder": "/x", "cpus": [-1]},
        {"read": [], "folder": "/x", "more": 1},
        {"read": ["/a\0b"], "folder": "/x"},
    ],
)
def test_a_policy_is_read_strictly(value: dict[str, object]) -> None:
    with pytest.raises(SandboxUnavailable):
        read_policy(value)


def test_a_policy_travels() -> None:
    one = Policy(("/usr/lib",), "/tmp/x", cpus=(0, 1))

    assert read_policy(one.to_json()) == one


def test_the_engine_only_needs_the_standard_library() -> None:
    code = "import sys; before = set(sys.modules); import app.check.sandbox; print(*set(sys.modules) - before)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, cwd=HERE.parents[2]
    )

    top = {name.partition(".")[0] for name in done.stdout.split()}
    assert top <= {*sys.stdlib_module_names, "app"}
