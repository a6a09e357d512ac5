"""The check service as a part of the application: started with it, ended with it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.check import hardware
from app.check.catalogue import catalogue
from app.check.fixes.advice import Advice
from app.check.fixes.search import USUAL
from app.check.model_config import Given
from app.check.pool import Bounds, Engine, SandboxPool, probe
from app.check.protocol import Error
from app.check.service import CheckService, Engines, RecordLink
from app.errors import NotFound, Unavailable
from app.store import places, queries
from app.store.document import Document
from app.store.engine import Store

PROBE_KEPT_S = 60.0


def linker(store: Store) -> Callable[[Error, str], RecordLink | None]:
    """Return what finds the record of an error by its place in the release that raised it."""

    def link(error: Error, version: str) -> RecordLink | None:
        with store.reading() as connection:
            found = places.record_at(
                connection, version=version, path=error.path, line=error.line,
                function=error.qualified or error.function, exception=error.exception,
            )  # fmt: skip
        return None if found is None else RecordLink(found.id, found.url, found.title)

    return link


def adviser(store: Store) -> Callable[[str], Advice | None]:
    """Return what tells of a record by its id, as far as it helps to look for a fix."""

    def advise(record: str) -> Advice | None:
        try:
            with store.reading() as connection:
                document = Document.model_validate_json(queries.document(connection, record).body)
        except NotFound:
            return None
        history, example = document.history, document.example
        return Advice(
            flags=document.flags,
            versions=tuple(place.version for place in history.releases),
            ingested=history.ingested,
            before=example.before if example else "",
            after=example.after if example else "",
            solutions=tuple(solution.text for solution in document.solutions),
        )

    return advise


@dataclass(eq=False)
class Checks(Collector):
    """The pool and service of one process. They are made in the running loop, at the first use.

    Shape: `warm` says whether the default and the newest engine are started ahead of the first check, `linked` whether
           `store` holds records that errors can be linked to.
    """

    store: Store
    engines: Engines
    bounds: Bounds = field(default_factory=Bounds)
    warm: bool = True
    linked: bool = True
    fetch: Callable[[str], Awaitable[Given]] | None = None

    def __post_init__(self) -> None:
        self._service: CheckService | None = None
        self._warming: asyncio.Task[None] | None = None
        self._probed: tuple[float, dict[str, object]] | None = None

    def service(self) -> CheckService:
        """Return the service."""
        if self._service is None:
            self._service = CheckService(
                SandboxPool(self.bounds),
                self.engines,
                catalogue(),
                hardware.profiles(),
                link=linker(self.store) if self.linked else None,
                advise=adviser(self.store) if self.linked else None,
                fetch=self.fetch,
                budget=replace(USUAL, at_once=self.bounds.workers),
            )
        return self._service

    async def start(self) -> None:
        """Start the default engine in the background, then the newest; the site serves meanwhile."""
        installed = {engine.version: engine for engine in self.engines.installed()}
        if self.warm and installed:
            wanted = dict.fromkeys((self.engines.default(), next(reversed(installed))))
            self._warming = asyncio.create_task(self._warm([installed[v] for v in wanted if v in installed]))

    async def _warm(self, engines: list[Engine]) -> None:
        service = self.service()
        device = service.profiles.find(hardware.DEFAULT).device
        for engine in engines[: self.bounds.engines]:
            await service.pool.warm(engine, device)

    async def close(self) -> None:
        """End every process of the pool."""
        if self._warming is not None:
            self._warming.cancel()
            await asyncio.gather(self._warming, return_exceptions=True)
        if self._service is not None:
            await self._service.pool.close()
            self._service = None

    def ready(self) -> str:
        """Return "ok" when an engine can take a check, else what is wrong."""
        if not self.engines.installed():
            return "no engine is installed"
        states = [status.state for status in self.service().pool.status()]
        if "ready" in states:
            return "ok"
        return "warming up" if "starting" in states or not states else "no engine starts"

    async def safety(self) -> dict[str, Any]:
        """Return the limits in force and what a probe of the sandbox, at most a minute old, could not do."""
        service = self.service()
        pool = service.pool
        return {
            "confined": self.bounds.confined,
            "limits": limits(self.bounds),
            "processes": [
                {
                    "version": s.version, "group": s.group, "state": s.state, "memory_bytes": s.rss_bytes,
                    "checks": s.jobs, "started_s": s.started_s,
                }
                for s in pool.status()
            ],
            "cache": service.cache.state(),
            **await self._probe(pool),
        }  # fmt: skip

    async def _probe(self, pool: SandboxPool) -> dict[str, object]:
        if not self.bounds.confined:
            return {"unavailable": "the operator has switched confinement off"}
        if self._probed is None or time.monotonic() - self._probed[0] > PROBE_KEPT_S:
            installed = self.engines.installed()
            if not installed:
                return {"unavailable": "no engine is installed"}
            self._probed = (time.monotonic(), await probe(pool, installed[-1]))
        return self._probed[1]

    def collect(self) -> list[Metric]:
        """Return the counts of the pool for Prometheus."""
        if self._service is None:
            return []
        pool, cache = self._service.pool, self._service.cache
        lost = CounterMetricFamily("errata_check_lost", "Checks without a verdict, by reason.", labels=["reason"])
        for reason, count in pool.lost.items():
            lost.add_metric([reason], count)
        processes = GaugeMetricFamily(
            "errata_check_engine_memory_bytes", "Memory of each engine process.", labels=["version", "group", "state"]
        )
        for status in pool.status():
            processes.add_metric([status.version, status.group, status.state], status.rss_bytes)
        waiting = GaugeMetricFamily("errata_check_waiting", "Checks that wait for a worker.", value=pool.waiting)
        found = CounterMetricFamily("errata_check_cache", "Answers by whether they were known.", labels=["known"])
        found.add_metric(["yes"], cache.hits)
        found.add_metric(["no"], cache.misses)
        verdicts = CounterMetricFamily("errata_check_verdicts", "Answers by verdict and basis.", labels=["verdict"])
        for verdict, count in self._service.verdicts.items():
            verdicts.add_metric([verdict], count)
        stand_ins = CounterMetricFamily(
            "errata_check_stand_in_failures", "Checks undecided because a stand-in failed.", labels=["stand_in"]
        )
        for name, count in self._service.stand_in_failures.items():
            stand_ins.add_metric([name], count)
        return [lost, processes, waiting, found, verdicts, stand_ins]


def limits(bounds: Bounds) -> list[dict[str, Any]]:
    """Return the limits of one check and of all, as rows for a reader."""
    check = bounds.limits
    return [
        {"name": "time of one check", "value": check.wall_s, "unit": "s"},
        {"name": "processor time of one check", "value": check.cpu_s, "unit": "s"},
        {"name": "address space of one check", "value": check.memory_bytes, "unit": "bytes"},
        {"name": "size of one written file", "value": check.file_bytes, "unit": "bytes"},
        {"name": "size of the check's own folder, in memory", "value": bounds.folder_bytes, "unit": "bytes"},
        {"name": "open files of one check", "value": check.open_files, "unit": ""},
        {"name": "threads of one check", "value": bounds.threads, "unit": ""},
        {"name": "processes that a check can start", "value": 0, "unit": ""},
        {"name": "what a check can answer", "value": check.output_bytes, "unit": "bytes"},
        {"name": "checks at once", "value": bounds.workers, "unit": ""},
        {"name": "checks that wait", "value": bounds.waiting, "unit": ""},
        {"name": "time a check waits", "value": bounds.wait_s, "unit": "s"},
        {"name": "engine processes kept", "value": bounds.engines, "unit": ""},
    ]


def found(checks: Checks | None) -> Checks:
    """Return the checks of an application. Raises: Unavailable: it was made without them."""
    if checks is None:
        raise Unavailable("Checks are not part of this server.")
    return checks
