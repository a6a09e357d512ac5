"""Run a function in a forked and confined child and bring back what it returned."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from app.check import sandbox
from app.check.pool import Engine, readable

ENGINE = Engine("0", Path(sys.executable), Path("/usr/lib"))


def policy(folder: str, **changes: Any) -> sandbox.Policy:
    return sandbox.Policy(**{"read": readable(ENGINE), "folder": folder, **changes})


def confined(
    attack: Callable[[str], object], *, prepare: Callable[[], None] | None = None, **changes: Any
) -> tuple[str, object, tuple[str, ...]]:
    """Return ("returned" or the exception's name, its value or text, the layers in force)."""
    with tempfile.TemporaryDirectory(prefix="errata-test-") as folder:
        os.chmod(folder, 0o700)
        os.chmod(os.path.dirname(folder), os.stat(os.path.dirname(folder)).st_mode)
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            _child(attack, policy(folder, **changes), write, prepare)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            data = pipe.read()
        _, status = os.waitpid(pid, 0)
        if not data:
            return "died", os.waitstatus_to_exitcode(status), ()
        how, value, layers = json.loads(data)
        return how, value, tuple(layers)


def _child(
    attack: Callable[[str], object], policy: sandbox.Policy, write: int, prepare: Callable[[], None] | None
) -> None:
    layers: tuple[str, ...] = ()
    try:
        try:
            layers = sandbox.enter(policy.to_json(), keep=(write,), prepare=prepare)
            result: tuple[str, object] = ("returned", attack(policy.folder))
        except BaseException as error:
            result = (type(error).__name__, str(error))
        os.write(write, json.dumps([*result, layers], default=str).encode())
    finally:
        os._exit(0)
