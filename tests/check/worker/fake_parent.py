"""A parent process whose checks do what their first argument says. Run by test_forks.py."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from app.check.protocol import Outcome, Pools, Request, Stage
from app.check.worker.forks import Forks


def pool(tokens: int, rank: int) -> Pools:
    """Return a target's pools with that many tokens."""
    return Pools("target", "M", "P", "R", "A", tokens, 1, 1, 1, 1, 0, 0, rank=rank)


def check(request: Request, report: Callable[[Stage], None], rank: int) -> Outcome:
    """Pass, sleep, die, flood, talk nonsense, eat memory or be one of several ranks."""
    what, *rest = request.arguments
    stages = (Stage("arguments", "pass", 1.0),)
    report(stages[0])
    if what == "sleep":
        time.sleep(60)
    elif what == "die":
        os.abort()
    elif what == "leave":
        os._exit(0)
    elif what == "raise":
        raise ValueError("our own fault")
    elif what == "flood":
        for _ in range(100_000):
            report(Stage("model", "pass", 1.0))
    elif what == "nonsense":
        os.write(int(rest[0]) if rest else _pipe(), b"nonsense\n")
        time.sleep(60)
    elif what == "memory":
        bytearray(8 << 30)
    elif what == "spin":
        while True:
            pass
    elif what == "file":
        return Outcome("pass", open(rest[0]).read(), stages)
    elif what == "ranks":
        tokens = [int(word) for word in rest]
        verdict = "pass" if tokens[rank] else "fail"
        return Outcome(
            verdict,  # type: ignore[arg-type]
            f"rank {rank}",
            stages,
            pools=(pool(tokens[rank], rank),),
            ranks=(rank,),
            pipeline_ranks=len(tokens),
        )
    return Outcome("pass", "done", stages, pools=(pool(10, rank),))


def _pipe() -> int:
    """Return the descriptor that this child answers on: the only pipe it has open for writing."""
    for number in range(3, 64):
        path = f"/proc/self/fd/{number}"
        if number not in KEPT and os.path.exists(path) and os.readlink(path).startswith("pipe:"):
            return number
    raise LookupError("no pipe")


KEPT: set[int] = set()

if __name__ == "__main__":
    source, sink = os.dup(0), os.dup(1)
    KEPT |= {source, sink}
    Forks(check, int(sys.argv[1]), source, sink).serve()
