"""What is counted and logged of a request: its route, status, size and time. Never what was submitted.

A path or a query can hold a reader's own text (a pasted error, a model's name), so that neither is logged: the
route's template stands for it ("/flags/{flag}"). Counts are plain integers of one process, because counting must
cost less than answering from memory; `/metrics` turns them into Prometheus' families when it is asked.
"""

from __future__ import annotations

import re
import secrets
import sys
from asyncio import get_running_loop
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from time import time
from typing import Any

import orjson
import structlog
from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

BUCKETS_S = (0.0001, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SANE_ID = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class RequestIds:
    """Request ids: the caller's where it is sane, else a random prefix of the process and a running number."""

    def __init__(self) -> None:
        self._prefix = secrets.token_hex(6).encode() + b"-"
        self._numbers = count(1)

    def next(self) -> bytes:
        """Return a new id."""
        return self._prefix + b"%x" % next(self._numbers)

    def of(self, given: bytes | None) -> bytes:
        """Return the caller's id, or a new one where it is absent or could break a log line."""
        return given if given is not None and _SANE_ID.fullmatch(given) else self.next()


@dataclass
class RouteCounts:
    """The counts of one (route, status)."""

    requests: int = 0
    seconds: float = 0.0
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_S) + 1))

    def add(self, seconds: float) -> None:
        """Count one request."""
        self.requests += 1
        self.seconds += seconds
        self.buckets[bisect_left(BUCKETS_S, seconds)] += 1


class RequestCounts(Collector):
    """Requests by route and status, as Prometheus reads them."""

    def __init__(self) -> None:
        self.routes: dict[tuple[str, int], RouteCounts] = {}

    def of(self, route: str, status: int) -> RouteCounts:
        """Return the counts of a route and status; they begin at zero."""
        counts = self.routes.get((route, status))
        if counts is None:
            counts = self.routes[route, status] = RouteCounts()
        return counts

    def collect(self) -> Iterator[Metric]:
        """Return two families: a counter and a histogram of durations."""
        total = CounterMetricFamily("errata_http_requests", "Answered requests.", labels=("route", "status"))
        took = HistogramMetricFamily(
            "errata_http_request_seconds", "Time from request to the end of the answer.", labels=("route",)
        )
        merged: dict[str, RouteCounts] = {}
        for (route, status), counts in list(self.routes.items()):
            total.add_metric((route, str(status)), counts.requests)
            into = merged.setdefault(route, RouteCounts())
            into.requests += counts.requests
            into.seconds += counts.seconds
            into.buckets = [a + b for a, b in zip(into.buckets, counts.buckets, strict=True)]
        for route, counts in merged.items():
            took.add_metric((route,), _cumulative(counts.buckets), counts.seconds)
        yield total
        yield took


class AccessLog:
    """Writes one JSON line a request, many at once: a write for each would cost more than the answer.

    Shape: lines wait at most `DELAY_S` and at most `BATCH` of them; `close` writes the rest.
    """

    BATCH = 512
    DELAY_S = 0.25

    def __init__(self, write: Callable[[bytes], object] | None = None) -> None:
        self._write = write or _to_standard_output
        self._waiting: list[tuple[float, bytes, str, str, int, float, int]] = []

    def add(self, request_id: bytes, *, method: str, route: str, status: int, seconds: float, size: int) -> None:
        """Note one answered request."""
        waiting = self._waiting
        waiting.append((time(), request_id, method, route, status, seconds, size))
        if len(waiting) == 1:
            get_running_loop().call_later(self.DELAY_S, self.flush)
        elif len(waiting) >= self.BATCH:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._write(b"".join(map(_line, waiting)))


@dataclass(frozen=True)
class Telemetry:
    """The parts that count and log, shared by all requests of one process. Other layers may register collectors."""

    ids: RequestIds = field(default_factory=RequestIds)
    counts: RequestCounts = field(default_factory=RequestCounts)
    access: AccessLog = field(default_factory=AccessLog)
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    def __post_init__(self) -> None:
        self.registry.register(self.counts)
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)

    def answered(self, request_id: bytes, *, method: str, route: str, status: int, seconds: float, size: int) -> None:
        """Count and log one answered request."""
        self.counts.of(route, status).add(seconds)
        self.access.add(request_id, method=method, route=route, status=status, seconds=seconds, size=size)


def configure_logging() -> None:
    """Let structlog write one JSON object a line to standard output (called once, by the command line)."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.dict_tracebacks,
            structlog.processors.JSONRenderer(serializer=_json),
        ],
        logger_factory=structlog.BytesLoggerFactory(),
        cache_logger_on_first_use=True,
    )


def _json(event: Any, **_: Any) -> bytes:
    return orjson.dumps(event, default=str)


def _line(entry: tuple[float, bytes, str, str, int, float, int]) -> bytes:
    at, request_id, method, route, status, seconds, size = entry
    return orjson.dumps(
        {
            "event": "request",
            "at": round(at, 3),
            "request_id": request_id.decode(),
            "method": method,
            "route": route,
            "status": status,
            "ms": round(seconds * 1000, 3),
            "bytes": size,
        },
        option=orjson.OPT_APPEND_NEWLINE,
    )


def _cumulative(buckets: Sequence[int]) -> list[tuple[str, float]]:
    total = 0
    pairs: list[tuple[str, float]] = []
    for bound, number in zip((*map(str, BUCKETS_S), "+Inf"), buckets, strict=True):
        total += number
        pairs.append((bound, total))
    return pairs


def _to_standard_output(lines: bytes) -> None:
    sys.stdout.buffer.write(lines)
    sys.stdout.buffer.flush()
