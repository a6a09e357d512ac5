"""A small database, made by the real ingest from releases written by hand, and the application over it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from app.lineage.ledger import Ledger
from app.mine.model import MinedRelease, Site, Template
from app.store import migrate
from app.store.engine import Store
from app.store.ingest import PackageInput, ingest
from app.store.origin import Origin
from app.web.app import asgi, create_app
from app.web.frame import Site as WebSite
from app.web.parts import Parts
from app.web.telemetry import AccessLog, Telemetry

ORIGIN = Origin(
    package="sglang",
    repository="sgl-project/sglang",
    host="https://github.com",
    source_root="python/",
    tag="v{version}",
    license="Apache-2.0",
)
VERSIONS = ("0.5.17", "0.5.18", "0.5.19")
# A record whose every text is hostile: what a page does not escape shows at once.
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&</textarea>{% raw %}{{ 7*7 }}"


class Client:
    """A synchronous client of an ASGI application: requests run on one loop, and redirects are not followed."""

    def __init__(self, app: ASGIApp) -> None:
        self._loop = asyncio.new_event_loop()
        self._client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://testserver")

    def request(self, method: str, url: str, **options: Any) -> httpx.Response:
        """Return the answer to a request."""
        return self._loop.run_until_complete(self._client.request(method, url, **options))

    def get(self, url: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
        """Return the answer to GET."""
        return self.request("GET", url, headers=headers)

    def page(self, url: str) -> httpx.Response:
        """Return the answer to a browser's GET."""
        return self.get(url, {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"})

    def close(self) -> None:
        """Close the loop."""
        self._loop.run_until_complete(self._client.aclose())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


def site(version: str, name: str, **changes: object) -> Site:
    """Return a site of one of the releases below."""
    line = 100 + VERSIONS.index(version) * 10
    excerpt = 'def check(self):\n    if self.page_size > 1:\n        raise ValueError(\n            f"bad"\n        )\n'
    values: dict[str, object] = {
        "kind": "raise",
        "exception": "ValueError",
        "template": Template((f"{name} must be divisible by ", "self.page_size", f", see {name}")),
        "path": "sglang/srt/server_args.py",
        "function": f"ServerArgs.check_{name}",
        "line": line,
        "end_line": line + 2,
        "statement": "raise ValueError(",
        "guards": ("self.page_size > 1", f"not (self.{name} is None)"),
        "flags": ("--page-size",),
        "excerpt_line": line - 2,
        "excerpt": excerpt,
    }
    return Site(**{**values, **changes})  # type: ignore[arg-type]


def release(version: str) -> MinedRelease:
    """Return a release: most sites live in all of them, one is gone, one moves, one is reworded."""
    sites = [site(version, f"size_{n}") for n in range(60)]
    sites.append(
        site(version, "hostile", template=Template((HOSTILE, HOSTILE, "")), guards=(HOSTILE,), excerpt=HOSTILE)
    )
    sites.append(
        site(version, "bare", kind="assert", exception="AssertionError", template=Template(), condition="self.tp > 0")
    )
    sites.append(site(version, "said", kind="message", exception="", path="sglang/srt/managers/said.py"))
    if version != "0.5.19":
        sites.append(site(version, "gone", path="sglang/srt/mem_cache/gone.py", flags=("--enable-gone", "--page-size")))
    if version == "0.5.19":
        sites.append(site(version, "fresh", exception="RuntimeError"))
    words = "a positive multiple of 16" if version == "0.5.19" else "a multiple of 16"
    sites.append(site(version, "worded", template=Template(("The size of worded blocks must be " + words,))))
    moved = "sglang/srt/old.py" if version == "0.5.17" else "sglang/srt/new.py"
    sites.append(site(version, "moving", path=moved))
    sites.sort(key=lambda found: (found.path, found.line, found.function))
    return MinedRelease(
        package="sglang",
        version=version,
        sha256="0" * 64,
        files=3,
        lines=1000,
        failed=(("sglang/broken.py", "line 3: invalid syntax"),),
        options={"page_size": ("--page-size",), "enable_gone": ("--enable-gone",)},
        sites=tuple(sites),
    )


def small_store(folder: Path) -> Store:
    """Return a database with three releases."""
    made = Store(f"sqlite:///{folder / 'errata.db'}")
    migrate.upgrade(made)
    package = PackageInput(
        origin=ORIGIN,
        releases=tuple(map(release, VERSIONS)),
        release_keys=dict.fromkeys(VERSIONS, "key"),
        curated=(),
        ledger=Ledger(),
        key="key",
        strict=False,
        trigger=lambda found: f"It is raised when `{found.guards[0]}`." if found.guards else None,
    )
    ingest(made, package, lambda _name, _done, _total: None)
    return made


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The small database."""
    made = small_store(tmp_path_factory.mktemp("web"))
    yield made
    made.close()


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A database into which nothing was ingested."""
    made = Store(f"sqlite:///{tmp_path_factory.mktemp('empty') / 'errata.db'}")
    migrate.upgrade(made)
    yield made
    made.close()


@pytest.fixture
def log() -> list[bytes]:
    """The access log, as it was written."""
    return []


@pytest.fixture
def parts(store: Store, log: list[bytes]) -> Parts:
    """The parts of an application over the database."""
    return Parts(store, WebSite(), telemetry=Telemetry(access=AccessLog(log.append)))


@pytest.fixture
def client(parts: Parts) -> Iterator[Client]:
    """A client of the application without its fast path."""
    made = Client(create_app(parts))
    yield made
    made.close()


@pytest.fixture
def front(parts: Parts) -> Iterator[Client]:
    """A client of the application behind its fast path."""
    app = asgi(parts)
    made = Client(app)
    yield made
    app.close()
    made.close()


@pytest.fixture(scope="session")
def ids(store: Store) -> dict[str, str]:
    """Ids of the hand-written records by the name that is in their function."""
    from app.store import queries
    from app.store.queries import Filters

    with store.reading() as connection:
        page = queries.records(connection, Filters(), limit=200)
    return {item.function.removeprefix("ServerArgs.check_"): item.id for item in page.items}


@pytest.fixture
def template_folder() -> Path:
    """Where the templates are."""
    return Path(__file__).parents[2] / "templates"
