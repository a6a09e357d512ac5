"""The fast path: records at their plain address are answered here, in front of the framework.

`/api/errors/{id}` and `/errors/{id}` without a query are most of what is asked, their bytes are known before the
request comes, and a framework's routing and validation would cost ten times what sending them does. So this module
answers them itself, in three steps, each cheaper than the next:

1. from memory: ready answers (headers and body), least recently used ones dropped above a limit of bytes;
2. from the database: one indexed read of the stored document or of the kept page (`prerender.py`);
3. a page that nobody has rendered yet is rendered in a thread, and is in memory from then on.

Everything else (aliases, unknown ids, queries, other methods, Markdown) goes on to the application, whose routes give
the same answers. What an answer owes its reader is the same on both ways: security headers, request id, ETag and 304,
HEAD, a count and a log line. A commit to the database is noticed within `CHECK_S`.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from dataclasses import dataclass
from time import perf_counter

from starlette.types import ASGIApp, Receive, Scope, Send

from app.store import pages as kept
from app.store.pages import RecordReader
from app.web.parts import Parts
from app.web.prerender import PAGE_KIND, RecordRenderer
from app.web.shell import REVALIDATE, SECURITY_HEADERS, agrees, etag
from app.web.telemetry import RouteCounts

LIMIT_BYTES = 96 * 1024 * 1024
CHECK_S = 1.0
_JSON = re.compile(r"/api/errors/([0-9a-f]{16})")
_PAGE = re.compile(r"/errors/([0-9a-f]{16})")
# What one kept answer costs in memory beside its body: headers, key, bookkeeping.
_OVERHEAD = 900


@dataclass(frozen=True, slots=True)
class Ready:
    """An answer as it is sent. `page`: Accept decides between it and Markdown; `counts` are those of its 200."""

    headers: tuple[tuple[bytes, bytes], ...]
    headers_304: tuple[tuple[bytes, bytes], ...]
    etag: bytes
    body: bytes
    route: str
    page: bool
    counts: RouteCounts


class FastPath:
    """Answers what is ready, hands on the rest. One per process, used by its event loop only."""

    def __init__(self, app: ASGIApp, parts: Parts, *, limit_bytes: int = LIMIT_BYTES) -> None:
        self.app = app
        self._parts = parts
        self._telemetry = parts.telemetry
        self._limit = limit_bytes
        self._size = 0
        self._kept: OrderedDict[str, Ready] = OrderedDict()
        self._reader: RecordReader | None = None
        self._renderer: RecordRenderer | None = None
        self._version = -1
        self._check_at = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["query_string"] or scope["method"] not in {"GET", "HEAD"}:
            await self.app(scope, receive, send)
            return
        started = perf_counter()
        if started > self._check_at:
            self._look_for_changes(started)
        path = scope["path"]
        ready = self._kept.get(path)
        if ready is not None:
            self._kept.move_to_end(path)
        else:
            ready = await self._found(path)
        if ready is None:
            await self.app(scope, receive, send)
            return
        given_id = if_none_match = None
        for name, value in scope["headers"]:
            if name == b"accept":
                # Rare, so the exact comparison of q-values is left to the application.
                if ready.page and b"markdown" in value:
                    await self.app(scope, receive, send)
                    return
            elif name == b"if-none-match":
                if_none_match = value
            elif name == b"x-request-id":
                given_id = value
        request_id = self._telemetry.ids.of(given_id)
        status, headers, body = 200, ready.headers, ready.body
        if if_none_match is not None and agrees(if_none_match, ready.etag):
            status, headers, body = 304, ready.headers_304, b""
        elif scope["method"] == "HEAD":
            body = b""
        await send(
            {"type": "http.response.start", "status": status, "headers": [*headers, (b"x-request-id", request_id)]}
        )
        await send({"type": "http.response.body", "body": body})
        seconds = perf_counter() - started
        counts = ready.counts if status == 200 else self._telemetry.counts.of(ready.route, status)
        counts.add(seconds)
        self._telemetry.access.add(
            request_id, method=scope["method"], route=ready.route, status=status, seconds=seconds, size=len(body)
        )

    @property
    def size(self) -> int:
        """Return how many bytes the kept answers take."""
        return self._size

    def close(self) -> None:
        """Close the connection and write what waits in the log."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self._telemetry.access.flush()

    def _look_for_changes(self, now: float) -> None:
        """Forget everything when another process has committed to the database."""
        self._check_at = now + CHECK_S
        if self._reader is None:
            self._reader = RecordReader(self._parts.store)
        version = self._reader.version()
        if version == self._version:
            return
        self._version = version
        self._kept.clear()
        self._size = 0
        with self._parts.store.reading() as connection:
            licences = kept.licences(connection)
        self._renderer = RecordRenderer(self._parts.site, licences, files=self._parts.assets)

    async def _found(self, path: str) -> Ready | None:
        """Return the answer for a path from the database; None where the application has to answer."""
        reader, renderer = self._reader, self._renderer
        if reader is None or renderer is None:
            return None
        if match := _JSON.fullmatch(path):
            stored = reader.document(match[1])
            return self._keep(path, stored.body, f'"{stored.etag}"', page=False) if stored else None
        if match := _PAGE.fullmatch(path):
            page = reader.page(match[1], PAGE_KIND)
            body = renderer.unpack(page) if page is not None else None
            if body is None:
                stored = reader.document(match[1])
                if stored is None:
                    return None
                body = await asyncio.to_thread(renderer.html, stored.body)
            return self._keep(path, body, etag(body), page=True)
        return None

    def _keep(self, path: str, body: bytes, tag: str, *, page: bool) -> Ready:
        """Return the answer and keep it in memory, dropping the longest unused ones."""
        route = "/errors/{record_id}" if page else "/api/errors/{record_id}"
        headers_304 = (
            *SECURITY_HEADERS,
            (b"etag", tag.encode()),
            (b"cache-control", REVALIDATE.encode()),
            *(((b"vary", b"accept"),) if page else ()),
        )
        media_type = b"text/html; charset=utf-8" if page else b"application/json"
        ready = Ready(
            headers=((b"content-length", b"%d" % len(body)), (b"content-type", media_type), *headers_304),
            headers_304=headers_304,
            etag=tag.encode(),
            body=body,
            route=route,
            page=page,
            counts=self._telemetry.counts.of(route, 200),
        )
        replaced = self._kept.pop(path, None)
        if replaced is not None:
            self._size -= len(replaced.body) + _OVERHEAD
        self._kept[path] = ready
        self._size += len(body) + _OVERHEAD
        while self._size > self._limit:
            _, dropped = self._kept.popitem(last=False)
            self._size -= len(dropped.body) + _OVERHEAD
        return ready
