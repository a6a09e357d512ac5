"""The one index of all signatures that a process keeps: built in the background, built anew after an ingest."""

from __future__ import annotations

import threading
from time import monotonic

import structlog

from app.errors import Unavailable
from app.match.index import Index
from app.store import queries
from app.store.engine import Store

# How long a request waits for the first index, and how often the database is asked whether it changed.
_WAIT_S = 20.0
_ASK_EVERY_S = 2.0
_log = structlog.get_logger()


class Matcher:
    """Lends the index. Safe to share between threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._built = threading.Event()
        self._building: threading.Thread | None = None
        self._index: Index | None = None
        self._generation = ""
        self._asked = 0.0
        self._failed = ""

    def start(self) -> None:
        """Begin to build, unless that was done; returns at once."""
        with self._lock:
            if self._building is None and self._index is None:
                self._build()

    def index(self) -> Index:
        """Return the index; the one before an ingest until the new one is built.

        Raises: Unavailable: there is none yet, the caller may ask again soon.
        """
        self._refresh()
        if self._index is None:
            self._built.wait(_WAIT_S)
        if self._index is None:
            raise Unavailable(self._failed or "The index of errors is still being built. Ask again in some seconds.")
        return self._index

    def readiness(self) -> str:
        """Return "ok" or what is missing; begins to build where nothing did."""
        self._refresh()
        return "ok" if self._index is not None else self._failed or "the index is being built"

    def _refresh(self) -> None:
        """Begin to build where the database is newer than the index."""
        with self._lock:
            if self._building is not None or (self._index is not None and monotonic() - self._asked < _ASK_EVERY_S):
                return
            self._asked = monotonic()
            if self._index is None or self._current() != self._generation:
                self._build()

    def _current(self) -> str:
        with self._store.reading() as connection:
            return queries.generation(connection)

    def _build(self) -> None:
        """Build in a thread of its own. The lock is held."""
        self._built.clear()
        self._building = threading.Thread(target=self._run, name="identify-index", daemon=True)
        self._building.start()

    def _run(self) -> None:
        try:
            with self._store.reading() as connection:
                generation = queries.generation(connection)
                index = Index(queries.signatures(connection))
            with self._lock:
                self._index, self._generation, self._failed = index, generation, ""
        except Exception as error:
            # Readiness tells; the next request tries again.
            _log.error("identify index", error=type(error).__name__)
            self._failed = f"The index of errors could not be built ({type(error).__name__})."
        finally:
            with self._lock:
                self._building = None
            self._built.set()
