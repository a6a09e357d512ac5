"""Load on a server: wrk where it is installed, else a plain asyncio client that speaks HTTP over raw sockets.

Both take a list of addresses and ask them in order, each connection from its own place in the list.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

_SCRIPT = """
local paths = {}
for line in io.lines("%s") do paths[#paths + 1] = line end
local at = 0
request = function()
  at = at %% #paths + 1
  return wrk.format("GET", paths[at])
end
done = function(summary, latency, requests)
  local bad = summary.errors.status + summary.errors.read + summary.errors.connect + summary.errors.timeout
  io.write(string.format("RESULT %%d %%d %%d %%d %%d\\n",
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(95), bad))
end
"""


@dataclass(frozen=True, slots=True)
class Load:
    """What one run measured. Latencies in milliseconds; `bad` are answers over 399 and broken connections."""

    requests: int
    seconds: float
    p50_ms: float
    p95_ms: float
    bad: int

    @property
    def rate(self) -> float:
        """Return requests a second."""
        return self.requests / self.seconds


def load(base: str, paths: Sequence[str], *, connections: int, seconds: float, core: int | None = None) -> Load:
    """Return what a server does under load, asked from another core."""
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder) / "paths"
        listed.write_text("\n".join(paths) + "\n")
        if shutil.which("wrk"):
            script = Path(folder) / "ask.lua"
            script.write_text(_SCRIPT % listed)
            command = ["wrk", "-t1", f"-c{connections}", f"-d{ceil(seconds)}s", "-s", str(script), base]
        else:
            command = [sys.executable, "-m", "bench.load", base, str(listed), str(connections), str(seconds)]
        if core is not None and shutil.which("taskset"):
            command = ["taskset", "-c", str(core), *command]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    match = re.search(r"RESULT (\d+) (\d+) (\d+) (\d+) (\d+)", output)
    if match is None:
        raise RuntimeError(f"the load generator said nothing that is understood: {output!r}")
    requests, duration_us, p50_us, p95_us, bad = map(int, match.groups())
    return Load(requests, duration_us / 1e6, p50_us / 1e3, p95_us / 1e3, bad)


def client() -> str:
    """Return which load generator is used."""
    return "wrk" if shutil.which("wrk") else "asyncio"


async def _connection(base: str, paths: list[bytes], start: int, end: float, took: list[float]) -> int:
    """Ask one path after the other over one connection; return how many answers were bad."""
    host, port = base.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    bad, at = 0, start
    while (began := time.perf_counter()) < end:
        writer.write(b"GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (paths[at % len(paths)], host.encode()))
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        await reader.readexactly(int(length[1]) if length else 0)
        took.append(time.perf_counter() - began)
        bad += not head.startswith((b"HTTP/1.1 2", b"HTTP/1.1 3"))
        at += 1
    writer.close()
    return bad


async def _main(base: str, file: str, connections: int, seconds: float) -> None:
    paths = Path(file).read_bytes().split()
    took: list[float] = []
    began = time.perf_counter()
    step = max(1, len(paths) // connections)
    running = [_connection(base, paths, n * step, began + seconds, took) for n in range(connections)]
    bad = sum(await asyncio.gather(*running))
    elapsed = time.perf_counter() - began
    took.sort()
    p50, p95 = (int(took[int(len(took) * share)] * 1e6) for share in (0.5, 0.95))
    print(f"RESULT {len(took)} {int(elapsed * 1e6)} {p50} {p95} {bad}")


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])))
