"""Answers that were given already, by what was asked. In memory only, bounded, gone with the process."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

from app.check.protocol import Lost, Outcome, Request


def key(version: str, fingerprint: str, request: Request) -> bytes:
    """Return what identifies a submission: the engine and everything that is sent to it, as a hash."""
    content = json.dumps([version, fingerprint, request.to_json()], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(content.encode()).digest()


class OutcomeCache:
    """The least recently used outcomes, up to `entries` and `size_bytes`; one run for equal requests at the same time.

    Only outcomes are kept. A loss (time, memory, a crash) may go better next time.
    """

    def __init__(self, entries: int = 1024, size_bytes: int = 16 << 20) -> None:
        self._entries, self._size_limit = entries, size_bytes
        self._kept: OrderedDict[bytes, tuple[Outcome, int]] = OrderedDict()
        self._running: dict[bytes, asyncio.Future[Outcome | Lost]] = {}
        self._size = 0
        self.hits = 0
        self.misses = 0

    def get(self, key: bytes) -> Outcome | None:
        """Return the outcome kept for `key`."""
        found = self._kept.get(key)
        if found is None:
            return None
        self._kept.move_to_end(key)
        self.hits += 1
        return found[0]

    def put(self, key: bytes, outcome: Outcome) -> None:
        """Keep `outcome`, dropping the ones unused for longest. One larger than a quarter of the limit is not kept."""
        size = len(outcome.to_line())
        if size > self._size_limit // 4:
            return
        self._drop(key)
        self._kept[key] = (outcome, size)
        self._size += size
        while len(self._kept) > self._entries or self._size > self._size_limit:
            self._drop(next(iter(self._kept)))

    async def get_or_run(self, key: bytes, run: Callable[[], Awaitable[Outcome | Lost]]) -> tuple[Outcome | Lost, bool]:
        """Return the outcome for `key`, and whether it was there already."""
        if (found := self.get(key)) is not None:
            return found, True
        if (running := self._running.get(key)) is not None:
            try:
                return await asyncio.shield(running), True
            except asyncio.CancelledError:
                if not running.cancelled():
                    raise  # it is this caller that went away
        self.misses += 1
        future: asyncio.Future[Outcome | Lost] = asyncio.get_running_loop().create_future()
        future.add_done_callback(lambda f: f.cancelled() or f.exception())
        self._running[key] = future
        try:
            result = await run()
        except asyncio.CancelledError:
            future.cancel()
            raise
        except Exception as error:
            future.set_exception(error)
            raise
        finally:
            self._running.pop(key, None)
        future.set_result(result)
        if isinstance(result, Outcome):
            self.put(key, result)
        return result, False

    def state(self) -> dict[str, Any]:
        """Return how full it is and how often it helped."""
        return {"entries": len(self._kept), "bytes": self._size, "hits": self.hits, "misses": self.misses}

    def _drop(self, key: bytes) -> None:
        if (old := self._kept.pop(key, None)) is not None:
            self._size -= old[1]
