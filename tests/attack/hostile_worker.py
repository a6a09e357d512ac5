"""An engine's process whose checks run an attack instead of SGLang: the worst that arguments could ever achieve.

Everything else is the real thing: the fork server, its limits and strict reading, and the sandbox.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from app.check.protocol import Outcome, Ready, Request, Stage, Start, dump, load
from app.check.worker.forks import Forks
from tests.attack.code import ATTACKS


def check(request: Request, on_stage: Callable[[Stage], None], rank: int) -> Outcome:
    """Run the attack that the first argument names. Verdict `pass`: it got what it wanted."""
    if request.arguments[0] == "nothing":
        return Outcome("pass", "nothing", ())
    try:
        got = ATTACKS[request.arguments[0]](request)
    except MemoryError:
        raise
    except Exception as error:
        return Outcome("fail", f"{type(error).__name__}: {error}"[:500], ())
    return Outcome("pass", str(got), ())


def main() -> None:
    """Serve until the input ends."""
    line = b""
    while not line.endswith(b"\n"):
        line += os.read(0, 1)
    start = load(line)
    assert isinstance(start, Start)
    source, sink = os.dup(0), os.dup(1)
    os.write(sink, dump(Ready(start.version, start.hardware.group, os.getpid(), 0.0, 0.0, 1 << 20, 1)))
    Forks(check, start.max_children, source, sink).serve()


if __name__ == "__main__":
    main()
