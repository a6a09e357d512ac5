"""Lists and records: API, pages and Markdown say the same, in the shape that is promised."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.web.conftest import HOSTILE, Client

BROWSER = {"accept": "text/html"}
# Every key of INTERFACE's example, with the type of its value in a record that has all facts.
PROMISED = {
    "id": str, "url": str, "aliases": list, "package": dict, "kind": str, "exception": str, "title": str,
    "message": str, "status": str, "source": dict, "guards": list, "flags": list, "solutions": list, "history": dict,
    "related": list, "provenance": dict, "situations": list,
}  # fmt: skip
OR_NULL = ("meaning", "trigger", "example", "defence")


def test_a_record_has_every_promised_member(client: Client, ids: dict[str, str]) -> None:
    document = client.get(f"/api/errors/{ids['moving']}").json()

    assert {name: type(document[name]) for name in PROMISED} == PROMISED
    assert set(OR_NULL) <= document.keys()
    assert document["package"] == {"name": "sglang", "repository": "sgl-project/sglang"}
    assert document["url"] == f"/errors/{ids['moving']}"
    source = document["source"]
    assert source["path"] == "python/sglang/srt/new.py" and source["ref"] == "v0.5.19"
    assert source["url"] == "https://github.com/sgl-project/sglang/blob/v0.5.19/python/sglang/srt/new.py#L120"
    assert set(source["excerpt"]) == {"ref", "start_line", "text"}
    history = document["history"]
    assert (history["first"], history["first_is_bound"], history["last"]) == ("0.5.17", True, "0.5.19")
    assert [place["version"] for place in history["releases"]] == ["0.5.17", "0.5.18", "0.5.19"]
    assert {"version": "0.5.18", "what": "moved"}.items() <= history["changes"][0].items()
    assert set(document["provenance"]) == {"analysis", "source", "report_url"}


def test_a_record_that_is_gone_says_since_when(client: Client, ids: dict[str, str]) -> None:
    document = client.get(f"/api/errors/{ids['gone']}").json()
    page = client.page(f"/errors/{ids['gone']}").text

    assert document["history"]["gone_since"] == "0.5.19"
    assert any(solution["derived"] and "0.5.19" in solution["text"] for solution in document["solutions"])
    assert "gone since 0.5.19" in page and "derived from releases" in page


@pytest.mark.parametrize("record_id", ["0" * 16, "x", "CE5CBEFA16D6FAD4", "0" * 17, "..%2F..%2Fetc", "%00"])
def test_an_unknown_id_is_404_in_every_form(client: Client, record_id: str) -> None:
    answers = [
        client.get(f"/api/errors/{record_id}"),
        client.page(f"/errors/{record_id}"),
        client.get(f"/errors/{record_id}.md"),
    ]

    assert [answer.status_code for answer in answers] == [404, 404, 404]
    problem = answers[0].json()
    assert answers[0].headers["content-type"] == "application/problem+json"
    assert {"type", "title", "status", "detail", "instance", "request_id"} <= problem.keys()
    assert 'type="search"' in answers[1].text


def test_a_page_has_its_sections_in_the_promised_order(client: Client, ids: dict[str, str]) -> None:
    text = client.page(f"/errors/{ids['gone']}").text

    order = ['class="crumbs"', 'class="label"', "<h1", 'id="meaning"', 'id="source"', 'id="solutions"', 'id="when"']
    order += ['id="life"', 'id="provenance"']
    places = [text.index(mark) for mark in order]
    assert places == sorted(places)
    assert f"/api/errors/{ids['gone']}" in text


def test_another_releases_place_is_shown_when_asked_for(client: Client, ids: dict[str, str]) -> None:
    old = client.page(f"/errors/{ids['moving']}?release=0.5.17").text

    assert "python/sglang/srt/old.py:100" in old and "You are looking at release 0.5.17." in old
    assert client.page(f"/errors/{ids['moving']}?release=9.9").status_code == 404
    assert client.page(f"/errors/{ids['gone']}?release=0.5.19").status_code == 404


def test_the_readers_values_stand_in_the_message_and_are_escaped(client: Client, ids: dict[str, str]) -> None:
    text = client.page(f"/errors/{ids['moving']}?v[self.page_size]=%3Cb%3E48%3C/b%3E").text

    assert "&lt;b&gt;48&lt;/b&gt;" in text and "<b>48" not in text
    assert 'content="noindex"' in text


def test_a_slug_is_another_address_of_the_same_page(client: Client, ids: dict[str, str]) -> None:
    url = f"/errors/{ids['moving']}"

    assert client.page(f"{url}/any-words").content == client.page(url).content
    assert f'<link rel="canonical" href="{url}">' in client.page(f"{url}/any-words").text


def test_markdown_comes_by_address_and_by_accept(client: Client, ids: dict[str, str]) -> None:
    url = f"/errors/{ids['moving']}"

    by_address, by_accept = client.get(f"{url}.md"), client.get(url, {"accept": "text/markdown"})

    assert by_address.text == by_accept.text
    assert by_accept.headers["content-type"] == "text/markdown; charset=utf-8"
    assert by_accept.headers["vary"] == "accept"
    for fact in ("moving must be divisible by {self.page_size}", "self.page_size > 1", "new.py:120", ids["moving"]):
        assert fact in by_address.text


class Document(HTMLParser):
    """What a browser would run or fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[dict[str, str | None]] = []
        self.handlers: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on") or name == "style"]
        if tag == "script":
            self.scripts.append(dict(attrs))


@pytest.mark.parametrize(
    "path", ["/errors/{hostile}", "/errors?q=alert", "/errors?module={text}", "/errors?q={text}", "/releases/0.5.17"]
)
def test_hostile_text_stays_text(client: Client, ids: dict[str, str], path: str) -> None:
    from urllib.parse import quote

    page = client.page(path.format(hostile=ids["hostile"], text=quote(HOSTILE, safe="")))
    seen = Document(page.text)

    assert page.status_code == 200
    assert [list(script) for script in seen.scripts] == [["src"]] and not seen.handlers
    assert "img" not in seen.tags and "<script>alert" not in page.text
    # Neither is it a template: that would print 49.
    assert "{{ 7*7 }}" in page.text or "7*7" not in page.text


def test_hostile_text_survives_in_json(client: Client, ids: dict[str, str]) -> None:
    assert client.get(f"/api/errors/{ids['hostile']}").json()["parts"] == [HOSTILE, HOSTILE, ""]


def test_a_list_pages_through_everything_once(client: Client, ids: dict[str, str]) -> None:
    seen: list[str] = []
    url = "/api/errors?limit=20"
    while url:
        body = client.get(url).json()
        seen += [item["id"] for item in body["items"]]
        assert body["total"] == len(ids) and len(body["items"]) <= 20
        url = f"/api/errors?limit=20&cursor={body['next']}" if body["next"] else ""

    assert sorted(seen) == sorted(ids.values())


def test_filters_facets_and_chips_agree(client: Client) -> None:
    body = client.get("/api/errors?exception=AssertionError").json()
    page = client.page("/errors?exception=AssertionError").text

    assert body["total"] == 1 == body["facets"]["exception"]["AssertionError"]
    assert "exception: AssertionError" in page and 'href="/errors"' in page
    assert ">1 error<" in page


def test_the_next_page_of_a_list_is_linked(client: Client) -> None:
    first = client.page("/errors?limit=20").text
    link = re.search(r'rel="next" href="([^"]+)"', first)

    assert link is not None
    second = client.page(link[1].replace("&amp;", "&")).text
    assert "From the start" in second and second.count('class="hit"') == 20


def test_an_empty_result_says_what_to_try(client: Client) -> None:
    page = client.page("/errors?q=zzzzqqq&kind=assert")

    assert page.status_code == 200 and "Nothing matches" in page.text and 'href="/identify"' in page.text


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=201", "limit=x", "cursor=%00", "cursor=AAAA", "kind=odd", "status=odd", f"q={'a' * 1001}"],
)
def test_malformed_parameters_are_422(client: Client, query: str) -> None:
    api, page = client.get(f"/api/errors?{query}"), client.page(f"/errors?{query}")

    assert (api.status_code, page.status_code) == (422, 422)
    assert api.json()["title"] == "Malformed input"
    assert page.headers["content-type"].startswith("text/html")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(q=st.text(max_size=80), cursor=st.text(alphabet="abcXYZ019-_=", max_size=30))
def test_any_search_and_any_cursor_has_an_answer(client: Client, q: str, cursor: str) -> None:
    from urllib.parse import urlencode

    answer = client.get("/api/errors?" + urlencode({"q": q, "cursor": cursor}, errors="replace"))

    assert answer.status_code in {200, 422}
    if answer.status_code == 200:
        for item in answer.json()["items"]:
            assert all(0 <= start < end <= len(item["message"]) for start, end in item["hits"])


def test_suggestions_name_flags_and_records(client: Client) -> None:
    found = client.get("/api/suggestions?q=page").json()["suggestions"]

    assert {"flag", "record"} <= {one["kind"] for one in found}
    assert json.dumps(found).count("/flags/") == 1
