"""Talk to the process of a really installed engine."""

from __future__ import annotations

import json
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.check.install import Engines
from app.check.pool import Engine, environment
from app.check.protocol import (
    Answer,
    Capacity,
    Hardware,
    Job,
    Limits,
    Model,
    Outcome,
    Progress,
    Ready,
    Request,
    Start,
    dump,
    load,
)

ROOT = Path(__file__).parents[3]
ENGINES = Engines(ROOT / "var" / "engines", "0.5.18")
MODELS = {
    name: json.dumps(config) for name, config in json.loads(Path(__file__).with_name("models.json").read_text()).items()
}
PATIENT = Limits(wall_s=300, cpu_s=300, output_bytes=4 << 20)


def installed(version: str) -> Engine | None:
    """Return an installed engine, or None."""
    return next((engine for engine in ENGINES.installed() if engine.version == version), None)


class Conversation:
    """A started engine. Checks run unconfined: the commands are ours."""

    def __init__(self, process: subprocess.Popen[bytes], hardware: Hardware) -> None:
        self._process, self._hardware = process, hardware
        self._number = 0
        ready = load(self._read())
        assert isinstance(ready, Ready), ready
        self.ready = ready

    def check(
        self,
        line: str,
        *,
        hardware: Hardware | None = None,
        gpus: int = 16,
        capacity: Capacity | None = None,
        packages: dict[str, str] | None = None,
    ) -> Outcome:
        """Run a command whose models are the names of models.json."""
        words = tuple(shlex.split(line))
        models = tuple(Model(word, {"config.json": MODELS[word]}) for word in dict.fromkeys(words) if word in MODELS)
        request = Request(words, hardware or self._hardware, gpus, models, {}, packages or {}, capacity or Capacity())
        self._number += 1
        assert self._process.stdin is not None
        self._process.stdin.write(dump(Job(self._number, request, PATIENT)))
        self._process.stdin.flush()
        while isinstance(message := load(self._read()), Progress):
            pass
        assert isinstance(message, Answer) and message.id == self._number
        assert message.outcome is not None, message.lost
        return message.outcome

    def _read(self) -> bytes:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


@contextmanager
def started(
    engine: Engine, hardware: Hardware, *, warmup: tuple[Request, ...] = (), without: tuple[str, ...] = ()
) -> Iterator[Conversation]:
    """Start an engine's process for a block of tests."""
    overlays = tuple(map(str, engine.overlays))
    start = Start(engine.version, str(engine.release), hardware, overlays, warmup, without=without)
    with tempfile.TemporaryDirectory(prefix="errata-test-") as folder:
        command = [str(engine.python), "-P", "-W", "ignore", "-m", engine.module]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=environment(Path(folder)),
        )
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(dump(start))
            process.stdin.flush()
            yield Conversation(process, hardware)
        finally:
            process.stdin.close()
            process.wait(60)
            process.stdout.close()
