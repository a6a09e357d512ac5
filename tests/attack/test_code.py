"""Hostile code inside a check, through the real pool, fork server and sandbox."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.check.pool import Bounds, Engine, SandboxPool
from app.check.protocol import Hardware, Limits, Lost, Outcome, Request
from app.errors import ErrataError
from tests.attack.code import ATTACKS
from tests.attack.conftest import RESULTS, Watch, wait_until_alone

HARDWARE = Hardware("cpu", "cpu")
ENGINE = Engine("hostile", Path(sys.executable), Path("/usr/lib"), module="tests.attack.hostile_worker",
                read=(Path(__file__).parent,))  # fmt: skip
LIMITS = Limits(wall_s=6.0, cpu_s=3, memory_bytes=2 << 30, output_bytes=1 << 20)
ALLOWED = {"its own environment"}
# Nobody's secret is behind these; what matters is that they end, and that the service goes on.
ENDS = {
    *("eat memory", "flood every descriptor", "an answer of 64 MB", "spin", "spin in 32 threads", "sleep", "crash"),
    *("recurse without end", "answer for others"),
}


class Hostile:
    """A pool of hostile engines in a loop of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.pool = self.loop.run_until_complete(self._pool())

    async def _pool(self) -> SandboxPool:
        return SandboxPool(Bounds(workers=2, limits=LIMITS))

    def run(self, *arguments: str) -> Outcome | Lost | ErrataError:
        try:
            return self.loop.run_until_complete(self.pool.check(ENGINE, Request(arguments, HARDWARE)))
        except ErrataError as error:
            return error

    def parent(self) -> int:
        (parent,) = self.pool._parents.values()
        assert parent.process is not None
        return parent.process.pid

    def close(self) -> None:
        self.loop.run_until_complete(self.pool.close())
        self.loop.close()


@pytest.fixture(scope="module")
def hostile() -> Iterator[Hostile]:
    made = Hostile()
    yield made
    made.close()


@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_succeeds(name: str, hostile: Hostile, watch: Watch) -> None:
    watch.begin()

    result = hostile.run(name, str(watch.secret), str(watch.port))

    if name in ENDS:
        assert not isinstance(result, Outcome) or len(result.basis) < 1 << 20
    elif name not in ALLOWED:
        assert not isinstance(result, Outcome) or result.verdict == "fail", result
    watch.check(repr(result))
    wait_until_alone(hostile.parent())
    after = hostile.run("nothing")
    assert isinstance(after, Outcome) and after.basis == "nothing"
    RESULTS.append(("code", name, _told(result)))


def _told(result: Outcome | Lost | ErrataError) -> str:
    if isinstance(result, Outcome):
        return f"refused: {result.basis}" if result.verdict == "fail" else "allowed: harmless"
    return f"stopped: {result.reason}" if isinstance(result, Lost) else f"stopped: {result.detail}"
