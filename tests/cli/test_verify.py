"""`errata verify` runs what was not run yet, stores it, and tells which examples do not do what their record says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.check.service import Question
from app.cli import checking, verify
from tests.cli.conftest import Command

BEFORE, AFTER = "sglang serve Qwen/Qwen3-8B --pool", "sglang serve Qwen/Qwen3-8B"


class World:
    """One engine that refuses `--pool` with the record that it is told."""

    def __init__(self) -> None:
        self.record = ""
        self.asked: list[str] = []
        self.engines = SimpleNamespace(installed=lambda: [SimpleNamespace(version=v) for v in ("1.0", "1.1")])

    def service(self) -> World:
        return self

    async def close(self) -> None:
        return None

    async def check(self, question: Question) -> dict[str, Any]:
        self.asked.append(f"{question.engine} {question.command.strip()}")
        if "--pool" not in question.command:
            return {"verdict": "pass"}
        error = {"exception": "ValueError", "message": "no", "condition": "", "record": {"id": self.record}}
        return {"verdict": "fail", "error": error}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(verify, "PACKAGE", "demo")
    monkeypatch.setattr(checking, "checks", lambda *_, **__: made)
    return made


@pytest.fixture
def record(ingested: Command, world: World) -> Iterator[str]:
    """A curated record whose example was not run yet; its file is written."""
    found = json.loads(ingested("search", "recurrent", "--format", "json").out)["items"][0]["id"]
    world.record = found
    path = Path(ingested("new-record", found).out.strip())
    text = path.read_text().replace("TODO a launch command or code that meets the error", BEFORE)
    text = text.replace("TODO the same without it", AFTER)
    path.write_text(text.partition("## Not verified")[0].replace("TODO", "done:"))
    yield found


def stored(home: Path) -> list[dict[str, str]]:
    lines = (home / "data" / "runs" / "demo.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_both_halves_run_on_every_release_that_has_the_record(
    ingested: Command, record: str, world: World, home: Path
) -> None:
    result = ingested("verify", record)

    assert result.code == 0
    assert world.asked == [f"1.0 {BEFORE}", f"1.0 {AFTER}"]
    assert "1.0: 1 of 1 pairs do what their record says" in result.out
    (run,) = stored(home)
    assert (run["record"], run["engine"], run["before"], run["after"]) == (record, "1.0", "this error", "pass")


def test_what_was_run_is_not_run_again(ingested: Command, record: str, world: World) -> None:
    ingested("verify")
    again = ingested("verify")

    assert (again.code, len(world.asked)) == (0, 2)
    assert "0 pairs run now" in again.out
    assert ingested("verify", "--again").code == 0
    assert len(world.asked) == 4


def test_a_changed_example_is_run_anew_and_its_old_run_is_gone(
    ingested: Command, record: str, world: World, home: Path
) -> None:
    ingested("verify")
    first = stored(home)
    (path,) = (home / "data" / "errors" / "demo").glob(f"{record}-*.md")
    path.write_text(path.read_text().replace(AFTER, f"{AFTER} --tp 2"))

    ingested("verify")

    assert len(world.asked) == 4
    assert [run["example"] for run in stored(home)] != [run["example"] for run in first]
    assert len(stored(home)) == 1


def test_swapped_halves_are_told_and_make_the_exit_code_1(
    ingested: Command, record: str, home: Path
) -> None:  # fmt: skip
    (path,) = (home / "data" / "errors" / "demo").glob(f"{record}-*.md")
    text = path.read_text()
    path.write_text(
        text.replace(f"'''\n{BEFORE}", "'''\nX").replace(f"'''\n{AFTER}", f"'''\n{BEFORE}").replace("X", AFTER)
    )

    result = ingested("verify", "--format", "json")
    body = json.loads(result.out)

    assert result.code == 1
    assert [(run["before"], run["after"], run["good"]) for run in body["runs"]] == [("pass", "this error", False)]
    assert body["engines"] == [{"version": "1.0", "pairs": 1, "proven": 0}]


@pytest.mark.parametrize("arguments", [("ffffffffffffffff",), ("--engine", "9.9")])
def test_an_unknown_record_or_release_is_bad_usage(
    ingested: Command, record: str, world: World, arguments: tuple[str, ...]
) -> None:
    assert ingested("verify", *arguments).code == 2
    assert world.asked == []
