"""Edits come from the source of a condition, the release's options and what was compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.check.catalogue import catalogue
from app.check.hardware import profiles
from app.check.options import Options
from app.check.protocol import Option
from app.triggers.command import Command
from app.triggers.conditions import Leaf, leaves
from app.triggers.proposals import Proposer
from app.triggers.reads import Release

PATH = "sglang/srt/server_args.py"
SOURCE = """
BACKENDS = ("triton", "fa3")


class ServerArgs:
    def kind(self):
        return self.attention_backend

    def check(self, hf_config):
        backend = self.kind()
        if backend not in BACKENDS:
            raise ValueError
        if self.page_size % 64:
            raise ValueError
        if envs.SGLANG_MODE.get() and hf_config.heads < 8:
            raise ValueError
"""
OPTIONS = Options(
    "1.0",
    (
        Option(("--page-size",), "page_size", type="int"),
        Option(("--attention-backend",), "attention_backend", choices=("fa3", "triton", "torch"), type="str"),
        Option(("--enable-it",), "enable_it", nargs="0", type="bool"),
    ),
)
SEED = Command("Qwen/Qwen3-8B", "h100-80gb")


@pytest.fixture
def proposer(tmp_path: Path) -> Proposer:
    file = tmp_path / PATH
    file.parent.mkdir(parents=True)
    file.write_text(SOURCE)
    return Proposer(Release(tmp_path), OPTIONS, catalogue(), profiles())


def edits(proposer: Proposer, line: int, *, part: int = 0) -> list[Command]:
    goal = proposer.release.source(PATH).goal(line)
    assert goal is not None
    leaf: Leaf = leaves(goal.steps[-1].test.node)[part]
    return list(proposer.edits(SEED, leaf, PATH, goal.entry, []))


def test_a_local_variable_leads_to_the_option_behind_the_function_that_gave_it(proposer: Proposer) -> None:
    tried = {command.option("--attention-backend") for command in edits(proposer, 12)}

    assert {("fa3",), ("triton",), ("torch",)} <= tried


def test_numbers_around_the_constants_are_tried(proposer: Proposer) -> None:
    found = edits(proposer, 14)

    assert {("63",), ("64",), ("65",)} <= {command.option("--page-size") for command in found}
    assert not any(command.option("--attention-backend") for command in found)


def test_environment_and_configuration_are_edited_where_the_condition_reads_them(proposer: Proposer) -> None:
    environment = {command.environment for command in edits(proposer, 16, part=0)}
    overrides = {command.option("--json-model-override-args") for command in edits(proposer, 16, part=1)}

    assert (("SGLANG_MODE", "1"),) in environment
    assert ('{"heads": 7}',) in overrides


def test_a_switch_is_given_and_taken_back(proposer: Proposer) -> None:
    option = OPTIONS.setting("enable_it")
    assert option is not None

    (on,) = proposer.given(SEED, option)

    assert on == SEED.having("--enable-it")
    assert SEED in list(proposer.given(on, option))
