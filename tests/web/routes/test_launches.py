"""The two lists of launches that were run, as pages and as JSON."""

from __future__ import annotations

import html
from pathlib import Path

import pytest

from app.triggers import lists, model
from app.triggers.lists import LateRefusal, Lists, Refusal, RefusedOption
from tests.web.conftest import HOSTILE, Client

COMMAND = "python -m sglang.launch_server --model-path a/b --page-size 3"
REFUSAL = Refusal("0123456789abcdef", "ValueError", HOSTILE, "sglang/srt/x.py:7", 2, COMMAND, "h100-80gb", 1)
LATE = LateRefusal(
    "fedcba9876543210", "pools", "RuntimeError", HOSTILE, "sglang/srt/y.py:9", COMMAND, "h200-141gb", 8,
    {"arguments": 12.0, "pools": 1234.5},
)  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    refused = (RefusedOption("--page-size", "3", (REFUSAL, REFUSAL, REFUSAL, REFUSAL)), RefusedOption("--odd", "", ()))
    for version in ("0.5.9", "0.5.18"):
        lists.save(Lists(version, 5, ("a/b", "c/d"), refused, (LATE,)), tmp_path)
    monkeypatch.setattr(model, "FOLDER", tmp_path)
    return tmp_path


def test_the_newest_release_is_shown_and_another_can_be_asked_for(client: Client) -> None:
    assert client.get("/api/launches/refused-flags").json()["engine"]["version"] == "0.5.18"
    assert client.get("/api/launches/late-refusals?release=0.5.9").json()["engine"]["version"] == "0.5.9"
    assert client.get("/api/launches/late-refusals?release=0.5.10").status_code == 404


def test_json_says_what_was_run(client: Client) -> None:
    body = client.get("/api/launches/refused-flags").json()

    assert (body["tried"], body["models"]) == (5, ["a/b", "c/d"])
    assert body["items"][0]["refusals"][0]["command"] == COMMAND
    assert client.get("/api/launches/late-refusals").json()["items"][0]["stages"]["pools"] == 1234.5


@pytest.mark.parametrize("address", ["/launches/refused-flags", "/launches/late-refusals"])
def test_a_page_escapes_and_leads_to_record_and_check(client: Client, address: str) -> None:
    page = client.page(address).text

    assert HOSTILE not in page and html.escape(HOSTILE, quote=False)[:20] in page
    assert "/check?command=python+-m+sglang.launch_server" in page
    assert "/errors/0123456789abcdef" in page or "/errors/fedcba9876543210" in page


def test_a_flag_leads_to_its_errors_only_where_there_are_some(client: Client) -> None:
    page = client.page("/launches/refused-flags").text

    assert 'href="/flags/--page-size"' in page
    assert 'href="/flags/--odd"' not in page
    assert "And 1 more errors" in page


def test_where_nothing_was_run_nothing_is_said(client: Client, folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()

    assert client.page("/launches/refused-flags").status_code == 404
