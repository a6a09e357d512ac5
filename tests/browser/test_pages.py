"""Every kind of page in a real browser: nothing for axe to find, no sideways scroll, no shift, no foreign request."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, BrowserContext, Page

SHIFTS = """() => new Promise((done) => {
  let sum = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) sum += entry.value;
  }).observe({type: "layout-shift", buffered: true});
  setTimeout(() => done(sum), 250);
})"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(browser: Browser, site: str, kinds: dict[str, str], theme: Any) -> None:
    context = browser.new_context(base_url=site, color_scheme=theme)
    page = context.new_page()
    found: dict[str, list[str]] = {}
    for kind, url in kinds.items():
        page.goto(url)
        results = Axe().run(page)
        if results.violations_count:
            found[kind] = [
                f"{violation['id']}: {violation['nodes'][0]['html']}" for violation in results.response["violations"]
            ]
    context.close()

    assert found == {}


@pytest.mark.parametrize("width", [360, 800])
def test_no_page_scrolls_sideways(browser: Browser, site: str, kinds: dict[str, str], width: int) -> None:
    context = browser.new_context(base_url=site, viewport={"width": width, "height": 800})
    page = context.new_page()
    wide = {}
    for kind, url in kinds.items():
        page.goto(url)
        needed, there = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        if needed > there:
            wide[kind] = (needed, there)
    context.close()

    assert wide == {}


def test_nothing_shifts_and_nothing_is_asked_of_another_host(page: Page, site: str, kinds: dict[str, str]) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    shifts = {}
    for kind, url in kinds.items():
        page.goto(url)
        shifts[kind] = page.evaluate(SHIFTS)

    assert {kind: sum_ for kind, sum_ in shifts.items() if sum_ > 0.002} == {}
    assert [url for url in asked if not url.startswith(site)] == []


def test_motion_and_print_are_kept_calm(page: Page, facts: dict[str, Any]) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.goto(facts["record"]["url"])
    moving = (
        "[...document.querySelectorAll('*')].filter((e) => parseFloat(getComputedStyle(e).transitionDuration)).length"
    )

    assert page.evaluate(moving) == 0
    page.emulate_media(media="print")
    assert not page.locator(".top").is_visible() and page.locator("h1").is_visible()


def test_every_page_works_without_script(browser: Browser, site: str, facts: dict[str, Any]) -> None:
    context: BrowserContext = browser.new_context(base_url=site, java_script_enabled=False)
    page = context.new_page()
    page.goto("/")
    page.fill("textarea[name=q]", facts["words"])
    page.click("text=Look it up")
    assert "/errors?q=" in page.url
    page.locator("a.hit").first.click()
    assert "/errors/" in page.url and page.locator("#source").is_visible()
    page.locator(".life a").first.click()
    assert "release=" in page.url and "You are looking at release" in page.content()
    assert page.locator("[data-theme-switch]").count() == 1 and not page.locator("[data-theme-switch]").is_visible()
    context.close()
