"""A real server and a real browser. Without Chromium these tests are skipped; `scripts/browser` says how to get it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from app.settings import Settings
from tests.web.conftest import small_store

CHROMIUM = "/usr/bin/chromium"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
START_S = 120.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server over the mined releases where they are, else over a small database."""
    url = Settings.from_environment({}).database_url
    if not _is_filled(url):
        store = small_store(tmp_path_factory.mktemp("browser"))
        url = store.url
        store.close()
    port = _free_port()
    environment = {**os.environ, "ERRATA_DATABASE_URL": url}
    server = subprocess.Popen(
        [sys.executable, "-c", "from app.cli import main; main()", "serve", "--port", str(port)],
        env=environment,
        stdout=subprocess.DEVNULL,
    )
    try:
        _wait(f"http://127.0.0.1:{port}/healthz", server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=30)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    if not Path(CHROMIUM).exists():
        pytest.skip("BROWSER TESTS DID NOT RUN: Chromium is missing; scripts/browser says how to get it")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture
def context(browser: Browser, site: str) -> Iterator[BrowserContext]:
    """A browser of one reader, whose console has to stay empty."""
    made = browser.new_context(base_url=site, viewport={"width": 1280, "height": 900})
    made.set_default_timeout(20_000)
    complaints: list[str] = []
    made.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    made.on("weberror", lambda error: complaints.append(str(error.error)))
    yield made
    made.close()
    # A page that is meant to be missing or malformed is no complaint; a refused script, style or image is one.
    expected = ("404 (Not Found)", "422 (Unprocessable")
    assert [text for text in complaints if not any(words in text for words in expected)] == []


@pytest.fixture
def page(context: BrowserContext) -> Page:
    """A page of this reader."""
    return context.new_page()


@pytest.fixture(scope="session")
def facts(site: str) -> dict[str, Any]:
    """What the served database holds: a record with relatives and a release before its last, a flag, a release."""
    listed = _json(f"{site}/api/errors?kind=raise&limit=50")
    for item in listed["items"]:
        record = _json(f"{site}/api/errors/{item['id']}")
        if (
            record["related"]
            and len(record["history"]["releases"]) > 1
            and record["flags"]
            and record["source"]["excerpt"]
        ):
            break
    else:
        raise AssertionError("no record of the first 50 has relatives, two releases, a flag and an excerpt")
    return {
        "record": record,
        "flag": record["flags"][0],
        "release": record["history"]["last"],
        "package": record["package"]["repository"],
        "words": " ".join(record["parts"][0].split()[:3]) or record["exception"],
    }


@pytest.fixture(scope="session")
def kinds(facts: dict[str, Any]) -> dict[str, str]:
    """The address of one page of every kind."""
    record = facts["record"]
    return {
        "home": "/",
        "list": "/errors",
        "search": f"/errors?exception={record['exception']}&q=must",
        "nothing found": "/errors?q=zzzzqqqq",
        "record": record["url"],
        "record of a release": f"{record['url']}?release={record['history']['releases'][0]['version']}",
        "package": f"/{facts['package']}",
        "flags": "/flags",
        "flag": f"/flags/{facts['flag']}",
        "releases": "/releases",
        "release": f"/releases/{facts['release']}",
        "about": "/about",
        "api": "/api",
        "identify": "/identify",
        "check": "/check",
        "missing": "/no/such/page",
    }


def _is_filled(url: str) -> bool:
    file = Path(url.removeprefix("sqlite:///"))
    if not file.exists():
        return False
    from app.store import migrate, queries
    from app.store.engine import Store

    store = Store(url)
    try:
        if not migrate.is_current(store):
            return False
        with store.reading() as connection:
            return queries.counts(connection).records > 0
    finally:
        store.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(url: str, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            assert server.poll() is None, "the server ended before it answered"
            time.sleep(0.2)
    raise AssertionError(f"the server did not answer within {START_S:.0f} s")


def _json(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return json.load(answer)
