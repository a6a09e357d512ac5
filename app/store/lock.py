"""One ingest at a time: a file lock beside the database."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from app.errors import Unavailable
from app.store import sqlite


@contextmanager
def only_one(url: str) -> Iterator[None]:
    """Hold the lock of a database; the system lets go of it when the process dies, however that happens.

    Raises: Unavailable: another process holds it.
    """
    file = sqlite.path(url)
    if file is None:
        yield
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.with_name(file.name + ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Unavailable(f"another ingest is writing {file.name}: wait for it to end") from None
        yield
