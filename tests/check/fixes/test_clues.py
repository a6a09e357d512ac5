"""What an error names is found in its message, its conditions and the knowledge base, surest first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from app.check.fixes import arguments
from app.check.fixes.advice import Advice
from app.check.fixes.clues import Clues, clues
from app.check.protocol import Error, Frame
from tests.check.fixes.table import OPTIONS

BARE = Error("ValueError", "", "sglang/x.py", 1, "f", "f", "", explicit=True)


def read(line: str = "", advice: Advice | None = None, **members: Any) -> Clues:
    return clues(replace(BARE, **members), OPTIONS, arguments.given(line.split(), OPTIONS), advice)


@pytest.mark.parametrize(
    ("members", "dest"),
    [
        ({"message": "--enable-unified-memory only supports hybrid models."}, "enable_unified_memory"),
        ({"message": "got page_size=64"}, "page_size"),
        ({"message": "the page size must be 1"}, "page_size"),
        ({"condition": "self.num_heads % tp_size == 0"}, "tp_size"),
        ({"condition": "self.num_heads % attn_tp_size == 0"}, "tp_size"),
        ({"guards": ("get_memory().enable_unified_memory and pool is None",)}, "enable_unified_memory"),
        ({"statement": "assert server_args.page_size in [1, 64], ("}, "page_size"),
        ({"frames": (Frame("sglang/a.py", 1, "g", "if args.disable_radix_cache:"),) * 2}, "disable_radix_cache"),
    ],
)
def test_a_setting_is_found_where_it_is_named(members: dict[str, Any], dest: str) -> None:
    assert dest in read(**members).mentions


def test_words_that_are_no_settings_are_none() -> None:
    assert read(message="The memory of the model is bad; size 8, backend unknown", condition="x.y > z").mentions == {}


def test_a_name_in_the_message_is_surer_than_one_in_a_condition() -> None:
    found = read(message="--page-size is wrong", guards=("args.tp_size > 1", "args.disable_radix_cache"))

    assert sorted(found.mentions, key=lambda dest: found.mentions[dest].doubt) == [
        "page_size", "disable_radix_cache", "tp_size",
    ]  # fmt: skip


def test_values_are_those_compared_with_and_those_named() -> None:
    compared = read(condition="self.page_size in (1, 64)", guards=("args.attention_backend != 'fa3'",))
    named = read(message="--attention-backend must be triton or flashinfer, not fa4")

    assert compared.mentions["page_size"].values == ["1", "64"]
    assert compared.mentions["attention_backend"].values == ["fa3"]
    assert named.mentions["attention_backend"].values == ["triton", "flashinfer"]


def test_solutions_of_the_record_name_flags_with_their_values() -> None:
    advice = Advice(solutions=("Use `--attention-backend triton --page-size 1`, or drop `--tp`.",))

    found = read(advice=advice)

    assert {dest: mention.values for dest, mention in found.mentions.items()} == {
        "attention_backend": ["triton"], "page_size": ["1"], "tp_size": [],
    }  # fmt: skip


def test_part_of_a_name_counts_for_what_the_command_gives() -> None:
    assert "disable_radix_cache" in read("--disable-radix-cache", message="needs the radix cache").mentions
    assert "disable_radix_cache" not in read(message="needs the radix cache").mentions


def test_numbers_and_variables_of_the_message() -> None:
    found = read(message="length 131,072 exceeds 32768 (0.85); set SGLANG_ALLOW_LONGER=1 or SGLANG_OTHER")

    assert found.numbers == (131072.0, 32768.0, 0.85)
    assert found.variables == (("SGLANG_ALLOW_LONGER", "1"), ("SGLANG_OTHER", ""))


def test_hostile_text_is_read_in_little_time() -> None:
    found = read(message="-" * 4000 + "--" * 500 + "a_" * 1000, condition="(" * 900, guards=("[" * 900,))

    assert found.mentions == {}
