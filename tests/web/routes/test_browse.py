"""Home and its box, packages, flags, releases, about, the API's page."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from app.check import released
from app.store.engine import Store
from app.web import paste
from app.web.app import create_app
from app.web.parts import Parts
from tests.web.conftest import Client

COMMAND = "python -m sglang.launch_server --model-path x --tp 8"
ERROR = "ValueError: size_3 must be divisible by 16"


@pytest.mark.parametrize(
    ("text", "path", "field"),
    [("size block", "/errors", "q"), (COMMAND, "/check", "command"), (ERROR, "/identify", "text")],
)
def test_the_box_leads_where_the_text_belongs(client: Client, text: str, path: str, field: str) -> None:
    answers = [
        client.request("GET", "/go", params={"q": text}),
        client.request("POST", "/go", data={"q": text}),
    ]

    for answer in answers:
        assert answer.status_code == 303
        target = urlsplit(answer.headers["location"])
        assert (target.path, parse_qs(target.query)) == (path, {field: [text]})


@pytest.mark.parametrize(("text", "path"), [(COMMAND + " --a 1" * 900, "/check"), (ERROR * 200, "/identify")])
def test_a_long_text_is_posted_on(client: Client, text: str, path: str) -> None:
    answer = client.request("POST", "/go", data={"q": text})

    assert (answer.status_code, answer.headers["location"]) == (307, path)


def test_an_id_in_the_box_is_its_record_and_nothing_is_the_list(client: Client, ids: dict[str, str]) -> None:
    record = client.request("GET", "/go", params={"q": f" {ids['moving']} "})

    assert record.headers["location"] == f"/errors/{ids['moving']}"
    assert client.get("/go").headers["location"] == "/errors"


def test_a_paste_over_the_limit_is_refused(client: Client) -> None:
    assert client.request("POST", "/go", data={"q": "a" * (3 * paste.MAX_LENGTH + 9)}).status_code == 413
    assert client.request("POST", "/go", content=b"{}", headers={"content-type": "application/json"}).status_code == 422


def test_home_shows_what_is_new(client: Client) -> None:
    text = client.page("/").text

    assert "New in sglang 0.5.19" in text and 'action="/go"' in text and 'method="post"' in text


def test_a_package_shows_its_releases(client: Client) -> None:
    page = client.page("/sgl-project/sglang")

    assert page.status_code == 200
    assert all(f"/releases/{version}?package=sglang" in page.text for version in ("0.5.17", "0.5.18", "0.5.19"))
    assert client.page("/sgl-project/other").status_code == 404


@pytest.mark.parametrize("flag", ["--page-size", "page-size"])
def test_a_flag_shows_its_errors(client: Client, flag: str) -> None:
    page = client.page(f"/flags/{flag}")

    assert page.status_code == 200 and page.text.count('class="hit"') > 50
    assert client.page("/flags/--no-such").status_code == 404
    assert "/flags/--enable-gone" in client.page("/flags").text


def test_a_release_shows_what_it_changed(client: Client, ids: dict[str, str]) -> None:
    last, first = client.page("/releases/0.5.19").text, client.page("/releases/0.5.17?package=sglang").text

    new, reworded, moved, removed = (last.index(f'id="{name}"') for name in ("new", "reworded", "moved", "removed"))
    assert new < last.index(ids["fresh"]) < reworded < last.index(ids["worded"]) < moved
    assert removed < last.index(ids["gone"])
    assert "there is none to compare it with" in first
    assert "sglang/broken.py" in first
    assert client.page("/releases/9.9").status_code == 404


def test_a_release_shows_what_it_changed_in_the_options(client: Client) -> None:
    before, after = released.read("0.5.18"), released.read("0.5.19")
    assert before and after
    changes = released.changes(before, after)
    page = client.page("/releases/0.5.19").text

    assert "From the argument parsers of both releases." in page
    for option in changes.added:
        assert f"<code>{option.name}</code>" in page
    assert page.count('<details id="flags-') == sum(bool(getattr(changes, part)) for part in changes.__slots__)
    # Nothing is said of the earliest release: there is none to compare it with.
    assert 'id="flags"' not in client.page("/releases/0.5.17?package=sglang").text


@pytest.mark.parametrize("path", ["/about", "/releases", "/api", "/flags"])
def test_other_pages_answer(client: Client, path: str) -> None:
    page = client.page(path)

    assert page.status_code == 200 and "<h1" in page.text


def test_the_page_of_the_api_lists_every_operation(client: Client) -> None:
    document, page = client.get("/openapi.json").json(), client.page("/api").text

    assert all(f">{path}<" in page for path in document["paths"])
    assert all(f'id="schema-{name}"' in page for name in document["components"]["schemas"])


def test_an_unknown_address_helps(client: Client) -> None:
    page = client.page("/sglang/size_7/nothing")

    assert page.status_code == 404
    assert 'type="search"' in page.text and "Near this address" in page.text


def test_an_empty_database_is_served_too(empty_store: Store) -> None:
    client = Client(create_app(Parts(empty_store)))
    codes = {path: client.page(path).status_code for path in ("/", "/errors", "/errors?q=a", "/releases", "/about")}
    ready = client.get("/readyz")
    client.close()

    assert set(codes.values()) == {200}
    assert ready.status_code == 503 and ready.json()["checks"]["database"] == "nothing was ingested"
