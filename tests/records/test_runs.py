"""Stored runs are read strictly, written in one order, and stand only for the example they were made with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.records import runs
from app.records.model import Example
from app.records.runs import Run, RunsError, digest, fresh

EXAMPLE = Example(before="a", after="b")


def run(**changes: Any) -> Run:
    values = {
        "record": "00000000000000aa",
        "engine": "0.5.18",
        "before": "this error",
        "after": "pass",
        "hardware": "h100-80gb",
        "date": "2026-12-01",
        "example": digest(EXAMPLE),
    }
    return Run(**(values | changes))


def test_runs_come_back_ordered_by_record_and_release(tmp_path: Path) -> None:
    made = [run(engine="0.5.9"), run(record="0000000000000001"), run(engine="0.5.10")]

    runs.save(tmp_path / "runs" / "demo.jsonl", made)
    loaded = runs.load(tmp_path / "runs" / "demo.jsonl")

    assert list(loaded.values()) == [made[1], made[0], made[2]]
    assert [p.name for p in (tmp_path / "runs").iterdir()] == ["demo.jsonl"]


def test_the_order_of_writing_leaves_no_trace(tmp_path: Path) -> None:
    made = [run(engine=f"0.5.{n}") for n in range(17, 24)]

    runs.save(tmp_path / "a.jsonl", made)
    runs.save(tmp_path / "b.jsonl", reversed(made))

    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def test_no_file_is_no_run(tmp_path: Path) -> None:
    assert runs.load(tmp_path / "none.jsonl") == {}


@pytest.mark.parametrize(
    ("before", "after", "good"),
    [
        ("this error", "pass", True),
        ("pass", "pass", False),
        ("this error", "this error", False),
        ("this error", "not decided: x", False),
        ("another error: ValueError: x", "pass", False),
    ],
)
def test_only_both_halves_together_are_good(before: str, after: str, good: bool) -> None:
    assert run(before=before, after=after).good is good


@pytest.mark.parametrize(
    "changed",
    [
        Example(before="a ", after="c"),
        Example(before="c", after="b"),
        Example(before="b", after="a"),
        Example(before="a", after="b", hardware="b200-180gb"),
    ],
)
def test_a_changed_example_has_no_run(changed: Example) -> None:
    stored = {("00000000000000aa", "0.5.18"): run()}

    assert len(fresh(stored, "00000000000000aa", EXAMPLE)) == 1
    assert fresh(stored, "00000000000000aa", changed) == ()
    assert fresh(stored, "00000000000000bb", EXAMPLE) == ()


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{}", "line 2: Field required"),
        ("nonsense", "line 2: Invalid JSON"),
        (run().model_dump_json(), "line 2: a second run of 00000000000000aa on 0.5.18"),
        (run(engine="0.5.19").model_dump_json().replace("2026-12-01", "today"), "line 2: String should match"),
        (run(engine="0.5.19").model_dump_json().replace('"engine"', '"motor"'), "line 2: Field required"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, line: str, complaint: str) -> None:
    path = tmp_path / "demo.jsonl"
    path.write_text(f"{run().model_dump_json()}\n{line}\n")

    with pytest.raises(RunsError, match=complaint):
        runs.load(path)
