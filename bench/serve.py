"""How fast the site answers, as ratios: against a bare Starlette route with the same bytes, and against Datasette.

    python -m bench.serve [--seconds 4] [--rounds 3] [--growth 10000,100000,1000000] [--no-datasette]

Servers run on one core and the load generator on another. A ratio is the median over rounds, in each of which the two
sides are asked one after the other, so that a slow moment of the machine hits both. Goals: docs/api.md, "Speed".
"""

from __future__ import annotations

import argparse
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from math import log
from pathlib import Path
from urllib.parse import quote, urlencode

from sqlalchemy import Connection

from app.settings import Settings
from app.store import migrate, queries
from app.store import pages as kept
from app.store.engine import Store
from app.store.queries import Filters
from app.web.frame import Site
from app.web.prerender import prerender
from bench import synthetic
from bench.load import Load, client, load
from bench.serving import free_port, running

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / "var" / "bench" / "venv"
CONNECTIONS = 16
WARMING = 300
CORES = sorted(os.sched_getaffinity(0))
SERVER_CORE = CORES[0] if len(CORES) > 1 else None
CLIENT_CORE = CORES[1] if len(CORES) > 1 else None


@dataclass(frozen=True, slots=True)
class Goal:
    """One line of the table."""

    name: str
    measured: str
    goal: str
    reached: bool | None

    def __str__(self) -> str:
        state = {True: "reached", False: "MISSED", None: ""}[self.reached]
        return f"{self.name:<44} {self.measured:>34}  {self.goal:<16} {state}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything and print the table; 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--growth", default="10000,100000,1000000")
    parser.add_argument("--no-datasette", action="store_true")
    parser.add_argument("--database", default=Settings.from_environment().database_url)
    chosen = parser.parse_args(arguments)
    store = Store(chosen.database)
    migrate.upgrade(store)
    prerender(store, Site())
    bench = Bench(store, seconds=chosen.seconds, rounds=chosen.rounds)
    print(f"{len(bench.ids):,} records; load by {client()}; load average {os.getloadavg()[0]:.1f}", flush=True)
    goals: list[Goal] = []
    for measure in (bench.warm, bench.cold, bench.lists, bench.datasette if not chosen.no_datasette else list):
        for goal in measure():
            goals.append(goal)
            print(goal, flush=True)
    sizes = [int(size) for size in chosen.growth.split(",") if size]
    for goal in growth(store, sizes):
        goals.append(goal)
        print(goal, flush=True)
    store.close()
    return 1 if any(goal.reached is False for goal in goals) else 0


class Bench:
    """The measurements over one database."""

    def __init__(self, store: Store, *, seconds: float, rounds: int) -> None:
        self.store = store
        self.seconds = seconds
        self.rounds = rounds
        with store.reading() as connection:
            self.ids = kept.record_ids(connection, limit=1_000_000)
            self.searches = synthetic.queries(connection, 400)
            self.facets = queries.records(connection, Filters(), limit=1).facets
        random.Random(3).shuffle(self.ids)
        # A record of usual size stands for all.
        self.typical = self._typical()

    def warm(self) -> Iterator[Goal]:
        """Yield what one record asked again and again gives: everything comes from memory."""
        with self._both() as (bare, ours):
            for name, path, other in self._pairs():
                pairs = [(self._load(bare, [other]), self._load(ours, [path])) for _ in range(self.rounds)]
                yield _ratio(f"{name}, warm / bare route", pairs, goal=0.8)

    def cold(self) -> Iterator[Goal]:
        """Yield what another record with every request gives, from a process that has seen none of them."""
        ids, warming = self.ids[WARMING:], self.ids[:WARMING]
        for name, path, other in self._pairs():
            prefix = path.rpartition("/")[0]
            pairs = []
            for _ in range(self.rounds):
                with self._both() as (bare, ours):
                    self._load(ours, [f"{prefix}/{name}" for name in warming], seconds=0.5)
                    limit = self._load(bare, [other])
                    cold = self._load(ours, [f"{prefix}/{record}" for record in ids])
                if cold.requests > len(ids):
                    print(f"  note: {cold.requests:,} requests for {len(ids):,} records: some were asked twice")
                pairs.append((limit, cold))
            yield _ratio(f"{name}, cold / bare route", pairs, goal=0.25)

    def lists(self) -> Iterator[Goal]:
        """Yield how long searches and lists with facets take, one reader at a time."""
        searches = [f"/api/errors?{urlencode({'q': q})}" for q in self.searches]
        with self._ours() as ours:
            self._load(ours, searches, connections=1)
            yield _p95("search (JSON)", self._load(ours, searches, connections=1), goal_ms=10)
            yield _p95(
                "list with facets (JSON)", self._load(ours, self._lists("/api/errors"), connections=1), goal_ms=25
            )
            yield _p95("list with facets (page)", self._load(ours, self._lists("/errors"), connections=1), goal_ms=25)
            pages = [path.replace("/api", "", 1) for path in searches]
            yield _p95("search (page)", self._load(ours, pages, connections=1), goal_ms=None)
            yield _p95("search (JSON), 4 readers at once", self._load(ours, searches, connections=4), goal_ms=None)

    def datasette(self) -> Iterator[Goal]:
        """Yield how many times as fast as Datasette over the same table a record is."""
        python = _datasette_python()
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            file = Path(folder) / "errata.db"
            self._copy_for_datasette(file)
            port = free_port()
            command = [
                str(python),
                "-m",
                "datasette",
                "serve",
                str(file),
                "-p",
                str(port),
                "--setting",
                "num_sql_threads",
                "1",
            ]
            theirs = stack.enter_context(running(command, port, core=SERVER_CORE, ready="/"))
            ours = stack.enter_context(self._ours())
            for name, path, suffix in (("record JSON", "/api/errors/", ".json"), ("record page", "/errors/", "")):
                asked = [f"{path}{record}" for record in self.ids]
                their = [f"/errata/record/{record}{suffix}" for record in self.ids]
                self._load(ours, asked[:WARMING], seconds=0.5)
                self._load(theirs, their[:WARMING], seconds=0.5)
                pairs = [
                    (self._load(theirs, their[WARMING:]), self._load(ours, asked[WARMING:])) for _ in range(self.rounds)
                ]
                yield _ratio(f"{name} / Datasette", pairs, goal=None)

    def _load(self, base: str, paths: Sequence[str], *, connections: int = CONNECTIONS, seconds: float = 0) -> Load:
        done = load(base, paths, connections=connections, seconds=seconds or self.seconds, core=CLIENT_CORE)
        if done.bad:
            raise RuntimeError(f"{done.bad} of {done.requests} answers of {base}{paths[0]} were bad")
        return done

    def _pairs(self) -> Iterator[tuple[str, str, str]]:
        yield "record JSON", f"/api/errors/{self.typical}", "/json/1"
        yield "record page", f"/errors/{self.typical}", "/html/1"

    def _lists(self, path: str) -> list[str]:
        chosen: list[str] = [path]
        for name in ("exception", "module", "flag", "kind", "release"):
            chosen += [f"{path}?{name}={quote(value)}" for value in list(self.facets.get(name, {}))[:12]]
        exceptions, modules = (list(self.facets.get(name, {}))[:6] for name in ("exception", "module"))
        chosen += [f"{path}?{urlencode({'exception': e, 'module': m})}" for e in exceptions for m in modules]
        return chosen

    @contextmanager
    def _ours(self) -> Iterator[str]:
        port = free_port()
        command = [sys.executable, "-m", "bench.serving", "ours", self.store.url, str(port)]
        with running(command, port, core=SERVER_CORE, ready="/readyz") as base:
            yield base

    @contextmanager
    def _both(self) -> Iterator[tuple[str, str]]:
        with self._ours() as ours, tempfile.TemporaryDirectory() as folder:
            bodies = []
            for name, path, _ in self._pairs():
                bodies.append(Path(folder) / name)
                with urllib.request.urlopen(ours + path) as answer:
                    bodies[-1].write_bytes(answer.read())
            port = free_port()
            command = [sys.executable, "-m", "bench.serving", "bare", str(port), *map(str, bodies)]
            with running(command, port, core=SERVER_CORE, ready="/json/1") as bare:
                yield bare, ours

    def _typical(self) -> str:
        with self.store.reading() as connection:
            sized = sorted((len(queries.document(connection, record).body), record) for record in self.ids[:501])
        return sized[len(sized) // 2][1]

    def _copy_for_datasette(self, file: Path) -> None:
        """Write the records with their documents as one table, the id its primary key."""
        copy = sqlite3.connect(file)
        copy.execute("CREATE TABLE record (id TEXT PRIMARY KEY, title TEXT, message TEXT, document TEXT) WITHOUT ROWID")
        with self.store.reading() as connection:
            rows = []
            for record in self.ids:
                body = queries.document(connection, record).body.decode()
                rows.append((record, "", "", body))
        copy.executemany("INSERT INTO record VALUES (?, ?, ?, ?)", rows)
        copy.commit()
        copy.close()


def growth(source: Store, sizes: Sequence[int]) -> Iterator[Goal]:
    """Yield the p95 of searches over growing corpora, and the exponent of its growth."""
    folder = ROOT / "var" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    measured: list[tuple[int, float]] = []
    for size in sizes:
        store = synthetic.build(source, folder / f"synthetic-{size}.db", size)
        with store.reading() as connection:
            words = synthetic.queries(connection, 300)
            queries.records(connection, Filters(q="memory"))
        with store.reading() as connection:
            p95 = _search_p95_ms(connection, words)
        store.close()
        measured.append((size, p95))
        yield Goal(f"search p95 at {size:,} records", f"{p95:.1f} ms", "", None)
    for (small, before), (large, after) in pairwise(measured):
        exponent = log(after / before) / log(large / small)
        yield Goal(f"growth from {small:,} to {large:,}", f"size ^ {exponent:.2f}", "< size ^ 0.5", exponent < 0.5)


def _search_p95_ms(connection: Connection, words: Sequence[str]) -> float:
    took = []
    for text in words:
        began = time.perf_counter()
        queries.records(connection, Filters(q=text))
        took.append((time.perf_counter() - began) * 1000)
    return statistics.quantiles(took, n=20)[-1]


def _ratio(name: str, pairs: Sequence[tuple[Load, Load]], *, goal: float | None) -> Goal:
    value = statistics.median(ours.rate / other.rate for other, ours in pairs)
    rates = [statistics.median(side.rate for side in sides) for sides in zip(*pairs, strict=True)]
    measured = f"{value:.2f} ({rates[1]:,.0f} / {rates[0]:,.0f} a second)"
    return Goal(name, measured, f">= {goal}" if goal else "", None if goal is None else value >= goal)


def _p95(name: str, done: Load, *, goal_ms: float | None) -> Goal:
    measured = f"p95 {done.p95_ms:.1f} ms, p50 {done.p50_ms:.1f} ms"
    reached = None if goal_ms is None else done.p95_ms <= goal_ms
    return Goal(name, measured, f"p95 <= {goal_ms} ms" if goal_ms else "", reached)


def _datasette_python() -> Path:
    """Return the interpreter of the environment that has Datasette; it is made at the first use."""
    python = VENV / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
        lock = ROOT / "requirements-bench.lock"
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
        subprocess.run([*install, "-r", str(lock)], check=True)
    return python


if __name__ == "__main__":
    sys.exit(main())
