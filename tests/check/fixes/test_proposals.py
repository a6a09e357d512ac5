"""Proposals come from what is known of an error, and never take the model away."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from app.check import hardware
from app.check.fixes import changes
from app.check.fixes.advice import Advice
from app.check.fixes.changes import Release
from app.check.fixes.proposals import Failure, Proposer
from app.check.protocol import Error
from tests.check.fixes.table import ENGINE, NEXT, table, variant

PROPOSER = Proposer(table, (ENGINE, NEXT), tuple(hardware.profiles()), lambda name: name.startswith("SGLANG_"))
BARE = Error("ValueError", "", "sglang/x.py", 1, "f", "f", "", explicit=True)


def proposed(
    line: str, *, stage: str = "checks", advice: Advice | None = None, resolved: Any = None, **error: Any
) -> list[str]:
    """Return the edits proposed, likeliest first."""
    failure = Failure(variant(line), replace(BARE, **error), stage, resolved or {}, advice)
    found = PROPOSER.proposals(failure)
    return [changes.text(p.edit) for p in sorted(found, key=lambda p: changes.loss(p.edit) + p.doubt)]


def parser(said: str) -> dict[str, Any]:
    return {"exception": "SystemExit", "foreign": "argparse", "message": f"sglang serve: error: {said}"}


def test_a_switch_that_is_named_is_dropped() -> None:
    found = proposed("--model m --page-size 1 --enable-unified-memory", message="--enable-unified-memory only supports")

    assert found[0] == "drop --enable-unified-memory"


def test_a_named_value_comes_before_dropping() -> None:
    found = proposed("--model m --attention-backend fa3", message="--attention-backend must be triton")

    assert found[0] == "change --attention-backend fa3 to triton"
    assert "drop --attention-backend fa3" in found


def test_a_size_is_lowered() -> None:
    found = proposed("--model m --tp 8", stage="model", condition="heads % tp_size == 0")

    assert found[:2] == ["change --tp 8 to 4", "change --tp 8 to 2"]
    assert "drop --tp 8" in found


def test_what_is_asked_for_is_added() -> None:
    switch = proposed("--model m", condition="server_args.disable_radix_cache")
    value = proposed("--model m", resolved={"page_size": 64}, condition="server_args.page_size == 1")

    assert switch[0] == "add --disable-radix-cache"
    assert value[0] == "add --page-size 1"


def test_the_model_is_never_touched() -> None:
    found = proposed("--model m --tp 2", message="model_path --model-path m is not supported", stage="model")

    assert found
    assert not any("--model" in edit for edit in found)


def test_nothing_is_guessed_of_a_checkpoint() -> None:
    named = proposed("--model m --quantization gptq", message="quantization in the config (awq) is not gptq")
    absent = proposed("--model m", message="quantization fp8 is not supported, only awq is", stage="model")

    assert named == ["change --quantization gptq to awq", "drop --quantization gptq"]
    assert absent == []


def test_an_upgrade_follows_the_life_of_the_record() -> None:
    gone = Advice(versions=("1.0",), ingested=("1.0", "1.1"))
    lives = Advice(versions=("1.0", "1.1"), ingested=("1.0", "1.1"))

    assert proposed("--model m", advice=gone)[0] == "upgrade to SGLang 1.1 or later"
    assert proposed("--model m", advice=lives) == []


def test_an_upgrade_says_since_when() -> None:
    ingested = ("0.9", "1.0", "1.0.1", "1.1", "1.2")

    gone = proposed("--model m", advice=Advice(versions=("0.9", "1.0"), ingested=ingested))
    back = proposed("--model m", advice=Advice(versions=("1.0", "1.2"), ingested=ingested))

    assert gone == ["upgrade to SGLang 1.0.1 or later"]
    assert back == ["upgrade to SGLang 1.1"]


def test_the_example_of_the_record_is_followed() -> None:
    advice = Advice(
        before="sglang serve a --page-size 2 --enable-unified-memory", after="SGLANG_B=1 sglang serve b --page-size 1"
    )

    found = proposed("--model m --page-size 2 --enable-unified-memory --tp 2", advice=advice)

    assert "drop --enable-unified-memory, change --page-size 2 to 1 and set SGLANG_B=1" in found or (
        "change --page-size 2 to 1, drop --enable-unified-memory and set SGLANG_B=1" in found
    )
    assert not any("--model" in edit or " b" in edit for edit in found)


@pytest.mark.parametrize(
    ("line", "said", "first"),
    [
        ("--model m --page_size 1", "unrecognized arguments: --page_size 1",
         "write --page-size instead of --page_size"),
        ("--model m --new-thing", "unrecognized arguments: --new-thing", "upgrade to SGLang 1.1"),
        ("--model m --disable-radix-cache true", "unrecognized arguments: true", "drop true"),
        ("--model m --attention-backend tritn",
         "argument --attention-backend: invalid choice: 'tritn' (choose from 'fa3', 'triton', 'flashinfer')",
         "change --attention-backend tritn to triton"),
        ("--model m --page-size 64k", "argument --page-size: invalid int value: '64k'", "change --page-size 64k to 64"),
        ("--model m --tp", "argument --tp-size/--tensor-parallel-size: expected one argument", "change --tp to 1"),
    ],
)  # fmt: skip
def test_what_the_parser_refuses(line: str, said: str, first: str) -> None:
    found = proposed(line, stage="arguments", **parser(said))

    assert found[0] == first


def test_variables_are_set_where_they_are_applied() -> None:
    found = proposed("--model m", message="set SGLANG_ALLOW=1 or HOME=2 to go on")

    assert found == ["set SGLANG_ALLOW=1"]


def test_memory_leads_to_more_of_it() -> None:
    found = proposed("--model m --tp 2", stage="pools", message="Not enough memory")

    assert "change --tp 2 to 4" in found
    assert any(edit.startswith("run on ") for edit in found)


def test_a_flag_is_moved_in_the_direction_that_is_said() -> None:
    up = proposed("--model m --mem-fraction-static 0.8", stage="pools",
                  message="Not enough memory. Please increase --mem-fraction-static")  # fmt: skip
    down = proposed("--model m --mem-fraction-static 0.8", stage="pools", message="reduce --mem-fraction-static")

    numbers = [[float(e.rsplit(" ", 1)[1]) for e in found if e.startswith("change --mem")] for found in (up, down)]
    assert numbers[0]
    assert min(numbers[0]) > 0.8
    assert max(numbers[1]) < 0.8


def test_unified_memory_is_no_lack_of_memory() -> None:
    found = proposed("--model m --enable-unified-memory", message="--enable-unified-memory: no unified memory pool")

    assert found == ["drop --enable-unified-memory"]


def test_a_device_that_is_named_comes_first() -> None:
    names = [edit for edit in proposed("--model m", message="needs SM100 or newer") if edit.startswith("run on")]

    assert "B200" in names[0] or "GB200" in names[0]


def test_an_edit_is_proposed_once() -> None:
    found = proposed(
        "--model m --page-size 2", message="--page-size page_size", condition="page_size == 1", stage="pools"
    )

    assert len(found) == len(set(found))


def test_a_release_that_is_unknown_to_the_server_breaks_nothing() -> None:
    advice = Advice(versions=("0.1",), ingested=("0.1", "0.2"))
    failure = Failure(replace(variant("--model m"), engine=replace(ENGINE, version="7")), BARE, "pools", {}, advice)

    assert not any(isinstance(p.edit[0], Release) for p in PROPOSER.proposals(failure))
