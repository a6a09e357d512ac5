"""The fast path answers what the application answers, and forgets what is no longer so."""

from __future__ import annotations

from pathlib import Path
from shutil import copyfile

import pytest

from app.store import migrate
from app.store.engine import Store
from app.web import fastpath
from app.web.app import asgi
from app.web.frame import Site
from app.web.parts import Parts
from app.web.prerender import prerender
from tests.web.conftest import Client

NAMES = ("hostile", "bare", "said", "gone", "moving", "worded", "size_7")
HTML = {"accept": "text/html"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("path", ["/errors/", "/api/errors/"])
def test_it_answers_what_the_application_answers(
    client: Client, front: Client, ids: dict[str, str], name: str, path: str
) -> None:
    for headers in (HTML, {}, {"accept": "*/*", "x-request-id": "me"}):
        cold = front.get(path + ids[name], headers)
        warm = front.get(path + ids[name], headers)
        slow = client.get(path + ids[name], headers)

        own = {"x-request-id"} if "x-request-id" not in headers else set()
        assert cold.content == warm.content == slow.content
        assert cold.status_code == warm.status_code == slow.status_code == 200
        expected = {name: value for name, value in slow.headers.items() if name not in own}
        assert {name: value for name, value in warm.headers.items() if name not in own} == expected
        assert {name: value for name, value in cold.headers.items() if name not in own} == expected


@pytest.mark.parametrize("path", ["/errors/", "/api/errors/"])
def test_it_knows_etags_and_head(front: Client, ids: dict[str, str], path: str) -> None:
    url = path + ids["moving"]
    get = front.get(url, HTML)

    head = front.request("HEAD", url, headers=HTML)
    unchanged = front.get(url, {**HTML, "if-none-match": get.headers["etag"]})

    assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", get.headers["etag"])
    assert head.headers["content-length"] == str(len(get.content))
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert unchanged.headers["content-security-policy"] == get.headers["content-security-policy"]


def test_what_it_does_not_answer_goes_on_to_the_application(front: Client, ids: dict[str, str]) -> None:
    url = f"/errors/{ids['moving']}"
    front.page(url)

    assert front.get(url, {"accept": "text/markdown"}).headers["content-type"].startswith("text/markdown")
    assert (
        front.get(url, {"accept": "text/html;q=0.5, text/markdown;q=0.4"})
        .headers["content-type"]
        .startswith("text/html")
    )
    assert "Your" not in front.page(url).text and "your values" in front.page(url + "?v[self.page_size]=3").text
    assert front.request("POST", url).status_code == 405
    assert front.page("/errors/" + "0" * 16).status_code == 404


def test_an_alias_leads_to_the_page_and_gives_the_same_json(front: Client, ids: dict[str, str]) -> None:
    document = front.get(f"/api/errors/{ids['worded']}").json()
    alias = document["aliases"][0]

    page = front.page(f"/errors/{alias}?release=0.5.18")

    assert (page.status_code, page.headers["location"]) == (308, f"/errors/{ids['worded']}?release=0.5.18")
    assert front.get(f"/api/errors/{alias}").json() == document


def test_a_commit_is_noticed_and_a_stale_page_is_never_served(
    store: Store, ids: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fastpath, "CHECK_S", -1.0)
    own = _copy(store, tmp_path)
    prerender(own, Site(), processes=1)
    app = asgi(Parts(own))
    front = Client(app)
    url = f"/errors/{ids['moving']}"
    before, json_before = front.page(url).text, front.get("/api" + url).text

    with own.writing() as connection:
        connection.exec_driver_sql(
            "UPDATE document SET body = CAST(replace(CAST(body AS TEXT), 'moving must', 'CHANGED must') AS BLOB), "
            "etag = 'changed' WHERE record_key = (SELECT key FROM record WHERE id = ?)",
            (ids["moving"],),
        )
    after, json_after = front.page(url).text, front.get("/api" + url).text
    front.close()
    app.close()
    own.close()

    assert "CHANGED" not in before + json_before
    assert "CHANGED must" in after and "CHANGED must" in json_after


def test_kept_pages_are_served_as_they_were_rendered(store: Store, ids: dict[str, str], tmp_path: Path) -> None:
    own = _copy(store, tmp_path)
    plain = Client(asgi(Parts(own)))
    fresh = {name: plain.page(f"/errors/{ids[name]}").content for name in NAMES}
    plain.close()

    assert prerender(own, Site(), processes=1) == len(ids)
    assert prerender(own, Site(), processes=1) == 0
    kept = Client(asgi(Parts(own)))
    served = {name: kept.page(f"/errors/{ids[name]}").content for name in NAMES}
    kept.close()
    own.close()

    assert served == fresh


def test_memory_is_bounded(parts: Parts, ids: dict[str, str]) -> None:
    front = fastpath.FastPath(asgi(parts).app, parts, limit_bytes=60_000)
    client = Client(front)
    for record_id in ids.values():
        assert client.page(f"/errors/{record_id}").status_code == 200
    client.close()
    front.close()

    assert 0 < front.size <= 60_000


def test_what_it_answers_is_counted(front: Client, parts: Parts, ids: dict[str, str]) -> None:
    for _ in range(3):
        front.get(f"/api/errors/{ids['moving']}")

    text = front.get("/metrics").text

    assert 'errata_http_requests_total{route="/api/errors/{record_id}",status="200"} 3.0' in text
    assert 'errata_http_request_seconds_count{route="/api/errors/{record_id}"} 3.0' in text


def _copy(store: Store, folder: Path) -> Store:
    with store.engine.connect() as connection:
        connection.exec_driver_sql("COMMIT")
        connection.exec_driver_sql("VACUUM INTO ?", (str(folder / "copy.db"),))
    copyfile(folder / "copy.db", folder / "own.db")
    made = Store(f"sqlite:///{folder / 'own.db'}")
    migrate.upgrade(made)
    return made
