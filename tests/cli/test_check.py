"""`errata check`: what it asks, what it prints, how it exits."""

from __future__ import annotations

import io
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from app.check.pool import Engine
from app.check.protocol import Error, Outcome, Request, Stage
from app.cli import checking
from app.cli.check import lines
from app.settings import Settings
from app.store.engine import Store
from app.web.checks import Checks
from tests.check.test_service import BUDGET, PASSED, POOLS, FakePool, answered
from tests.cli.conftest import Command
from tests.web.routes.test_check import with_pool

COMMAND = "sglang serve Qwen/Qwen3-8B"
ERROR = Error("ValueError", "no \x1b[31mred", "sglang/srt/x.py", 7, "f", "C.f", "raise", explicit=True)
REFUSED = Outcome("fail", "", (Stage("arguments", "pass", 20.0), Stage("pools", "fail", 4.0)), ERROR)


class EndlessPool(FakePool):
    async def close(self) -> None:
        """There is nothing to end."""


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> FakePool:
    """The pool of the command, at its seam."""
    fake = EndlessPool()

    def checks(chosen: Settings, store: Store, *, warm: bool, linked: bool) -> Checks:
        return with_pool(store, fake, linked=linked)

    monkeypatch.setattr(checking, "checks", checks)
    return fake


@pytest.mark.parametrize(
    ("outcome", "code"),
    [(Outcome("pass", "", REFUSED.stages), 0), (REFUSED, 1), (Outcome("unknown", "why", REFUSED.stages), 3)],
)
def test_the_exit_code_is_the_verdict(outcome: Outcome, code: int, pool: FakePool, errata: Command) -> None:
    pool.answer = outcome

    assert errata("check", "--", *COMMAND.split()).code == code


def test_words_and_text_are_the_same_command(pool: FakePool, errata: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    errata("check", "--hardware", "h200", "--gpus", "4", "--", *COMMAND.split(), "--x", "a b")
    errata("check", f"{COMMAND} --x 'a b'")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{COMMAND} --x 'a b'".encode())))
    errata("check", "-")

    assert {request.arguments for request in pool.asked} == {("--model-path", "Qwen/Qwen3-8B", "--x", "a b")}
    assert (pool.asked[0].hardware.name, pool.asked[0].gpus) == ("h200-141gb", 4)


def test_json_is_the_body_of_the_api(pool: FakePool, errata: Command) -> None:
    body = json.loads(errata("check", "--format", "json", COMMAND).out)

    assert (body["verdict"], body["engine"]["version"]) == ("pass", "0.5.18")


def test_a_configuration_is_read_from_a_file(pool: FakePool, errata: Command, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text('{"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]}')

    errata("check", "--model-config", str(file), "--draft-model-config", str(file),
           "sglang serve a/b --speculative-draft-model-path c/d")  # fmt: skip

    assert [model.name for model in pool.asked[0].models] == ["a/b", "c/d"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("ls",), "not an SGLang launch command"),
        (("--engine", "9.9", COMMAND), "not installed"),
        (("--hardware", "toaster", COMMAND), "toaster"),
        (("--model-config", "/nonexistent", COMMAND), "cannot be read"),
        ((), "Missing argument"),
    ],
)
def test_bad_usage(arguments: tuple[str, ...], said: str, pool: FakePool, errata: Command) -> None:
    result = errata("check", *arguments)

    assert result.code == 2
    assert said in result.err


def test_without_an_engine_it_is_broken(errata: Command) -> None:
    result = errata("check", COMMAND)

    assert result.code == 3
    assert "errata engine install" in result.err


class Answers(BaseHTTPRequestHandler):
    """A server that answers with what it was told."""

    status: ClassVar[int] = 200
    body: ClassVar[dict[str, Any]] = {}
    asked: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        """Answer."""
        self.asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        data = json.dumps(self.body).encode()
        self.send_response(self.status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Answers]]:
    made = HTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    monkeypatch.setenv("ERRATA_SERVER", f"http://127.0.0.1:{made.server_port}")
    Answers.asked.clear()
    yield Answers
    made.shutdown()
    thread.join()
    made.server_close()


def test_fixes_are_looked_for_when_told(pool: FakePool, errata: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    async def check(engine: Engine, request: Request, *given: object) -> Outcome:
        return REFUSED if "--fast" in request.arguments else PASSED

    monkeypatch.setattr(pool, "check", check)

    without = errata("check", f"{COMMAND} --fast")
    fixed = errata("check", "--fix", f"{COMMAND} --fast")

    assert (without.code, fixed.code) == (1, 1)
    assert "drop --fast" not in without.out
    assert f"starts: drop --fast   (run on SGLang 0.5.18, 1 × NVIDIA H100 SXM 80 GB)\n  {COMMAND}\n" in fixed.out


def test_what_was_tried_is_told_where_nothing_starts(pool: FakePool, errata: Command) -> None:
    pool.answer = REFUSED

    result = errata("check", "--fix", f"{COMMAND} --fast")

    assert result.code == 1
    assert (
        "No edit was found that starts. What was tried:\n  refused     drop --fast\n  Edits run: 1, in " in result.out
    )


@pytest.mark.parametrize(("status", "code"), [(200, 1), (422, 2), (413, 2), (503, 3), (504, 3)])
def test_a_running_server_is_asked(status: int, code: int, server: type[Answers], errata: Command) -> None:
    server.status = status
    server.body = answered(FakePool(REFUSED)) if status == 200 else {"detail": "so it is"}

    result = errata("check", "--engine", "0.5.18", COMMAND)

    assert result.code == code
    assert server.asked == [{"command": COMMAND, "engine": "0.5.18"}]
    assert ("so it is" in result.err) == (status != 200)


@pytest.mark.parametrize("address", ["http://127.0.0.1:9", "file:///etc/passwd"])
def test_a_server_that_is_not_there(address: str, errata: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ERRATA_SERVER", address)

    assert errata("check", COMMAND).code in (2, 3)


def test_a_refusal_as_text() -> None:
    text = "\n".join(lines(answered(FakePool(REFUSED))))

    assert text.startswith("SGLang 0.5.18 refuses this launch at pool initialisation.")
    assert "REFUSED  pools" in text
    assert "ValueError: no ?[31mred" in text
    assert "sglang/srt/x.py:7, in C.f" in text


def test_capacity_as_text() -> None:
    text = "\n".join(lines(answered(FakePool(Outcome("pass", "", REFUSED.stages, pools=(POOLS,), budget=BUDGET)))))

    assert "tokens in the KV cache" in text
    assert "weights" in text


def test_switching_confinement_off_is_loud(capsys: pytest.CaptureFixture[str]) -> None:
    assert checking.bounds(Settings.from_environment({})).confined
    assert capsys.readouterr().err == ""
    assert not checking.bounds(Settings.from_environment({"ERRATA_UNSAFE_NO_SANDBOX": "1"})).confined
    assert "WARNING" in capsys.readouterr().err
