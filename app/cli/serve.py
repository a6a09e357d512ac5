"""`errata serve`: the site over one event loop; and the rendering of pages that follows an ingest."""

from __future__ import annotations

from collections.abc import Callable

import uvicorn

from app.settings import Settings
from app.store import migrate
from app.store.engine import Store
from app.web.app import asgi
from app.web.frame import Site
from app.web.parts import Parts
from app.web.prerender import prerender
from app.web.telemetry import configure_logging


def serve(settings: Settings, *, host: str | None = None, port: int | None = None) -> None:
    """Serve until interrupted."""
    configure_logging()
    server = uvicorn.Server(server_config(parts(settings), host=host or settings.host, port=port or settings.port))
    server.run()


def parts(settings: Settings) -> Parts:
    """Return the parts of the site that the settings describe; the database's schema is brought up to date."""
    store = Store(settings.database_url)
    migrate.upgrade(store)
    return Parts(store, site(settings))


def server_config(made: Parts, *, host: str, port: int) -> uvicorn.Config:
    """Return how the site is served; the bench serves what it compares with in the same way.

    uvicorn's own access log would write the query, which is the reader's text: ours does not (`web/telemetry.py`).
    """
    return uvicorn.Config(
        asgi(made),
        host=host,
        port=port,
        loop="uvloop",
        http="httptools",
        access_log=False,
        server_header=False,
        log_level="warning",
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=64 * 1024,
    )


def site(settings: Settings) -> Site:
    """Return what the pages say about the site."""
    return Site(url=settings.base_url.rstrip("/"))


def render_pages(settings: Settings, progress: Callable[[int], object] = lambda done: None) -> int:
    """Render the record pages that are not kept yet (after an ingest); return how many there were."""
    store = Store(settings.database_url)
    try:
        return prerender(store, site(settings), processes=settings.mining_processes, progress=progress)
    finally:
        store.close()
