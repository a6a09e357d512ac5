"""Run by test_sandbox.py as an ordinary user in the system's own Python: a few attacks, with and without namespaces."""

import os
import socket
import sys
import tempfile

sys.path.insert(0, os.environ["ERRATA_SOURCE"])
from app.check import sandbox

READ = ("/usr/lib", "/lib", "/lib64", "/dev/null", "/dev/urandom", "/proc/self", os.environ["ERRATA_SOURCE"])
ATTACKS = (
    lambda f: os.open("/etc/passwd", os.O_RDONLY),
    lambda f: os.open("/tmp/errata-attack", os.O_WRONLY | os.O_CREAT),
    lambda f: socket.socket(),
    lambda f: os.fork(),
    lambda f: os.execv("/bin/true", ["true"]),
    lambda f: os.kill(os.getppid(), 0),
    lambda f: os.chmod(f, 0o777),
    lambda f: [os.open(f"{f}/{i}", os.O_WRONLY | os.O_CREAT) for i in range(600)],
)


def succeeded(view: str) -> int:
    """Return how many attacks succeeded in a confined child; 99 if it could not be confined."""
    with tempfile.TemporaryDirectory() as folder:
        pid = os.fork()
        if pid == 0:
            count = 0
            try:
                sandbox.enter(sandbox.Policy(READ, folder, view=view).to_json())
                for attack in ATTACKS:
                    try:
                        attack(folder)
                        count += 1
                    except OSError:
                        pass
            except BaseException:
                count = 99
            os._exit(count)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


for view in ("require", "off"):
    if succeeded(view) == 0:
        print(view)
