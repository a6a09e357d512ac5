"""Identify: the API and its limits, the page as a plain form."""

from __future__ import annotations

import orjson
import pytest

from app.store.engine import Store
from app.web.app import create_app
from app.web.matcher import Matcher
from app.web.parts import Parts
from app.web.routes.identify import MAX_TEXT
from tests.web.conftest import HOSTILE, Client

ERROR = "ValueError: size_3 must be divisible by 16, see size_3"


def asked(client: Client, text: str, **more: object):  # type: ignore[no-untyped-def]
    return client.request("POST", "/api/identify", json={"text": text, **more})


def test_json_and_plain_text_get_the_same_answer(client: Client, ids: dict[str, str]) -> None:
    json = asked(client, ERROR)
    plain = client.request("POST", "/api/identify", content=ERROR, headers={"content-type": "text/plain"})

    assert json.status_code == plain.status_code == 200
    assert json.json() == plain.json()
    match = json.json()["matches"][0]
    assert (match["id"], match["url"]) == (ids["size_3"], f"/errors/{ids['size_3']}")
    assert match["values"] == {"{self.page_size}": "16"}
    assert {"message", "exception"} <= set(match["evidence"])


@pytest.mark.parametrize("body", [ERROR, orjson.dumps({"text": ERROR})], ids=["a log", "JSON"])
def test_what_curl_sends_without_a_header_is_understood(client: Client, body: str | bytes) -> None:
    answer = client.request(
        "POST", "/api/identify", content=body, headers={"content-type": "application/x-www-form-urlencoded"}
    )

    assert answer.json() == asked(client, ERROR).json()


def test_nothing_known_is_an_answer(client: Client) -> None:
    body = asked(client, "RuntimeError: CUDA error: device-side assert triggered").json()

    assert body["matches"] == []
    assert body["looks_like"] == "This looks like an error of CUDA, not of SGLang."


def test_a_release_narrows(client: Client) -> None:
    text = "ValueError: gone must be divisible by 16, see gone"

    assert asked(client, text, release="0.5.18").json()["matches"]
    assert not asked(client, text, release="0.5.19").json()["matches"]


def test_one_mebibyte_is_read_and_more_is_refused(client: Client) -> None:
    assert asked(client, "\n" * MAX_TEXT).status_code == 200
    for body, kind in (
        ("\n" * (MAX_TEXT + 1), "text/plain"),
        (orjson.dumps({"text": "a" * (MAX_TEXT + 1)}), "application/json"),
        ("a" * (4 * MAX_TEXT), "text/plain"),
    ):
        answer = client.request("POST", "/api/identify", content=body, headers={"content-type": kind})
        assert answer.status_code == 413
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"{", "application/json"),
        (b"[]", "application/json"),
        (b'{"txt": "a"}', "application/json"),
        (b'{"text": 3}', "application/json"),
        (b'{"text": "a", "more": 1}', "application/json"),
        (b"a", "application/octet-stream"),
    ],
)
def test_malformed_bodies(client: Client, body: bytes, kind: str) -> None:
    answer = client.request("POST", "/api/identify", content=body, headers={"content-type": kind})

    assert answer.status_code == 422


def test_the_form_shows_the_record_with_the_values_filled_in(client: Client, ids: dict[str, str]) -> None:
    answer = client.request("POST", "/identify", data={"text": ERROR})

    assert answer.status_code == 200
    assert f"/errors/{ids['size_3']}?v%5B%7Bself.page_size%7D%5D=16" in answer.text
    assert answer.headers["cache-control"] == "no-store"
    assert client.request("POST", "/identify", data={"q": ERROR}).status_code == 200
    assert client.request("GET", "/identify", params={"text": ERROR}).status_code == 200
    assert "<textarea" in client.get("/identify").text


def test_what_was_pasted_is_escaped_and_not_logged(front: Client, parts: Parts, log: list[bytes]) -> None:
    text = f"ValueError: {HOSTILE}\n{ERROR} <i>secret-word</i>"

    page = front.request("POST", "/identify", data={"text": text})
    asked(front, text)
    parts.telemetry.access.flush()

    assert "<script>alert" not in page.text and "<i>secret" not in page.text
    assert log and b"secret-word" not in b"".join(log)


def test_the_index_follows_the_database(store: Store, empty_store: Store) -> None:
    matcher = Matcher(store)
    matcher.start()

    assert len(matcher.index().signatures) > 60
    assert matcher.readiness() == "ok"
    assert Matcher(empty_store).index().signatures == ()


def test_readiness_names_the_index(parts: Parts) -> None:
    app = create_app(parts)

    assert app.state.ready_checks["identify"]() in ("ok", "the index is being built")


def test_a_launch_command_is_told_from_an_error(client: Client) -> None:
    answer = client.request(
        "POST", "/api/identify", json={"text": "python -m sglang.launch_server --model-path a/b --tp 2"}
    )

    assert answer.json()["matches"] == []
    assert "/check" in answer.json()["looks_like"]
