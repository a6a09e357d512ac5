"""What attacks are measured by: secrets that must not leak, places that must not change, ears that must not hear."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

RESULTS: list[tuple[str, str, str]] = []
WATCHED = (Path("/tmp"), Path("/dev/shm"), Path.home(), Path.home() / ".cache", Path.cwd())


@dataclass
class Watch:
    """A secret file and variable, sockets that hear, and what the watched folders hold."""

    folder: Path
    token: str
    port: int
    ears: list[socket.socket]
    before: set[str] = field(default_factory=set)

    @property
    def secret(self) -> Path:
        return self.folder / "secret.txt"

    def begin(self) -> None:
        self.before = self._seen()

    def check(self, answer: str) -> None:
        """Fail if anything leaked, was written or was heard."""
        assert self.token not in answer
        assert "root:x:0:0" not in answer
        assert self.secret.read_text() == self.token
        assert not self.heard()
        assert not {name for name in self._seen() - self.before if "errata-attack" in name or "evil" in name}
        assert {p.name for p in self.folder.iterdir()} == {
            "secret.txt",
            "secret.yaml",
            "secret.json",
            "socket",
            "model",
        }
        assert {p.name for p in (self.folder / "model").iterdir()} == {"config.json", "evil.py"}

    def heard(self) -> list[str]:
        """Return what reached a socket."""
        heard = []
        for ear in self.ears:
            with contextlib.suppress(BlockingIOError):
                if ear.type == socket.SOCK_DGRAM:
                    heard.append(repr(ear.recv(100)))
                else:
                    connection, _ = ear.accept()
                    connection.close()
                    heard.append(str(ear.getsockname()))
        return heard

    def _seen(self) -> set[str]:
        return {str(path) for folder in WATCHED if folder.is_dir() for path in folder.iterdir()}


@pytest.fixture(scope="session")
def watch() -> Iterator[Watch]:
    """Secrets and ears for the whole session."""
    token = secrets.token_hex(16)
    with tempfile.TemporaryDirectory(prefix="errata-watch-") as name:
        folder = Path(name)
        for file, text in (("secret.txt", token), ("secret.yaml", f"model-path: {token}\n{token}: 1\n")):
            (folder / file).write_text(text)
        (folder / "secret.json").write_text(f'{{"{token}": "{token}"}}')
        (folder / "model").mkdir()
        (folder / "model" / "config.json").write_text(
            '{"model_type": "evil", "architectures": ["EvilForCausalLM"], '
            '"auto_map": {"AutoConfig": "evil.EvilConfig", "AutoModelForCausalLM": "evil.Evil"}}'
        )
        (folder / "model" / "evil.py").write_text("open('/tmp/errata-attack-remote-code', 'w').write('x')\n")
        tcp = socket.create_server(("127.0.0.1", 0))
        port = int(tcp.getsockname()[1])
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", port))
        unix = socket.socket(socket.AF_UNIX)
        unix.bind(str(folder / "socket"))
        abstract = socket.socket(socket.AF_UNIX)
        abstract.bind("\0errata-attack")
        for ear in (unix, abstract):
            ear.listen(8)
        ears = [tcp, udp, unix, abstract]
        for ear in ears:
            ear.setblocking(False)
        os.environ["NOT_FOR_CHECKS"] = token
        yield Watch(folder, token, port, ears)
        del os.environ["NOT_FOR_CHECKS"]
        for ear in ears:
            ear.close()


def descendants(pid: int) -> list[int]:
    """Return the living processes below `pid`."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = Path(f"/proc/{int(name)}/stat").read_text().rpartition(")")[2].split()
            if fields[0] != "Z":
                children.setdefault(int(fields[1]), []).append(int(name))
    found, waiting = [], [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def filters(pid: int) -> int:
    """Return how many seccomp filters a process is under: one more than ours once it has run a check."""
    with contextlib.suppress(OSError):
        status = Path(f"/proc/{pid}/status").read_text()
        return int(status.partition("Seccomp_filters:")[2].split()[0])
    return 0


def wait_until_alone(pid: int) -> None:
    """Wait until nothing that ran a check is left below `pid`, and fail if something is.

    A child that has been given no check yet is not confined, and may wait for one.
    """
    own = filters(os.getpid())
    for _ in range(200):
        left = [process for process in descendants(pid) if filters(process) > own]
        if not left:
            return
        time.sleep(0.05)
    raise AssertionError(f"processes are left: {left}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table of attacks."""
    if RESULTS:
        terminalreporter.section("attacks")
        width = max(len(name) for _, name, _ in RESULTS)
        for kind, name, outcome in RESULTS:
            terminalreporter.write_line(f"{kind:9} {name:{width}}  {outcome[:110]}")
        terminalreporter.write_line(f"{len(RESULTS)} attacks, none succeeded" if RESULTS else "")
