"""A parent answers every job once, whatever its children do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.check.protocol import Answer, Cancel, Hardware, Job, Limits, Lost, Model, Progress, Request, dump, load
from app.check.worker.forks import folder_name, place_models
from tests.check.worker.fake_parent import check as fake_check

ROOT = Path(__file__).parents[3]
CPU = Hardware("cpu", "cpu")
QUICK = Limits(wall_s=30, cpu_s=20, memory_bytes=2 << 30, output_bytes=100_000)
Start = Callable[[int], "Parent"]


class Parent:
    """A fake parent and the conversation with it."""

    def __init__(self, children: int) -> None:
        environment = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}
        command = [sys.executable, "-P", str(Path(__file__).with_name("fake_parent.py")), str(children)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)

    def send(self, number: int, *arguments: str, limits: Limits = QUICK, models: tuple[Model, ...] = ()) -> None:
        self.put(dump(Job(number, Request(arguments, CPU, models=models), limits)))

    def put(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def answer(self) -> Answer:
        """Return the next answer, passing over progress."""
        assert self.process.stdout is not None
        while True:
            message = load(self.process.stdout.readline())
            if isinstance(message, Answer):
                return message
            assert isinstance(message, Progress)

    def ask(self, *arguments: str, limits: Limits = QUICK) -> Answer:
        self.send(1, *arguments, limits=limits)
        return self.answer()

    def end(self) -> int:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        code = self.process.wait(30)
        self.process.stdout.close()
        return code


@pytest.fixture
def parent() -> Iterator[Parent]:
    made = Parent(2)
    yield made
    assert made.end() == 0


def lost(answer: Answer) -> Lost:
    assert answer.outcome is None and answer.lost is not None
    return answer.lost


def test_a_job_is_answered_after_its_progress(parent: Parent) -> None:
    parent.send(7, "pass")
    assert parent.process.stdout is not None

    first = load(parent.process.stdout.readline())
    answer = parent.answer()

    assert isinstance(first, Progress) and first.id == 7
    assert answer.id == 7 and answer.outcome is not None and answer.outcome.basis == "done"


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("die", "died"),
        ("leave", "died"),
        ("raise", "broken"),
        ("flood", "output"),
        ("nonsense", "protocol"),
        ("memory", "memory"),
    ],
)
def test_a_child_that_misbehaves_is_lost_and_the_next_is_not(parent: Parent, what: str, reason: str) -> None:
    assert lost(parent.ask(what)).reason == reason

    assert parent.ask("pass").outcome is not None


def test_a_child_over_its_time_is_killed(parent: Parent) -> None:
    answer = lost(parent.ask("sleep", limits=Limits(wall_s=0.3)))

    assert (answer.reason, answer.stage) == ("timeout", "arguments")


def test_a_child_over_its_processor_time_is_killed(parent: Parent) -> None:
    assert lost(parent.ask("spin", limits=Limits(wall_s=60, cpu_s=1))).reason in ("timeout", "memory")


def test_a_cancelled_job_is_killed(parent: Parent) -> None:
    parent.send(3, "sleep")
    assert parent.process.stdout is not None
    parent.process.stdout.readline()

    parent.put(dump(Cancel(3)))

    assert lost(parent.answer()).reason == "cancelled"


def test_more_jobs_than_children_wait_their_turn(parent: Parent) -> None:
    for number in range(6):
        parent.send(number, "pass")

    assert {parent.answer().id for _ in range(6)} == set(range(6))


def test_a_line_that_is_no_message_does_not_stop_the_parent(parent: Parent) -> None:
    parent.put(b"nonsense\n\n")

    assert parent.ask("pass").outcome is not None


def test_of_several_ranks_the_one_with_fewest_tokens_is_shown(parent: Parent) -> None:
    outcome = parent.ask("ranks", "30", "20", "25").outcome

    assert outcome is not None
    assert (outcome.verdict, outcome.basis, outcome.ranks[0]) == ("pass", "rank 1", 1)
    assert sorted(outcome.ranks) == [0, 1, 2]
    assert [pool.tokens for pool in outcome.pools] == [20, 30, 25]


def test_of_several_ranks_the_one_that_fails_decides(parent: Parent) -> None:
    outcome = parent.ask("ranks", "30", "0", "25").outcome

    assert outcome is not None
    assert (outcome.verdict, outcome.basis) == ("fail", "rank 1")


def test_no_further_rank_runs_once_one_has_failed(parent: Parent) -> None:
    outcome = parent.ask("ranks", "30", "10", "0").outcome

    assert outcome is not None and outcome.ranks == (2, 0)


def test_models_are_files_of_the_child_s_folder(parent: Parent) -> None:
    parent.send(1, "file", "org/name/config.json", models=(Model("org/name", {"config.json": "{1}"}),))

    outcome = parent.answer().outcome

    assert outcome is not None and outcome.basis == "{1}"


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("openai/gpt-oss-20b", "openai/gpt-oss-20b"),
        ("/models/x", "models/x"),
        ("./x", "x"),
        ("../x", None),
        ("a/../../x", None),
        ("~/x", None),
        ("", None),
        ("x" * 300, None),
    ],
)
def test_a_model_s_folder_stays_below_the_check_s(name: str, folder: str | None) -> None:
    found = folder_name(name)

    assert (None if found is None else str(found)) == folder


def test_a_name_that_cannot_be_a_folder_is_replaced_in_the_arguments(tmp_path: Path) -> None:
    model = Model("/models/x", {"config.json": "{}"})
    other = Model("../y", {"config.json": "{}"})
    request = Request(("--model-path=/models/x", "--speculative-draft-model-path", "../y"), CPU, models=(model, other))

    placed = place_models(request, tmp_path)

    assert placed.arguments == ("--model-path=models/x", "--speculative-draft-model-path", "model-1")
    assert (tmp_path / "models/x/config.json").exists() and (tmp_path / "model-1/config.json").exists()


@pytest.mark.parametrize("file", ["../config.json", "/etc/x", "a/b", "", ".."])
def test_a_model_s_files_have_bare_names(tmp_path: Path, file: str) -> None:
    with pytest.raises(ValueError, match="bare name"):
        place_models(Request((), CPU, models=(Model("m", {file: ""}),)), tmp_path)


def test_the_fake_passes_without_a_parent_too() -> None:
    assert fake_check(Request(("pass",), CPU), lambda stage: None, 0).verdict == "pass"
