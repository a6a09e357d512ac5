"""What a reader does: look for an error, narrow, read, follow; by mouse and by keyboard."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, expect


def test_from_home_to_a_record_to_its_json_and_its_relatives(page: Page, facts: dict[str, Any]) -> None:
    page.goto("/")
    page.fill("#box", facts["words"])
    page.keyboard.press("Enter")
    page.wait_for_url("**/errors?q=**")
    expect(page.locator("a.hit").first).to_be_visible()

    page.goto(facts["record"]["url"])
    expect(page.locator("h1")).to_be_visible()
    with page.expect_response("**/api/errors/*") as json:
        page.click("text=JSON")
    assert json.value.json()["id"] == facts["record"]["id"]

    page.go_back()
    page.locator("#related a.hit").first.click()
    page.wait_for_url(f"**/errors/{facts['record']['related'][0]['id']}")


def test_typing_searches_and_the_address_follows(page: Page, facts: dict[str, Any]) -> None:
    page.goto("/errors")
    before = page.locator("#found").inner_text()
    page.locator("main input[name=q]").press_sequentially(facts["words"], delay=15)

    expect(page.locator("#found")).not_to_have_text(before)
    page.wait_for_url(re.compile(r"/errors\?q="))
    assert page.locator("#found mark, .hit mark").count() > 0


def test_facets_narrow_the_list_chips_widen_it_and_back_goes_back(page: Page) -> None:
    page.goto("/errors")
    total = page.locator("#found").inner_text()
    choice = page.locator(".facets li a").first
    name = choice.locator("span").first.inner_text()
    choice.click()
    page.wait_for_url(re.compile(r"\?exception="))

    expect(page.locator(".chips")).to_contain_text(name)
    expect(page.locator("#found")).not_to_have_text(total)
    page.locator(".chips a").first.click()
    expect(page.locator("#found")).to_have_text(total)
    page.go_back()
    expect(page.locator(".chips")).to_contain_text(name)
    page.reload()
    expect(page.locator(".chips")).to_contain_text(name)


def test_the_theme_lasts(context: BrowserContext, page: Page) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    page.goto("/")
    light = page.evaluate(paper)
    page.click("[data-theme-switch]")
    page.click("[data-theme-switch]")
    expect(page.locator("[data-theme-switch]")).to_have_text("Theme: dark")
    dark = page.evaluate(paper)

    other = context.new_page()
    other.goto("/errors")

    assert dark != light and other.evaluate(paper) == dark
    # Before the first paint: the script that sets it stands above the style sheet.
    assert other.evaluate("document.querySelector('head script').compareDocumentPosition("
                          "document.querySelector('head link[rel=stylesheet]')) & 4") == 4  # fmt: skip


def test_everything_can_be_done_by_keyboard(page: Page, facts: dict[str, Any]) -> None:
    page.goto("/errors")
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()

    page.keyboard.press("/")
    expect(page.locator("main input[name=q]")).to_be_focused()
    page.keyboard.type(facts["words"])
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"\?q="))
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    first = page.locator("a.hit").first
    expect(first).to_be_focused()
    expect(first).to_have_css("outline-style", "solid")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/errors/[0-9a-f]{16}"))

    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).not_to_be_visible()


def test_a_hole_shows_its_expression_on_focus_and_a_value_stands_in_it(page: Page, facts: dict[str, Any]) -> None:
    record = facts["record"]
    holes = record["parts"][1::2]
    if not holes:
        record = {"url": record["url"]}
    page.goto(record["url"])
    hole = page.locator(".message .hole")
    assert hole.count() == len(holes)
    if holes:
        hole.first.focus()
        expect(hole.first).to_have_text("{" + holes[0] + "}")
        page.goto(f"{record['url']}?v[{holes[0]}]=<i>my own</i>")
        expect(page.locator(".message .filled").first).to_have_text("<i>my own</i>")


def test_code_is_copied(browser: Browser, site: str) -> None:
    context = browser.new_context(base_url=site, permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto("/api")
    page.locator("[data-copy]").first.click()
    expect(page.locator("[data-copy]").first).to_have_text("Copied")

    assert page.evaluate("navigator.clipboard.readText()").startswith("curl ")
    context.close()
