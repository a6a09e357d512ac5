"""A reader pastes the log of eight ranks and comes to the record with the values filled in."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect


def eight_ranks(record: dict[str, Any]) -> tuple[str, str]:
    """Return a log in which every rank raises the record's error, and the value that it put into each hole."""
    value = "4711"
    message = "".join(part if n % 2 == 0 else value for n, part in enumerate(record["parts"]))
    source = record["source"]
    function = source["function"].rpartition(".")[2]
    lines = []
    for rank in range(8):
        lines += [
            f"[2026-03-04 09:11:08 TP{rank}] Scheduler hit an exception: Traceback (most recent call last):",
            f'  File "/sgl-workspace/sglang/{source["path"]}", line 99, in {function}',
            f"    raise {record['exception']}(",
            f"{record['exception']}: {message}",
            "",
            f"[2026-03-04 09:11:09 TP{rank}] Received sigquit from a child process. It usually means the child failed.",
        ]
    return "\n".join(lines), value


@pytest.fixture(scope="session")
def holed(site: str) -> dict[str, Any]:
    """A record that is raised with a long text and a value in it."""
    for item in _fetched(f"{site}/api/errors?kind=raise&limit=200")["items"]:
        record = _fetched(f"{site}/api/errors/{item['id']}")
        if len(record["parts"]) > 1 and sum(map(len, record["parts"][0::2])) > 40 and record["source"]:
            return record
    raise AssertionError("none of the first 200 records has a hole in a long text")


def _fetched(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(url, timeout=30) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def walk(page: Page, record: dict[str, Any]) -> None:
    """Paste, look, follow the first match."""
    log, value = eight_ranks(record)
    page.goto("/identify")
    page.fill("main textarea[name=text]", log)
    page.click("main button.primary")
    first = page.locator("main article h3 a").first
    expect(first).to_be_visible()
    first.click()
    page.wait_for_url(f"**/errors/{record['id']}*")
    expect(page.locator("main .message var.filled").first).to_have_text(value)
    expect(page.locator("#solutions var.filled").first).to_have_text(value)


def test_with_javascript(page: Page, holed: dict[str, Any]) -> None:
    walk(page, holed)


def test_without_javascript(browser: Browser, site: str, holed: dict[str, Any]) -> None:
    context = browser.new_context(base_url=site, java_script_enabled=False)
    walk(context.new_page(), holed)
    context.close()


@pytest.mark.parametrize("javascript", [True, False])
def test_the_box_of_the_home_page_sends_a_log_on(
    browser: Browser, site: str, facts: dict[str, Any], javascript: bool
) -> None:
    context = browser.new_context(base_url=site, java_script_enabled=javascript)
    page = context.new_page()
    page.goto("/")
    page.fill("#box", eight_ranks(facts["record"])[0])
    page.click("main form button.primary")

    expect(page.locator("main article h3 a").first).to_be_visible()
    assert page.url.startswith(f"{site}/identify")
    context.close()
