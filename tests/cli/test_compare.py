"""`errata check --engine all` prints what the API's comparison says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.cli import compare
from tests.cli.conftest import Command

COMMAND = ("--", "sglang", "serve", "Qwen/Qwen3-8B", "--bs", "8")


def row(version: str, verdict: str, **changes: Any) -> dict[str, Any]:
    error = {"exception": "SystemExit", "message": "no \x1b[31m--bs", "condition": None, "record": None}
    usual = {
        "version": version, "verdict": verdict, "reason": None, "error": error if verdict == "fail" else None,
        "tokens": 1000 if verdict == "pass" else None, "rewritten": None,
    }  # fmt: skip
    return usual | changes


def body(*rows: dict[str, Any]) -> dict[str, Any]:
    return {
        "command": "sglang serve --model-path Qwen/Qwen3-8B --bs 8",
        "hardware": {"gpus": 1, "title": "H100"},
        "engines": list(rows),
        "steps": [
            {
                "from": "0.5.18", "to": "0.5.19", "flags": [{"flag": "--bs", "what": "removed", "instead": "--max-bs"}],
                "defaults": [{"name": "page_size", "before": 1, "after": None}], "tokens": None,
            }
        ],
        "migrated": {
            "engine": "0.5.19", "command": "sglang serve --model-path Qwen/Qwen3-8B --max-bs 8", "verdict": "pass",
            "changes": [{"before": "--bs 8", "after": "--max-bs 8", "why": "0.5.19 has no --bs"}], "edit": None,
            "error": None, "tokens": 900,
        },
        "elapsed_ms": 1234.5,
    }  # fmt: skip


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the comparison answers, in turn."""
    waiting: list[dict[str, Any]] = []
    monkeypatch.setattr(compare, "here", lambda chosen, given: waiting.pop(0))
    return waiting


def test_a_table_the_changes_and_the_migrated_command(errata: Command, answers: list[dict[str, Any]]) -> None:
    answers.append(body(row("0.5.18", "pass"), row("0.5.19", "fail")))

    result = errata("check", "--engine", "all", *COMMAND)

    assert result.code == 1
    assert result.out.startswith("starts on 0.5.18; refused on 0.5.19\n")
    for line in (
        "  0.5.18   starts       1,000",
        "  - --bs is removed; use --max-bs",
        "  - page_size: 1 -> not set",
        "for 0.5.19, run there: starts",
        "  - --bs 8 becomes --max-bs 8: 0.5.19 has no --bs",
    ):
        assert line in result.out
    assert "\x1b" not in result.out


def test_json_is_the_body_of_the_api(errata: Command, answers: list[dict[str, Any]]) -> None:
    answers.append(body(row("0.5.18", "pass")))
    expected = answers[0]

    result = errata("check", "--engine", "all", "--format", "json", *COMMAND)

    assert (result.code, json.loads(result.out)) == (0, expected)


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [(("pass", "pass"), 0), (("pass", "unknown"), 3), (("unknown", "fail"), 1)],
)
def test_the_exit_code_is_that_of_the_worst_release(
    errata: Command, answers: list[dict[str, Any]], verdicts: tuple[str, str], code: int
) -> None:
    answers.append(body(*(row(f"0.5.{n}", verdict) for n, verdict in enumerate(verdicts))))

    assert errata("check", "--engine", "all", *COMMAND).code == code


def test_what_a_release_says_of_its_own_options(errata: Command, answers: list[dict[str, Any]]) -> None:
    again = {"command": "x", "verdict": "pass", "error": None, "tokens": 900}
    answers.append(body(row("0.5.18", "pass"), row("0.5.19", "fail", rewritten=again)))

    assert "900" in (out := errata("check", "--engine", "all", *COMMAND).out)
    assert "with this release's options: starts" in out
