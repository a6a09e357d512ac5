"""A comparison asks every release once, says what changed between neighbours, and runs the migrated command."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from app.check.compare import Comparer
from app.check.options import Options
from app.check.pool import Engine
from app.check.protocol import Option
from app.check.service import Question
from app.errors import BadInput, OutOfTime, TooMany, Unavailable

RECORD = {"id": "00000000000000aa", "url": "/errors/00000000000000aa", "title": "t"}
TABLES = {
    "0.5.17": (Option(("--model-path",), "model_path"), Option(("--bs",), "max_bs"), Option(("--r",), "r", default=1)),
    "0.5.18": (Option(("--model-path",), "model_path"), Option(("--bs",), "max_bs"), Option(("--r",), "r", default=1)),
    "0.5.19": (Option(("--model-path",), "model_path"), Option(("--max-bs",), "max_bs"), Option(("--r",), "r")),
}
COMMAND = "python -m sglang.launch_server --model-path m --bs 8"


def passed(tokens: int, **resolved: Any) -> dict[str, Any]:
    return {
        "verdict": "pass", "reason": None, "error": None, "resolved": resolved, "stages": [], "warnings": [],
        "pools": {"max_total_num_tokens": tokens}, "hardware": {"name": "h100"}, "fixes": [],
    }  # fmt: skip


def refused(message: str = "unrecognized arguments: --bs 8") -> dict[str, Any]:
    error = {
        "exception": "SystemExit", "message": message, "condition": None, "path": "x.py", "line": 1, "function": "f",
        "record": RECORD,
    }  # fmt: skip
    stages = [{"name": "arguments", "outcome": "fail"}]
    return passed(0) | {"verdict": "fail", "error": error, "pools": None, "stages": stages}


class Installed:
    """Three engines that need not be there."""

    def installed(self) -> tuple[Engine, ...]:
        return tuple(Engine(version, Path("python"), Path("release")) for version in TABLES)

    def default(self) -> str:
        return "0.5.18"


class Scripted:
    """Answers from a table of what happens, by release; "--max-bs" passes only on the newest one."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.engines = Installed()
        self.answers = answers
        self.asked: list[Question] = []

    async def check(self, question: Question) -> dict[str, Any]:
        self.asked.append(question)
        await asyncio.sleep(0)
        if "--max-bs" in question.command:
            return passed(300) if question.engine == "0.5.19" else refused()
        answer = self.answers[question.engine]
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)


def compared(answers: dict[str, Any], *engines: str, command: str = COMMAND) -> tuple[dict[str, Any], Scripted]:
    service = Scripted(answers)
    comparer = Comparer(service, lambda engine: Options(engine.version, TABLES[engine.version]))
    return asyncio.run(comparer.compare(Question(command), engines)), service


GOOD = {"0.5.17": passed(100), "0.5.18": passed(200, r=4), "0.5.19": refused()}


def test_each_release_has_its_row_oldest_first() -> None:
    body, service = compared(GOOD)

    assert [(row["version"], row["verdict"], row["tokens"]) for row in body["engines"]] == [
        ("0.5.17", "pass", 100),
        ("0.5.18", "pass", 200),
        ("0.5.19", "fail", None),
    ]
    assert body["engines"][2]["error"]["record"] == RECORD
    assert body["engines"][2]["stage"] == "arguments"
    assert body["engines"][2]["rewritten"] == {
        "command": "python -m sglang.launch_server --model-path m --max-bs 8",
        "verdict": "pass",
        "error": None,
        "tokens": 300,
    }
    assert [row["rewritten"] for row in body["engines"][:2]] == [None, None]
    assert [question.engine for question in service.asked] == ["0.5.17", "0.5.18", "0.5.19", "0.5.19", "0.5.19"]


def test_neighbours_differ_in_options_defaults_and_capacity() -> None:
    body, _ = compared(GOOD)

    first, second = body["steps"]
    assert (first["from"], first["to"]) == ("0.5.17", "0.5.18")
    assert first["defaults"] == [{"name": "r", "before": 1, "after": 4}]
    assert first["tokens"] == {"before": 100, "after": 200}
    assert second["flags"] == [{"flag": "--bs", "what": "removed", "instead": "--max-bs"}]
    # The newest release refuses the command; what is compared is the same with its own options.
    assert second["defaults"] == [{"name": "r", "before": 4, "after": None}]
    assert second["tokens"] == {"before": 200, "after": 300}


def test_values_in_forms_that_cannot_be_compared_are_no_change() -> None:
    answers = {"0.5.17": passed(1, r="Config(a=1)"), "0.5.18": passed(1, r={"a": 1})}

    assert compared(answers, "0.5.17", "0.5.18")[0]["steps"][0]["defaults"] == []


def test_a_setting_that_was_asked_for_is_no_default() -> None:
    body, _ = compared(GOOD, command=f"{COMMAND} --r 1")

    assert body["steps"][0]["defaults"] == []


def test_the_migrated_command_is_run_on_the_newest_release() -> None:
    body, service = compared(GOOD)

    migrated = body["migrated"]
    assert migrated["command"] == "python -m sglang.launch_server --model-path m --max-bs 8"
    assert (migrated["engine"], migrated["verdict"], migrated["tokens"]) == ("0.5.19", "pass", 300)
    assert migrated["changes"] == [{"before": "--bs 8", "after": "--max-bs 8", "why": "0.5.19 has no --bs"}]
    assert service.asked[-1].command == migrated["command"]


def test_nothing_has_to_be_migrated_where_the_newest_release_takes_the_command() -> None:
    body, _ = compared(GOOD, "0.5.17", "0.5.18")

    assert [row["version"] for row in body["engines"]] == ["0.5.17", "0.5.18"]
    assert body["migrated"] is None


def test_where_no_option_changed_a_fix_that_was_run_is_the_migrated_command() -> None:
    fix = {"edit": "drop --x", "command": "fixed", "verdict": "pass"}
    elsewhere = {"edit": "upgrade", "command": "other", "verdict": "pass", "engine": "0.5.19"}
    body, _ = compared({"0.5.17": passed(1), "0.5.18": refused("no") | {"fixes": [elsewhere, fix]}}, "0.5.17", "0.5.18")

    assert body["migrated"]["command"] == "fixed"
    assert body["migrated"]["edit"] == "drop --x"


@pytest.mark.parametrize("error", [OutOfTime("too slow"), Unavailable("does not start"), TooMany("busy")])
def test_one_release_without_an_answer_does_not_lose_the_others(error: Exception) -> None:
    body, _ = compared(GOOD | {"0.5.17": error})

    assert [row["verdict"] for row in body["engines"]] == ["unknown", "pass", "fail"]
    assert body["engines"][0]["reason"] == str(error)
    assert body["hardware"] == {"name": "h100"}


def test_an_unknown_release_and_no_command_are_refused_before_anything_runs() -> None:
    with pytest.raises(BadInput, match=r"SGLang 9\.9 is not installed"):
        compared(GOOD, "9.9")
    with pytest.raises(BadInput, match="not an SGLang launch command"):
        compared(GOOD, command="ls -l")


def test_only_one_comparison_runs_at_a_time() -> None:
    comparer = Comparer(Scripted(GOOD), lambda engine: Options(engine.version, TABLES[engine.version]))

    async def two() -> tuple[Any, Any]:
        first = asyncio.create_task(comparer.compare(Question(COMMAND)))
        await asyncio.sleep(0)
        second = await asyncio.gather(comparer.compare(Question(COMMAND)), return_exceptions=True)
        return await first, second[0]

    first, second = asyncio.run(two())
    assert first["engines"]
    assert isinstance(second, TooMany)
