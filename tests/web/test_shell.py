"""What every answer carries, whoever made it."""

from __future__ import annotations

import json
import re

import pytest

from app.web.app import create_app
from app.web.parts import Parts
from app.web.shell import CONTENT_SECURITY_POLICY, SECURITY_HEADERS, agrees
from tests.web.conftest import Client

PATHS = ("/", "/errors", "/api/errors", "/healthz", "/nothing/at/all", "/errors?limit=0", "/metrics", "/static/no.css")


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_has_the_security_headers_and_a_request_id(client: Client, path: str) -> None:
    answer = client.get(path)

    for name, value in SECURITY_HEADERS:
        assert answer.headers[name.decode()] == value.decode()
    assert re.fullmatch(r"[0-9a-f]{12}-[0-9a-f]+", answer.headers["x-request-id"])


def test_the_policy_allows_no_inline_script_or_style_and_no_other_host() -> None:
    assert "default-src 'none'" in CONTENT_SECURITY_POLICY
    assert not re.search(r"unsafe|https?:|data:|\*", CONTENT_SECURITY_POLICY)


def test_a_fault_of_ours_is_a_problem_with_all_headers_and_without_the_exceptions_text(
    parts: Parts, capsys: pytest.CaptureFixture[str]
) -> None:
    app = create_app(parts)
    submitted = "-".join(("tr0ub", "4dor"))

    @app.get("/api/broken/now")
    def broken() -> None:
        raise ZeroDivisionError(submitted)

    # The route for packages fits any two segments, so that the new one has to stand before it.
    app.router.routes.insert(0, app.router.routes.pop())
    client = Client(app)
    answer = client.get("/api/broken/now")
    client.close()

    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert submitted not in answer.text + capsys.readouterr().out


def test_an_etag_is_answered_with_304(client: Client) -> None:
    first = client.page("/errors?q=size")
    again = client.get("/errors?q=size", {"accept": "text/html", "if-none-match": f'"x", W/{first.headers["etag"]}'})

    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert "content-security-policy" in again.headers
    assert client.get("/errors?q=size", {"if-none-match": '"x"'}).status_code == 200


@pytest.mark.parametrize("path", ["/", "/api/errors", "/releases", "/robots.txt"])
def test_head_has_the_headers_of_get_and_no_body(client: Client, path: str) -> None:
    get, head = client.get(path), client.request("HEAD", path)

    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(get.content))
    assert head.headers["etag"] == get.headers["etag"]


@pytest.mark.parametrize("sane", ["abc-123", "0af7651916cd43dd8448eb211c80319c", "a" * 64])
def test_a_sane_request_id_is_kept(client: Client, sane: str) -> None:
    assert client.get("/healthz", {"x-request-id": sane}).headers["x-request-id"] == sane


@pytest.mark.parametrize("odd", ["a" * 65, 'a"}\t{"', "-a", "", "ä".encode("latin-1")])
def test_an_odd_request_id_is_replaced(client: Client, odd: str) -> None:
    answer = client.request("GET", "/healthz", headers={"x-request-id": odd})

    assert re.fullmatch(r"[0-9a-f]{12}-[0-9a-f]+", answer.headers["x-request-id"])


def test_a_problem_names_the_request(client: Client) -> None:
    answer = client.get("/api/errors?limit=0", {"x-request-id": "mine"})

    assert answer.json()["request_id"] == "mine"


def test_nothing_that_was_submitted_is_logged(
    front: Client, parts: Parts, log: list[bytes], ids: dict[str, str]
) -> None:
    secret = "tr0ub4dor"
    front.page(f"/errors?q={secret}")
    front.page(f"/flags/{secret}")
    front.page(f"/{secret}/{secret}")
    front.page(f"/errors/{ids['moving']}?v[self.page_size]={secret}")
    front.request("POST", "/go", data={"q": secret}, headers={"user-agent": secret, "referer": secret})
    front.page(f"/errors/{ids['moving']}")
    parts.telemetry.access.flush()

    lines = [json.loads(line) for line in b"".join(log).splitlines()]
    assert secret not in str(lines)
    assert [line["route"] for line in lines] == [
        "/errors",
        "/flags/{flag}",
        "/{owner:owner}/{name}",
        "/errors/{record_id}",
        "/go",
        "/errors/{record_id}",
    ]
    assert {line["status"] for line in lines} == {200, 303, 404}


@pytest.mark.parametrize(
    ("header", "fits"),
    [(b'"a"', True), (b'W/"a"', True), (b'"b", "a"', True), (b"*", True), (b'"b"', False), (b"", False)],
)
def test_if_none_match(header: bytes, fits: bool) -> None:
    assert agrees(header, b'"a"') == fits
