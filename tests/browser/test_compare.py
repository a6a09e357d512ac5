"""A comparison from the check page: the page stays with JavaScript, and is another one without it."""

from __future__ import annotations

import json
import urllib.request

import pytest
from playwright.sync_api import Browser, Page, expect

PATIENCE_MS = 600_000
COMMAND = "sglang serve Qwen/Qwen3-8B --cuda-graph-max-bs 64"


@pytest.fixture(scope="session")
def versions(site: str) -> list[str]:
    """The installed releases; skips where there are not two, one of them without the option."""
    with urllib.request.urlopen(f"{site}/api/engines", timeout=60) as answer:
        found = [item["version"] for item in json.load(answer)["items"]]
    if not {"0.5.18", "0.5.23"} <= set(found):
        pytest.skip("needs two engines (make engines)")
    return found


@pytest.mark.engine
def test_every_release_has_its_row_and_the_migrated_command_was_run(page: Page, versions: list[str]) -> None:
    page.goto("/check")
    page.get_by_label("Command").fill(COMMAND)
    page.get_by_role("button", name="Compare all releases").click(timeout=PATIENCE_MS)

    compared(page, versions)
    page.evaluate("document.getElementById('answer').replaceChildren(); window.stayed = true")
    page.get_by_role("button", name="Compare", exact=True).click()  # now by the page's script
    compared(page, versions)
    assert page.evaluate("window.stayed")


@pytest.mark.engine
def test_a_comparison_without_javascript(browser: Browser, site: str, versions: list[str]) -> None:
    context = browser.new_context(base_url=site, java_script_enabled=False)
    page = context.new_page()
    page.goto("/check")
    page.get_by_label("Command").fill(COMMAND)
    page.get_by_role("button", name="Compare all releases").click(timeout=PATIENCE_MS)

    compared(page, versions)
    context.close()


def compared(page: Page, versions: list[str]) -> None:
    """Expect the whole comparison."""
    expect(page.locator("#verdict")).to_contain_text(f"{len(versions)} releases", timeout=PATIENCE_MS)
    expect(page.get_by_role("rowheader", name=versions[0], exact=True)).to_be_visible()
    expect(page.get_by_role("rowheader", name=versions[-1], exact=True)).to_be_visible()
    migrated = page.locator("section").filter(has=page.get_by_role("heading", name="For 0.5.23"))
    expect(migrated).to_contain_text("run on 0.5.23: starts")
    expect(migrated.locator("pre")).to_contain_text("--cuda-graph-max-bs-decode 64")
