"""`errata serve`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from app.cli import checking, options


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(serve)


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on; ERRATA_HOST.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port to listen on; ERRATA_PORT.")] = None,
) -> int:
    """Serve pages and API until interrupted."""
    import uvicorn

    from app.store import migrate
    from app.web.app import asgi
    from app.web.frame import Site
    from app.web.parts import Parts
    from app.web.server import server_config
    from app.web.telemetry import configure_logging

    chosen = options.settings()
    configure_logging()
    with options.opened() as store:
        migrate.upgrade(store)
        parts = Parts(
            store, Site(chosen.base_url.rstrip("/")), checks=checking.checks(chosen, store, warm=chosen.check_warm)
        )
        config = server_config(asgi(parts), host=host or chosen.host, port=chosen.port if port is None else port)
        print(f"Errata serves on http://{config.host}:{config.port}", file=sys.stderr, flush=True)
        server = uvicorn.Server(config)
        server.run()
    return 0 if server.started else 3
