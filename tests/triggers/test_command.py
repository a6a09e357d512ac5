"""A launch as a value: read, written, changed, made smaller."""

from __future__ import annotations

import pytest

from app.check import command as commands
from app.errors import BadInput
from app.triggers.command import Command

TEXT = (
    "SGLANG_X='a b' python -m sglang.launch_server --model-path org/name --tp-size 2 --trust-remote-code "
    "--lora-paths one two --chunked-prefill-size=-1"
)


def test_what_is_read_is_written_again() -> None:
    command = Command.read(TEXT, "h100-80gb")

    assert str(command) == TEXT
    assert command.option("--lora-paths") == ("one", "two")
    assert command.environment == (("SGLANG_X", "a b"),)


def test_what_is_written_is_understood_by_the_check() -> None:
    command = Command("org/name", "h100-80gb").overriding("layers", "it's").having("--page-size", "-1")

    read = commands.read(str(command))

    assert read.option("--page-size") == "-1"
    assert read.option("--json-model-override-args") == '{"layers": "it\'s"}'


def test_a_launch_without_a_model_is_none() -> None:
    with pytest.raises(BadInput):
        Command.read("python -m sglang.launch_server --tp 2", "h100-80gb")


def test_smaller_commands_lack_one_thing_each() -> None:
    command = (
        Command("m", "h", (("--a", ()),), (("SGLANG_B", "1"),), (("p", ""),)).overriding("c", 1).overriding("d", 2)
    )

    smaller = list(command.smaller())

    assert len(smaller) == len(set(smaller)) == 6
    assert command.lacking("--a") in smaller
    assert Command("m", "h", command.options, (), command.packages) in smaller


def test_joining_keeps_what_is_there() -> None:
    one, other = Command("m", "h", (("--a", ("1",)),)), Command("n", "h", (("--a", ("2",)), ("--b", ())))

    assert one.joined(other) == Command("m", "h", (("--a", ("1",)), ("--b", ())))


def test_what_smaller_commands_share_is_what_none_of_them_spares() -> None:
    command = Command("m", "h", (("--a", ()), ("--b", ("1",))), (("SGLANG_B", "1"),)).overriding("c", 1)
    command = command.overriding("d", 2)
    spared = [
        c
        for c in command.smaller()
        if c.option("--json-model-override-args")
        if c.option("--a") is None or '"c": 1' not in str(c)
    ]

    assert str(command.shared(spared)).endswith("--b 1 --json-model-override-args '{\"d\": 2}'")
    assert command.shared(command.smaller()) == Command("m", "h")
