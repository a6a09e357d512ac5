"""Comparisons over HTTP: JSON, stream and page, with the pool at its seam."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from app.check import compare as comparing
from app.check import hardware
from app.check.catalogue import catalogue
from app.check.options import Options
from app.check.pool import Engine, SandboxPool
from app.check.protocol import Error, Option, Outcome, Pools, Request, Stage
from app.check.service import CheckService
from app.store.engine import Store
from app.web.app import create_app
from app.web.checks import Checks, linker
from app.web.parts import Parts
from tests.check.test_service import FakePool
from tests.web.conftest import HOSTILE, Client

COMMAND = "sglang serve Qwen/Qwen3-8B --bs 8"
POOLS = Pools("target", "M", "MHATokenToKVPool", "R", "A", 1000, 10, 1 << 34, 1 << 34, 1 << 35, 0, 1 << 20, 6.0)
REFUSED = Outcome(
    "fail", "said so", (Stage("arguments", "fail", 20.0),),
    Error("SystemExit", HOSTILE, "sglang/srt/x.py", 7, "f", "C.f", "raise", explicit=True),
)  # fmt: skip
STARTS = Outcome("pass", "", (Stage("pools", "pass", 4.0),), pools=(POOLS,), resolved={"page_size": HOSTILE})


@dataclass
class TwoEngines:
    """Two releases that need not be there."""

    def installed(self) -> tuple[Engine, ...]:
        return tuple(Engine(v, Path(sys.executable), Path("/usr/lib")) for v in ("0.5.18", "0.5.19"))

    def default(self) -> str:
        return "0.5.18"


class ByEngine(FakePool):
    """Starts the old option on the old release, and the new option on the new one."""

    async def check(self, *given: Any, **named: Any) -> Outcome:
        engine, request = cast(Engine, given[0]), cast(Request, given[1])
        option = "--bs" if engine.version == "0.5.18" else "--max-bs"
        return STARTS if option in request.arguments else REFUSED


def table(engine: Engine) -> Options:
    name = "--bs" if engine.version == "0.5.18" else "--max-bs"
    default = 1 if engine.version == "0.5.18" else 2
    return Options(
        engine.version,
        (
            Option(("--model-path",), "model_path"),
            Option((name,), "max_bs"),
            Option(("--seed",), "seed", default=default),
        ),
    )


@pytest.fixture
def client(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    checks = Checks(store, TwoEngines(), warm=False)
    checks._service = CheckService(
        cast(SandboxPool, ByEngine()), TwoEngines(), catalogue(), hardware.profiles(), link=linker(store)
    )
    app = create_app(Parts(store, checks=checks))
    app.state.comparer = comparing.Comparer(checks.service(), table)
    made = Client(app)
    yield made
    made.close()


def post(client: Client, body: object, accept: str = "application/json") -> Any:
    return client.request("POST", "/api/check/compare", content=json.dumps(body), headers={"accept": accept})


def test_json_has_a_row_a_release_and_the_migrated_command(client: Client) -> None:
    body = post(client, {"command": COMMAND}).json()

    assert [(row["version"], row["verdict"], row["tokens"]) for row in body["engines"]] == [
        ("0.5.18", "pass", 1000),
        ("0.5.19", "fail", None),
    ]
    assert body["steps"][0]["flags"] == [{"flag": "--bs", "what": "removed", "instead": "--max-bs"}]
    assert body["migrated"]["command"] == "sglang serve Qwen/Qwen3-8B --max-bs 8"
    assert body["migrated"]["verdict"] == "pass"


def test_releases_can_be_chosen(client: Client) -> None:
    body = post(client, {"command": COMMAND, "engines": ["v0.5.18"]}).json()

    assert [row["version"] for row in body["engines"]] == ["0.5.18"]
    assert (body["steps"], body["migrated"]) == ([], None)


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({"command": "ls"}, "not an SGLang launch command"),
        ({"command": COMMAND, "engines": ["9.9"]}, "SGLang 9.9 is not installed here"),
        ({"command": COMMAND, "engines": ["0.5.18"] * 17}, "engines: "),
        ({"command": COMMAND, "colour": "red"}, "colour: "),
        ({}, "command: "),
    ],
)
def test_malformed_questions_are_told(client: Client, body: object, detail: str) -> None:
    answer = post(client, body)

    assert answer.status_code == 422
    assert detail in answer.json()["detail"]


def test_a_stream_tells_each_release_as_it_ends(client: Client) -> None:
    text = post(client, {"command": COMMAND}, "text/event-stream").text
    names = [line.removeprefix("event: ") for line in text.splitlines() if line.startswith("event: ")]

    assert names == ["release", "release", "answer"]
    assert "event: problem" in post(client, {"command": "ls"}, "text/event-stream").text


def test_the_page_works_without_a_script_and_escapes_what_it_shows(client: Client) -> None:
    html = {"accept": "text/html", "content-type": "application/x-www-form-urlencoded"}
    page = client.request("POST", "/check/compare", data={"command": COMMAND}, headers=html)

    assert page.status_code == 200
    for text in ("starts on 0.5.18; refused on 0.5.19", "--bs is removed; use --max-bs", "run on 0.5.19: starts"):
        assert text in page.text
    assert "1,000" in page.text
    assert "<script>alert" not in page.text
    assert "<textarea" in client.page("/check/compare").text


def test_a_form_without_a_launch_keeps_what_was_typed(client: Client) -> None:
    page = client.request("POST", "/check/compare", data={"command": "ls </textarea>"}, headers={"accept": "text/html"})

    assert page.status_code == 422
    assert "ls &lt;/textarea&gt;" in page.text
