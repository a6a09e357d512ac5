"""The engine's process: read `Start`, import and warm the release, say `Ready`, then answer jobs.

Run as `python -P -m app.check.worker` in the engine's environment; `docs/engine.md` draws the conversation.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from app.check.protocol import Fault, ProtocolError, Ready, Start, dump, load

KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH")
"""Variables that the process keeps of the environment it was started with."""

START_LIMIT = 8 << 20


def main() -> int:
    """Serve until the input ends. Returns the exit code."""
    source, sink = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    os.environ.clear()
    os.environ.update(kept)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        start = _start(source)
    except ProtocolError as error:
        _say(sink, dump(Fault(str(error)[:500])))
        return 2
    return serve(start, source, sink)


def serve(start: Start, source: int, sink: int) -> int:
    """Make the engine ready and answer its jobs."""
    from app.check.worker import options, standins, warmup
    from app.check.worker.driver import Engine
    from app.check.worker.forks import Forks

    try:
        standins.leave_out(start.without)
        engine = Engine(Path(start.release), tuple(Path(path) for path in start.overlays), start.hardware)
        begun = time.perf_counter()
        ended = warmup.warm(engine.check, start.warmup or warmup.requests(start.hardware))
    except Exception as error:
        _say(sink, dump(Fault(f"{type(error).__name__}: {error}"[:2000])))
        return 3
    ready = Ready(
        version=start.version,
        group=start.hardware.group,
        pid=os.getpid(),
        import_s=round(engine.import_s, 3),
        warmup_s=round(time.perf_counter() - begun, 3),
        rss_bytes=_resident_bytes(),
        modules=len(sys.modules),
        warmup=ended,
        stand_ins=tuple(sorted(standins.installed())),
        options=options.declared(engine.parser),
    )
    _say(sink, dump(ready))
    Forks(engine.check, start.max_children, source, sink).serve()
    return 0


def _start(source: int) -> Start:
    """Read the first line, byte by byte so that nothing after it is swallowed. Raises: ProtocolError."""
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = os.read(source, 1)
        if not byte or len(line) > START_LIMIT:
            raise ProtocolError("the first line must be a start message")
        line += byte
    message = load(bytes(line))
    if not isinstance(message, Start):
        raise ProtocolError("the first line must be a start message")
    return message


def _say(sink: int, line: bytes) -> None:
    view = memoryview(line)
    while view:
        view = view[os.write(sink, view) :]


def _resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as stream:
        return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    sys.exit(main())
