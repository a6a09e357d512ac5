"""How the site is served: one event loop, uvicorn's fast parts, our own access log."""

from __future__ import annotations

import uvicorn
from starlette.types import ASGIApp


def server_config(app: ASGIApp, *, host: str, port: int) -> uvicorn.Config:
    """Return uvicorn's configuration; the bench serves what it compares with in the same way.

    uvicorn's own access log would write the query, which is the reader's text: ours does not (`telemetry.py`).
    """
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        loop="uvloop",
        http="httptools",
        lifespan="auto",
        access_log=False,
        server_header=False,
        log_level="warning",
        timeout_graceful_shutdown=5,
    )
