"""The servers that `bench.serve` compares, each in a process of its own, on a core of its own.

python -m bench.serving ours URL PORT           the site over a database
python -m bench.serving bare PORT JSON HTML     a bare Starlette route that returns the bytes of these files
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.store.engine import Store
from app.web.app import asgi
from app.web.parts import Parts
from app.web.server import server_config

START_S = 300.0
HOST = "127.0.0.1"


def ours(url: str, port: int) -> None:
    """Serve the site with its access log, as `errata serve` does."""
    uvicorn.Server(server_config(asgi(Parts(Store(url))), host=HOST, port=port)).run()


def bare(port: int, json: Path, html: Path) -> None:
    """Serve two bodies under the same settings: the limit of what the framework below us can do."""
    json_body, html_body = json.read_bytes(), html.read_bytes()

    async def json_route(_: Request) -> Response:
        return Response(json_body, media_type="application/json")

    async def html_route(_: Request) -> Response:
        return Response(html_body, media_type="text/html")

    app = Starlette(routes=[Route("/json/{id}", json_route), Route("/html/{id}", html_route)])
    uvicorn.Server(server_config(app, host=HOST, port=port)).run()


@contextmanager
def running(command: Sequence[str], port: int, *, core: int | None, ready: str) -> Iterator[str]:
    """Run a server until the block ends; lend its address once `ready` answers with success."""
    pinned = ["taskset", "-c", str(core), *command] if core is not None else list(command)
    server = subprocess.Popen(pinned, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    base = f"http://{HOST}:{port}"
    try:
        end = time.monotonic() + START_S
        while not _answers(base + ready):
            if server.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the server did not start: {' '.join(command)}")
            time.sleep(0.1)
        yield base
    finally:
        server.terminate()
        server.wait(timeout=30)


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:
        return False


if __name__ == "__main__":
    if sys.argv[1] == "ours":
        ours(sys.argv[2], int(sys.argv[3]))
    else:
        bare(int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]))
