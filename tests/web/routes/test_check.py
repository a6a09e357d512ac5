"""The API of checks and its pages, with the pool at its seam."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest

from app.check import hardware
from app.check.catalogue import Near, catalogue
from app.check.options import Options
from app.check.pool import Engine, SandboxPool
from app.check.protocol import Budget, Error, Lost, Option, Outcome, Pools, Request, Stage
from app.check.service import CheckService, RecordLink
from app.errors import ErrataError, OutOfTime, TooMany, Unavailable
from app.store.engine import Store
from app.web.app import create_app
from app.web.checks import Checks, adviser, linker
from app.web.parts import Parts
from app.web.routes.check import BODY_LIMIT, EXAMPLES
from tests.check.test_service import FakePool
from tests.web.conftest import HOSTILE, VERSIONS, Client, site

COMMAND = "sglang serve Qwen/Qwen3-8B"
POOLS = Pools("target", "M", "MHATokenToKVPool", "R", "A", 1000, 10, 1 << 34, 1 << 34, 1 << 35, 0, 1 << 20, 6.0)
BUDGET = Budget(80 << 30, 78 << 30, 62 << 30, 20 << 30, 0.9, 1, 4096, 8192)
REFUSED = Outcome(
    "fail", "said so", (Stage("arguments", "pass", 20.0), Stage("pools", "fail", 4.0)),
    Error("ValueError", HOSTILE, "sglang/srt/x.py", 7, "f", "C.f", "raise", explicit=True, guards=(HOSTILE,),
          traceback=(HOSTILE,)),
    {"page_size": HOSTILE}, warnings=(HOSTILE,), assumptions=(HOSTILE,),
)  # fmt: skip
OPTIONS = Options(
    "0.5.18", (Option(("--tp-size",), "tp_size", type="int", default=1), Option(("--fast",), "fast", "0"))
)
STARTS = Outcome("pass", "", (Stage("pools", "pass", 4.0),), pools=(POOLS,), budget=BUDGET)


@dataclass
class OneEngine:
    """Our own interpreter in the place of an engine: enough for the probe."""

    def installed(self) -> tuple[Engine, ...]:
        return (Engine("0.5.18", Path(sys.executable), Path("/usr/lib")),)

    def default(self) -> str:
        return "0.5.18"


@dataclass
class FailingPool(FakePool):
    error: ErrataError = field(default_factory=lambda: Unavailable("no"))

    async def check(self, *given: object, **named: object) -> Outcome | Lost:
        raise self.error


@pytest.fixture
def pool() -> FakePool:
    return FakePool(STARTS)


@pytest.fixture
def made(store: Store, pool: FakePool) -> Checks:
    return with_pool(store, pool)


def with_pool(store: Store, pool: FakePool, *, linked: bool = True) -> Checks:
    checks = Checks(store, OneEngine(), warm=False)
    checks._service = CheckService(
        cast("SandboxPool", pool),
        OneEngine(),
        catalogue(),
        hardware.profiles(),
        link=linker(store) if linked else None,
        options=lambda engine: OPTIONS,
    )
    return checks


@pytest.fixture
def asked(store: Store, made: Checks) -> Iterator[Client]:
    client = Client(create_app(Parts(store, checks=made)))
    yield client
    client.close()


def post(client: Client, body: object, **headers: str) -> tuple[int, dict[str, object]]:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = client.request("POST", "/api/check", content=content, headers=headers)
    return answer.status_code, answer.json()


@pytest.mark.parametrize("kind", ["application/json", "application/x-www-form-urlencoded", "text/plain", ""])
def test_json_is_read_whatever_the_client_calls_it(kind: str, asked: Client) -> None:
    status, body = post(asked, {"command": COMMAND}, **{"content-type": kind})

    assert (status, body["verdict"]) == (200, "pass")


def test_the_names_of_the_interface_are_understood(asked: Client, pool: FakePool) -> None:
    config = {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]}

    status, body = post(asked, {
        "command": "sglang serve a/b", "engine": "0.5.18", "hardware": "h200-141gb", "gpus": 8, "model_config": config,
        "draft_model_config": None, "fixes": True,
    })  # fmt: skip

    assert (status, body["hardware"]["name"], body["hardware"]["gpus"]) == (200, "h200-141gb", 8)  # type: ignore[index]
    assert pool.asked[0].models[0].name == "a/b"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "body"),
        (b"not json", "body"),
        (b'{"command": "x"' + b"[" * 100_000, "body"),
        ({}, "command"),
        ({"command": 1}, "command"),
        ({"command": COMMAND, "more": 1}, "more"),
        ({"command": COMMAND, "gpus": "many"}, "gpus"),
        ({"command": "ls"}, "not an SGLang launch command"),
        ({"command": "sglang serve $MODEL"}, "$MODEL"),
        ({"command": COMMAND, "engine": "9.9"}, "0.5.18"),
        ({"command": COMMAND, "hardware": "toaster"}, "toaster"),
        ({"command": COMMAND, "model_config": "{"}, "not JSON"),
    ],
)
def test_what_is_malformed_is_a_problem_document(body: object, said: str, asked: Client) -> None:
    status, problem = post(asked, body)

    assert (status, problem["status"]) == (422, 422)
    assert said in str(problem["detail"])


def test_unknown_names_come_with_the_known_ones(asked: Client) -> None:
    _, engine = post(asked, {"command": COMMAND, "engine": "9.9"})
    _, machine = post(asked, {"command": COMMAND, "hardware": "toaster"})

    assert engine["known"] == ["0.5.18"]
    assert "h100-80gb" in cast("list[str]", machine["known"])


def test_the_value_of_a_malformed_field_is_not_repeated(asked: Client) -> None:
    _, problem = post(asked, {"command": ["hunter2"]})

    assert "hunter2" not in json.dumps(problem)


@pytest.mark.parametrize("size", [BODY_LIMIT + 1, 70_000])
def test_what_is_too_large_is_refused(size: int, asked: Client) -> None:
    assert post(asked, {"command": "x" * size})[0] == 413


@pytest.mark.parametrize(("error", "status"), [(TooMany("x"), 429), (Unavailable("x"), 503), (OutOfTime("x"), 504)])
def test_no_answer_now(error: ErrataError, status: int, store: Store) -> None:
    client = Client(create_app(Parts(store, checks=with_pool(store, FailingPool(error=error)))))

    answer = client.request("POST", "/api/check", content=json.dumps({"command": COMMAND}))
    client.close()

    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")


def test_a_server_without_checks_says_so(client: Client) -> None:
    assert client.get("/api/engines").status_code == 503


def test_stages_are_streamed(asked: Client) -> None:
    answer = asked.request(
        "POST", "/api/check", content=json.dumps({"command": COMMAND}), headers={"accept": "text/event-stream"}
    )

    events = [block.split("\n") for block in answer.text.strip().split("\n\n")]
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert [event[0] for event in events] == ["event: stage", "event: answer"]
    assert json.loads(events[-1][1].removeprefix("data: "))["verdict"] == "pass"


def test_a_problem_ends_a_stream(asked: Client) -> None:
    answer = asked.request(
        "POST", "/api/check", content=json.dumps({"command": "ls"}), headers={"accept": "text/event-stream"}
    )

    assert answer.text.startswith("event: problem\n")
    assert json.loads(answer.text.partition("data: ")[2])["status"] == 422


def test_the_record_is_linked_by_its_place(store: Store, pool: FakePool, asked: Client) -> None:
    place = site("0.5.18", "size_1")
    error = Error("ValueError", "m", place.path, place.line + 1, "check_size_1", place.function, "", explicit=True)
    pool.answer = replace(REFUSED, error=error)

    _, body = post(asked, {"command": COMMAND})
    found = cast("dict[str, dict[str, str]]", body["error"])["record"]
    page = asked.request("POST", "/check", data={"command": COMMAND})

    assert asked.get(f"/api{found['url']}").json()["source"]["function"] == place.function
    assert f'href="{found["url"]}"' in page.text


@pytest.mark.parametrize(
    "changes",
    [{"line": 1}, {"path": "sglang/srt/other.py"}, {"qualified": "Other.name"}],
)
def test_another_place_has_no_record(changes: dict[str, object], store: Store) -> None:
    place = site("0.5.18", "size_1")
    error = Error("ValueError", "m", place.path, place.line, "", place.function, "", explicit=True)

    assert isinstance(linker(store)(error, "0.5.18"), RecordLink)
    assert linker(store)(replace(error, **changes), "0.5.18") is None  # type: ignore[arg-type]
    assert linker(store)(error, "9.9") is None


def test_the_record_advises_by_flags_and_life(store: Store) -> None:
    place = site("0.5.18", "size_1")
    error = Error("ValueError", "m", place.path, place.line, "", place.function, "", explicit=True)
    found = linker(store)(error, "0.5.18")
    assert found is not None

    advice = adviser(store)(found.id)

    assert advice is not None
    assert "0.5.18" in advice.versions
    assert advice.ingested == VERSIONS
    assert advice.flags == place.flags
    assert adviser(store)("0" * 16) is None


def test_the_page_works_as_a_form(asked: Client) -> None:
    shown = asked.page("/check")
    answer = asked.request("POST", "/check", data={"command": COMMAND, "gpus": "2", "hardware": "h200-141gb"})

    assert 'action="/check" method="post"' in shown.text
    assert all(f"/check?example={example.name}" in shown.text for example in EXAMPLES)
    assert answer.status_code == 200
    assert "SGLang 0.5.18 starts" in answer.text
    assert COMMAND in answer.text
    assert "Memory of one GPU" in answer.text
    assert '<option value="h200-141gb" selected>' in answer.text


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_an_example_fills_the_form(example: object, asked: Client) -> None:
    name, command = example.name, example.command  # type: ignore[attr-defined]

    text = asked.page(f"/check?example={name}").text

    assert command.splitlines()[0].replace("'", "&#39;") in text
    assert 'id="verdict"' not in text


def test_the_one_box_leads_here(asked: Client) -> None:
    by_address = asked.page("/check?command=sglang+serve+Qwen/Qwen3-8B")
    by_form = asked.request("POST", "/check", data={"q": COMMAND})

    assert "starts with this command" in by_address.text
    assert "starts with this command" in by_form.text


def test_a_refused_form_keeps_what_was_typed(asked: Client) -> None:
    answer = asked.request("POST", "/check", data={"command": "ls <b>", "gpus": "x"})

    assert answer.status_code == 422
    assert "ls &lt;b&gt;" in answer.text
    assert 'id="fault"' in answer.text


def test_the_page_escapes_what_sglang_says(asked: Client, pool: FakePool) -> None:
    pool.answer = REFUSED

    page = asked.request("POST", "/check", data={"command": COMMAND})
    part = asked.request("POST", "/check", data={"command": COMMAND}, headers={"accept": "text/event-stream"})

    events = dict(block.split("\n") for block in part.text.strip().split("\n\n"))
    assert list(events) == ["event: answer", "event: fixes"]
    assert "No edit was found" in events["event: fixes"]
    for text in (page.text, json.loads(events["event: answer"].removeprefix("data: "))["html"]):
        assert "refuses this launch at pool initialisation" in text
        assert "<script>alert" not in text
        assert "&lt;script&gt;alert" in text


@dataclass
class RefusingPool(FakePool):
    """Refuses whatever has `--fast`."""

    async def check(self, engine: Engine, request: Request, *given: object, **named: object) -> Outcome | Lost:
        self.asked.append(request)
        return REFUSED if "--fast" in request.arguments else STARTS


@pytest.fixture
def refusing(store: Store) -> Iterator[Client]:
    client = Client(create_app(Parts(store, checks=with_pool(store, RefusingPool()))))
    yield client
    client.close()


def test_fixes_are_run_when_asked_for(refusing: Client) -> None:
    _, without = post(refusing, {"command": COMMAND + " --fast"})
    answer = refusing.request("POST", "/api/check", content=json.dumps({"command": COMMAND + " --fast", "fixes": True}))

    assert without["fixes"] == []
    assert "tried" not in without
    body = answer.json()
    (fix,) = body["fixes"]
    assert (fix["edit"], fix["command"], fix["verdict"]) == ("drop --fast", COMMAND, "pass")
    assert [tried["verdict"] for tried in body["tried"]] == ["pass"]


def test_the_page_shows_the_verdict_before_the_fixes(refusing: Client) -> None:
    asked = {"data": {"command": COMMAND + " \\\n  --fast"}}

    page = refusing.request("POST", "/check", **asked)
    part = refusing.request("POST", "/check", **asked, headers={"accept": "text/event-stream"})

    events = [block.split("\n") for block in part.text.strip().split("\n\n")]
    assert [name for name, _ in events] == ["event: answer", "event: tried", "event: fixes"]
    assert "Looking for edits" in events[0][1]
    for text in (page.text, json.loads(events[-1][1].removeprefix("data: "))["html"]):
        assert "<strong>drop --fast</strong>" in text
        assert "<del>--fast</del>" in text
        assert f"{COMMAND}</pre>" in text


def test_lists(asked: Client) -> None:
    assert asked.get("/api/engines").json()["items"][0]["version"] == "0.5.18"
    assert any(item["name"] == "h100-80gb" for item in asked.get("/api/hardware").json()["items"])
    assert any(item["id"] == "Qwen/Qwen3-8B" for item in asked.get("/api/models").json()["items"])


def test_the_page_on_safety_is_from_a_probe(store: Store) -> None:
    checks = Checks(store, OneEngine(), warm=False)
    client = Client(create_app(Parts(store, checks=checks)))

    facts = client.get("/api/check/limits").json()
    page = client.page("/about/safety")
    client._loop.run_until_complete(checks.close())
    client.close()

    assert facts["confined"]
    assert {"seccomp", "no_new_privs"} <= set(facts["layers"])
    assert len(facts["tried"]) > 20
    assert [row["what"] for row in facts["tried"] if not row["refused"]] == []
    assert "open a TCP connection" in page.text


def test_nothing_submitted_is_logged(store: Store, made: Checks) -> None:
    written: list[bytes] = []
    from app.web.telemetry import AccessLog, Telemetry

    client = Client(create_app(Parts(store, checks=made, telemetry=Telemetry(access=AccessLog(written.append)))))
    client.request("POST", "/api/check", content=json.dumps({"command": COMMAND + " --served-model-name hunter2"}))
    client.page("/check?command=sglang+serve+hunter2")
    client.close()

    assert b"hunter2" not in b"".join(written)


def test_examples_name_what_there_is() -> None:
    for example in EXAMPLES:
        assert example.hardware in ("", *hardware.profiles().names)
        for word in example.command.split():
            if "/" in word:
                assert not isinstance(catalogue().find(word), Near)
