"""Ranges of tokens, and where there is none."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from app.check.capacity import (
    COMMUNICATION,
    GIB,
    gives_no_number,
    has_experts,
    quantisations,
    token_range,
    uncalibrated,
)
from app.check.catalogue import Model as Known
from app.check.catalogue import catalogue
from app.check.hardware import profiles
from app.check.protocol import Budget, Capacity, Model, Pools, Request

TARGET = Pools(
    role="target", model="M", token_to_kv_pool="MHATokenToKVPool", request_pool="R", allocator="A", tokens=400_000,
    requests=4096, weight_bytes=15 * GIB, loaded_weight_bytes=15 * GIB, kv_bytes=50 * GIB, state_bytes=0,
    request_bytes=0,
)  # fmt: skip
BUDGET = Budget(79 * GIB, 78 * GIB, 63 * GIB, 13 * GIB, fraction=0.83, page_size=1)


def asked(hub_id: str, hardware: str = "h100", gpus: int = 1, **changes: object) -> Request:
    known = catalogue().find(hub_id)
    assert isinstance(known, Known)
    models = (Model(hub_id, known.files()),)
    request = Request(("--model-path", hub_id), profiles().find(hardware).device, gpus, models)
    return replace(request, **changes)  # type: ignore[arg-type]


def width(request: Request, *, free_is_measured: bool = True) -> float:
    found = token_range(TARGET, BUDGET, request, free_is_measured=free_is_measured)
    assert found is not None
    assert found.low <= TARGET.tokens <= found.high
    return (found.high - found.low) / TARGET.tokens


def test_one_plain_gpu_is_known_within_a_per_cent() -> None:
    assert width(asked("Qwen/Qwen3-8B")) < 0.01


def test_more_doubt_makes_a_wider_range() -> None:
    given = asked("Qwen/Qwen3-8B", capacity=Capacity(free_bytes=78 * GIB))
    one, several = asked("Qwen/Qwen3-8B"), asked("Qwen/Qwen3-8B", gpus=8)

    assert width(given) < width(one) < width(one, free_is_measured=False) < width(several)


def test_a_doubt_about_free_memory_counts_by_the_fraction() -> None:
    found = token_range(TARGET, BUDGET, asked("Qwen/Qwen3-8B", gpus=2), free_is_measured=True)

    assert found is not None
    bytes_ = (found.high - TARGET.tokens - 1) * TARGET.kv_bytes / TARGET.tokens
    assert bytes_ == pytest.approx(0.83 * sum(found.doubts.values()), rel=1e-3)
    assert found.doubts["communication buffers"] == COMMUNICATION


def test_experts_may_grow_so_the_low_end_is_lower() -> None:
    found = token_range(TARGET, BUDGET, asked("Qwen/Qwen3-30B-A3B-FP8"), free_is_measured=True)

    assert found is not None
    assert TARGET.tokens - found.low > found.high - TARGET.tokens


def test_an_empty_pool_has_no_range() -> None:
    assert token_range(replace(TARGET, kv_bytes=0), BUDGET, asked("Qwen/Qwen3-8B"), free_is_measured=True) is None


@pytest.mark.parametrize(
    ("hub_id", "hardware", "says"),
    [
        ("openai/gpt-oss-20b", "h100", "2 to 3 GB"),
        ("openai/gpt-oss-20b", "b200", "0.8 GB"),
        ("nvidia/DeepSeek-V3.1-NVFP4", "b200", "NVFP4"),
        ("nvidia/MiniMax-M3-NVFP4", "b200", "NVFP4"),
        ("Qwen/Qwen3-8B", "mi300x", "AMD"),
    ],
)
def test_what_no_log_was_compared_with_is_said(hub_id: str, hardware: str, says: str) -> None:
    assert says in " ".join(uncalibrated(TARGET, asked(hub_id, hardware)))


@pytest.mark.parametrize("hub_id", ["Qwen/Qwen3-8B", "deepseek-ai/DeepSeek-V3", "Qwen/Qwen3-30B-A3B-FP8"])
def test_what_logs_were_compared_with_is_not(hub_id: str) -> None:
    assert uncalibrated(TARGET, asked(hub_id)) == ()


def test_deepseek_v4_is_told_by_its_pool() -> None:
    pool = replace(TARGET, token_to_kv_pool="DeepSeekV4TokenToKVPool")

    assert "DeepSeek-V4" in uncalibrated(pool, asked("Qwen/Qwen3-8B"))[0]


def test_sizing_after_capture_gives_no_number() -> None:
    request = asked("Qwen/Qwen3-8B", environment={"SGLANG_ENABLE_POST_CAPTURE_KV_SIZING": "true"})

    assert gives_no_number(request)
    assert not gives_no_number(asked("Qwen/Qwen3-8B"))
    assert "real device" in uncalibrated(TARGET, request)[0]


def test_formats_are_read_from_files_and_command() -> None:
    assert "fp8" in quantisations(asked("Qwen/Qwen3-8B", arguments=("--quantization", "fp8")))
    assert "compressed-tensors" in quantisations(asked("moonshotai/Kimi-K2.5"))
    assert (
        quantisations(Request((), profiles().find("h100").device, models=(Model("x", {"config.json": "no"}),))) == set()
    )


def test_experts_are_found_in_a_text_model_too() -> None:
    assert has_experts(asked("Qwen/Qwen3.5-35B-A3B"))
    assert not has_experts(asked("Qwen/Qwen3-8B"))
    assert not has_experts(
        Request((), profiles().find("h100").device, models=(Model("x", {"config.json": json.dumps([])}),))
    )
