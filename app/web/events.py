"""Long work as server-sent events: what it says on the way, its answer or its problem, and its end with the reader."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import StreamingResponse

from app.errors import ErrataError
from app.web import problems

MEDIA_TYPE = "text/event-stream"
Event = tuple[str, Any]
Say = Callable[[Event], None]
"""Sends an event: its name and what is to be its JSON."""


def response(request: Request, work: Callable[[Say], Awaitable[None]]) -> StreamingResponse:
    """Return the stream of what `work` says; where it raises, the last event is `problem`. It ends with the reader."""
    return StreamingResponse(
        _lines(request, work),
        media_type=MEDIA_TYPE,
        headers={"cache-control": "no-store", "x-accel-buffering": "no"},
    )


async def _lines(request: Request, work: Callable[[Say], Awaitable[None]]) -> AsyncIterator[bytes]:
    queue: asyncio.Queue[Event | None] = asyncio.Queue()

    async def run() -> None:
        try:
            await work(queue.put_nowait)
        except Exception as error:
            shown = problems.problem_response(request.scope, problems.fault(error))
            queue.put_nowait(("problem", orjson.loads(bytes(shown.body))))
            if not isinstance(error, ErrataError):
                raise  # it is logged where every fault of ours is
        finally:
            queue.put_nowait(None)

    task = asyncio.create_task(run())
    try:
        while (event := await queue.get()) is not None:
            name, data = event
            yield b"event: " + name.encode() + b"\ndata: " + orjson.dumps(data) + b"\n\n"
        await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
