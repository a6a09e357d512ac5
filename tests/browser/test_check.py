"""A check from the page: with JavaScript its stages tick off, without it the form does the same."""

from __future__ import annotations

import json
import urllib.request
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from app.web.routes.check import EXAMPLES

PATIENCE_MS = 300_000
SEED = next(example for example in EXAMPLES if example.name == "unified")


@pytest.fixture(scope="session")
def engine(site: str) -> str:
    """The version that the server takes; skips where none is installed."""
    with urllib.request.urlopen(f"{site}/api/engines", timeout=60) as answer:
        items = json.load(answer)["items"]
    if SEED.engine not in [item["version"] for item in items]:
        pytest.skip(f"no check engine: errata engine install {SEED.engine}")
    return SEED.engine


@pytest.mark.engine
def test_the_seed_from_one_click_to_its_error(page: Page, engine: str) -> None:
    page.goto("/check")
    page.get_by_role("link", name=SEED.text).click()
    page.get_by_role("button", name="Check", exact=True).click()

    verdict = page.locator("#verdict")
    expect(verdict).to_contain_text(f"SGLang {engine} refuses this launch at pool initialisation", timeout=PATIENCE_MS)
    expect(page.locator(".message")).to_contain_text("--enable-unified-memory only supports hybrid Mamba")
    expect(page.locator("#answer .stages").first.locator("li.fail")).to_contain_text("pools")
    assert "command=" not in page.url


@pytest.mark.engine
def test_the_seed_without_javascript(browser: Browser, site: str, engine: str) -> None:
    context = browser.new_context(base_url=site, java_script_enabled=False)
    page = context.new_page()
    page.goto("/check")
    page.get_by_role("link", name=SEED.text).click()
    page.get_by_role("button", name="Check", exact=True).click(timeout=PATIENCE_MS)

    expect(page.locator("#verdict")).to_contain_text("at pool initialisation", timeout=PATIENCE_MS)
    expect(page.locator(".message")).to_contain_text("--enable-unified-memory only supports hybrid Mamba")
    context.close()


@pytest.mark.engine
def test_a_refused_launch_gets_an_edit_that_was_run(page: Page, engine: str) -> None:
    command = "python -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct"
    page.goto("/check")
    page.get_by_label("Command").fill(f"{command} --enable-unified-memory")
    page.get_by_label("Release").select_option(engine)
    page.get_by_role("button", name="Check", exact=True).click()

    expect(page.locator("#verdict")).to_contain_text("refuses this launch", timeout=PATIENCE_MS)
    fix = page.locator("#fixes figure.fix").filter(has_text="drop --enable-unified-memory").first
    expect(fix).to_contain_text(f"run: starts on SGLang {engine}", timeout=PATIENCE_MS)
    expect(fix.locator("pre")).to_have_text(command)
    expect(fix.locator("del")).to_have_text("--enable-unified-memory")

    page.get_by_label("Command").fill(command)
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.locator("#verdict")).to_contain_text("starts with this command", timeout=PATIENCE_MS)


@pytest.mark.engine
def test_a_launch_that_starts_shows_its_memory(page: Page, engine: str) -> None:
    page.goto("/check")
    page.get_by_label("Command").fill("sglang serve Qwen/Qwen3-8B")
    page.keyboard.press("Control+Enter")

    expect(page.locator("#verdict")).to_contain_text("starts with this command", timeout=PATIENCE_MS)
    expect(page.locator("svg.memory rect").first).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="KV cache")).to_be_visible()


def test_what_is_no_command_is_said_beside_the_form(page: Page) -> None:
    page.goto("/check")
    page.get_by_label("Command").fill("ls -la")
    page.get_by_role("button", name="Check", exact=True).click()

    expect(page.locator("#answer")).to_contain_text("not an SGLang launch command")
    expect(page.get_by_label("Command")).to_have_value("ls -la")


def test_share_puts_the_command_behind_the_hash(page: Page) -> None:
    page.goto("/check")
    page.get_by_label("Command").fill("sglang serve a/b --x 'é & ='")
    page.get_by_role("button", name="Share").click()

    parts = urlsplit(page.url)
    assert parts.query == ""
    assert parse_qs(parts.fragment)["command"] == ["sglang serve a/b --x 'é & ='"]


def test_a_command_from_the_one_box_does_not_stay_in_the_address(page: Page) -> None:
    page.goto("/check?command=ls+-la")

    expect(page.get_by_label("Command")).to_have_value("ls -la")
    assert urlsplit(page.url).query == ""


def test_the_page_on_safety(page: Page) -> None:
    page.goto("/about/safety")

    expect(page.get_by_role("heading", name="Limits")).to_be_visible()
