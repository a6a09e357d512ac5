"""What machines ask."""

from __future__ import annotations

import re

import pytest

from app.web import assets
from app.web.app import create_app
from app.web.assets import squeezed
from app.web.frame import Site
from app.web.parts import Parts
from tests.web.conftest import Client

CSS_LIMIT = 14 * 1024
JS_LIMIT = 20 * 1024


def test_the_process_is_alive(client: Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}


@pytest.mark.parametrize(("state", "status"), [("ok", 200), ("no engine is installed", 503)])
def test_it_is_ready_when_every_part_is(parts: Parts, state: str, status: int) -> None:
    app = create_app(parts)
    app.state.ready_checks = {"engine": lambda: state}
    client = Client(app)
    answer = client.get("/readyz")
    client.close()

    assert answer.status_code == status
    assert answer.json()["checks"] == {"database": "ok", "search": "ok", "engine": state}


def test_static_files_are_small_hashed_and_kept_for_ever(client: Client) -> None:
    page = client.page("/").text
    files = re.findall(r'(?:src|href)="(/static/[^"]+)"', page)
    answers = {url: client.get(url) for url in files}

    assert [re.sub(r"\.[0-9a-f]{10}\.", ".", url) for url in files] == [
        "/static/site.js",
        "/static/site.css",
        "/static/icon.svg",
    ]
    assert all(a.headers["cache-control"] == "public, max-age=31536000, immutable" for a in answers.values())
    sizes = [len(answer.content) for answer in answers.values()]
    assert sizes[0] <= JS_LIMIT and sizes[1] <= CSS_LIMIT
    assert client.get("/static/site.css").status_code == 404


def test_no_page_asks_another_host_for_anything(client: Client, ids: dict[str, str]) -> None:
    for path in ("/", "/errors", f"/errors/{ids['moving']}", "/api", "/about"):
        text = client.page(path).text

        assert re.findall(r"""(?:src|action|poster|data)=["'](?!/)""", text) == []
        assert all(url.startswith("/") for url in re.findall(r'<link[^>]+href="([^"]+)"', text))


def test_style_sheets_lose_comments_and_blanks_only() -> None:
    assert (
        squeezed(b'/* a */\na :hover , b { color : red;\n  content: "x "; }') == b'a :hover,b{color :red;content:"x "}'
    )


def test_an_address_changes_with_the_content() -> None:
    one, other = assets.Assets({"a.css": b"1"}), assets.Assets({"a.css": b"2"})

    assert one.url("a.css") != other.url("a.css")
    assert one.served(one.url("a.css")) is not None and one.served(other.url("a.css")) is None


def test_crawlers_find_every_record_once(client: Client, ids: dict[str, str]) -> None:
    robots = client.get("/robots.txt").text
    index = client.get("/sitemap.xml").text
    part = client.get("/sitemap.xml?page=1").text

    assert "Sitemap: http://testserver/sitemap.xml" in robots
    assert "<loc>http://testserver/sitemap.xml?page=1</loc>" in index
    assert sorted(re.findall(r"/errors/([0-9a-f]{16})<", part)) == sorted(ids.values())
    assert client.get("/sitemap.xml?page=2").status_code == 404
    assert client.get("/robots.txt", {"host": 'a"<b>'}).status_code == 400


def test_a_public_address_is_used_in_links(parts: Parts, ids: dict[str, str]) -> None:
    client = Client(create_app(Parts(parts.store, Site("https://errata.example"))))
    page, robots = client.page(f"/errors/{ids['moving']}").text, client.get("/robots.txt").text
    client.close()

    assert f'<link rel="canonical" href="https://errata.example/errors/{ids["moving"]}">' in page
    assert "Sitemap: https://errata.example/sitemap.xml" in robots


def test_metrics_are_prometheus_text(client: Client) -> None:
    client.get("/healthz")
    answer = client.get("/metrics")

    assert answer.headers["content-type"].startswith("text/plain; version=")
    assert 'errata_http_requests_total{route="/healthz",status="200"} 1.0' in answer.text
    assert 'errata_http_request_seconds_bucket{le="+Inf",route="/healthz"} 1.0' in answer.text
