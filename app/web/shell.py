"""What every answer of the application gets: request id, security headers, ETag and 304, HEAD, a count, a log line.

A pure ASGI middleware: it never holds back a stream, and it sees answers that no route made (404, 405, 500).
"""

from __future__ import annotations

from hashlib import blake2b
from time import perf_counter
from traceback import format_tb

import structlog
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import Broken
from app.web.problems import fault, problem_response
from app.web.telemetry import Telemetry

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = (
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=()"),
)
# A reader may keep any answer but has to ask whether it still holds: the ETag makes that question cheap.
REVALIDATE = "no-cache"
_log = structlog.get_logger()


def etag(body: bytes) -> str:
    """Return the entity tag of a body."""
    return f'"{blake2b(body, digest_size=9).hexdigest()}"'


def agrees(if_none_match: bytes, tag: bytes) -> bool:
    """Claim that an If-None-Match header names the tag (weakly compared, as RFC 9110 wants it here)."""
    if if_none_match.strip() == b"*":
        return True
    return any(part.strip().removeprefix(b"W/") == tag for part in if_none_match.split(b","))


class Shell:
    """Wraps the application. One per process."""

    def __init__(self, app: ASGIApp, *, telemetry: Telemetry) -> None:
        self.app = app
        self.telemetry = telemetry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = perf_counter()
        given = dict(scope["headers"])
        request_id = self.telemetry.ids.of(given.get(b"x-request-id"))
        method = scope["method"]
        # A shallow copy: what routing adds to it ("route") is read below.
        inner = {**scope, "method": "GET" if method == "HEAD" else method}
        inner["state"] = {**scope.get("state", {}), "request_id": request_id.decode()}
        answer = _Answer(send, request_id, is_head=method == "HEAD", if_none_match=given.get(b"if-none-match", b""))
        try:
            await self.app(inner, receive, answer.send)
        except Exception as error:
            # What was submitted may stand in the exception's text, so only its type and the places are logged.
            _log.error(
                "broken",
                request_id=request_id.decode(),
                route=_route(inner),
                error=type(error).__name__,
                frames=format_tb(error.__traceback__),
            )
            if answer.status is None:
                answered = problem_response(inner, fault(Broken("This is a fault of the site. It was logged.")))
                await answered(inner, receive, answer.send)
        finally:
            self.telemetry.answered(
                request_id,
                method=method,
                route=_route(inner),
                status=answer.status or 500,
                seconds=perf_counter() - started,
                size=answer.size,
            )


class _Answer:
    """The sending half of one request."""

    def __init__(self, send: Send, request_id: bytes, *, is_head: bool, if_none_match: bytes) -> None:
        self._send = send
        self._request_id = request_id
        self._is_head = is_head
        self._if_none_match = if_none_match
        self._held: Message | None = None
        self.status: int | None = None
        self.size = 0

    async def send(self, message: Message) -> None:
        """Pass a message on; a whole body of 200 waits for its ETag."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(raw=message["headers"])
            message["headers"].extend((*SECURITY_HEADERS, (b"x-request-id", self._request_id)))
            headers.setdefault("cache-control", REVALIDATE)
            if self.status == 200 and "content-length" in headers:
                self._held = message
            else:
                await self._send(message)
        elif message["type"] == "http.response.body":
            await self._send_body(message)
        else:
            await self._send(message)

    async def _send_body(self, message: Message) -> None:
        body: bytes = message.get("body", b"")
        held, self._held = self._held, None
        if held is not None:
            if not message.get("more_body", False):
                headers = MutableHeaders(raw=held["headers"])
                tag = headers.setdefault("etag", etag(body)).encode()
                if self._if_none_match and agrees(self._if_none_match, tag):
                    body = b""
                    self.status = held["status"] = 304
                    held["headers"] = [pair for pair in held["headers"] if pair[0] not in _OF_THE_BODY]
            await self._send(held)
        if self._is_head:
            body = b""
        self.size += len(body)
        await self._send({**message, "body": body})


_OF_THE_BODY = {b"content-length", b"content-type"}


def _route(scope: Scope) -> str:
    return getattr(scope.get("route"), "path", "none")
