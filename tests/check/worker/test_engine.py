"""A real engine: its own raises at their very lines, and what must hold of any start-up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.check.hardware import profiles
from app.check.protocol import STAGES, Capacity, Outcome, Request
from app.check.worker import standins
from bench.differential import essence
from tests.check.worker.conversation import Conversation, installed, started

pytestmark = pytest.mark.engine

CONFIGURATOR = "sglang/srt/mem_cache/kv_cache_configurator.py"
UNIFIED = " --enable-unified-memory --attention-backend triton --cuda-graph-backend-prefill=disabled"
NO_CACHE = " --prefill-only-disable-kv-cache --is-embedding --chunked-prefill-size -1 --disable-radix-cache"
SPECULATIVE = " --speculative-algorithm DSPARK --speculative-draft-model-path dspark-gpt-oss"
# The raises of `_init_pools` and that of pools without a cache: command, exception, line in 0.5.18, start of message.
RAISES = {
    "disaggregation": ("qwen3-next --tp 2 --disaggregation-mode prefill" + UNIFIED, "ValueError", 393,
                       "--enable-unified-memory with PD disaggregation currently supports only MLA"),
    "disaggregation of sliding windows": ("gpt-oss --disaggregation-mode prefill" + UNIFIED, "ValueError", 406,
                                          "--enable-unified-memory with PD disaggregation does not support hybrid-SWA"),
    "dense": ("llama-8b" + UNIFIED, "ValueError", 420,
              "--enable-unified-memory only supports hybrid Mamba and hybrid sliding-window-attention"),
    "speculative": ("gpt-oss" + UNIFIED + SPECULATIVE, "ValueError", 445,
                    "Speculative decoding with --enable-unified-memory is only supported for hybrid-Mamba targets"),
    "no cache": ("gpt-oss" + NO_CACHE, "RuntimeError", 753,
                 "--prefill-only-disable-kv-cache is not supported for SWA KV pool"),
}  # fmt: skip
# What the same commands do on the other engines: "raise" (in the pools), "refused" (earlier), "pass".
ELSEWHERE = {
    "0.5.17": ("refused", "refused", "raise", "refused", "raise"),
    "0.5.19": ("raise", "raise", "raise", "raise", "raise"),
    "0.5.20": ("pass", "pass", "raise", "pass", "raise"),
    "0.5.21": ("pass", "pass", "raise", "pass", "raise"),
    "0.5.22": ("pass", "pass", "raise", "pass", "raise"),
    "0.5.23": ("pass", "pass", "raise", "pass", "raise"),
}
H200 = profiles().find("h200").device


def conversation(version: str) -> Iterator[Conversation]:
    engine = installed(version)
    if engine is None:
        pytest.skip(f"engine {version} is not installed")
    with started(engine, H200) as talk:
        yield talk


@pytest.fixture(scope="module")
def talk() -> Iterator[Conversation]:
    yield from conversation("0.5.18")


def stage(outcome: Outcome) -> str:
    return next((one.name for one in outcome.stages if one.outcome not in ("pass", "not reached")), "")


def test_the_release_declares_its_options(talk: Conversation) -> None:
    options = {name: option for option in talk.ready.options for name in option.names}

    assert len(talk.ready.options) > 300
    assert options["--enable-unified-memory"].nargs == "0"
    assert "triton" in options["--attention-backend"].choices
    assert (options["--tp-size"].dest, options["--tp-size"].type, options["--tp-size"].default) == ("tp_size", "int", 1)
    assert options["--model-path"].required
    assert (options["--cuda-graph-bs"].deprecated, options["--cuda-graph-bs"].instead) == (
        True,
        "--cuda-graph-bs-decode",
    )


@pytest.mark.parametrize("name", RAISES)
def test_a_raise_of_the_pools_is_met_at_its_line(talk: Conversation, name: str) -> None:
    command, exception, line, message = RAISES[name]

    outcome = talk.check(f"--model-path {command}")

    assert outcome.verdict == "fail" and outcome.error is not None
    assert (outcome.error.exception, outcome.error.path, outcome.error.line) == (exception, CONFIGURATOR, line)
    assert outcome.error.message.startswith(message)
    assert outcome.error.explicit and outcome.error.statement.startswith("raise ")
    assert stage(outcome) in ("pools", "draft pools")


@pytest.mark.parametrize("version", ELSEWHERE)
def test_the_same_commands_on_other_engines(version: str) -> None:
    for talk in conversation(version):
        seen = []
        for command, *_ in RAISES.values():
            outcome = talk.check(f"--model-path {command}")
            raised = stage(outcome) in ("pools", "draft pools")
            seen.append("pass" if outcome.verdict == "pass" else "raise" if raised else "refused")

        assert tuple(seen) == ELSEWHERE[version]


def test_the_process_replaces_what_the_list_says(talk: Conversation) -> None:
    """An entry that no release needs any more has to go; this engine is the one that all were written for."""
    newer = {
        "sglang.srt.mem_cache.host_memory._cgroup_memory_headroom",
        "sglang.srt.managers.scheduler.prewarm_graph_pool_borrow",
        "sglang.srt.model_executor.model_runner.ModelRunner.prewarm_sampling",
    }

    assert set(standins.REGISTRY) - set(talk.ready.stand_ins) <= newer
    assert set(talk.ready.stand_ins) <= set(standins.REGISTRY)


def test_a_start_up_says_what_it_made(talk: Conversation) -> None:
    outcome = talk.check("--model-path llama-8b")

    assert outcome.verdict == "pass" and outcome.budget is not None
    target = outcome.pools[0]
    assert (target.token_to_kv_pool, target.allocator) == ("MHATokenToKVPool", "TokenToKVPoolAllocator")
    assert target.weight_bytes == 16_127_631_360
    assert target.bytes_per_token == pytest.approx(131_072, rel=1e-5)
    assert outcome.budget.left_bytes > 0
    assert outcome.resolved["attention_backend"] == "fa3" and outcome.asked["attention_backend"] is None
    assert [one.name for one in outcome.stages] == list(STAGES)
    assert stage(outcome) == ""


def test_free_memory_decides_the_tokens(talk: Conversation) -> None:
    def tokens(capacity: Capacity) -> int:
        return talk.check("--model-path llama-8b", capacity=capacity).pools[0].tokens

    usual, given = tokens(Capacity()), tokens(Capacity(free_bytes=100 << 30))
    assert given < usual
    assert tokens(Capacity(reserve_bytes=1 << 30)) == pytest.approx(usual, rel=0.02)
    assert tokens(Capacity(growth_bytes=5 << 30)) == pytest.approx(usual - (5 << 30) / 131_072, abs=2)


def test_online_quantisation_counts_the_bytes_it_will_have(talk: Conversation) -> None:
    plain = talk.check("--model-path llama-8b").pools[0]
    online = talk.check("--model-path llama-8b --quantization fp8").pools[0]

    assert online.loaded_weight_bytes == pytest.approx(plain.weight_bytes, rel=1e-4)
    assert 0.5 < online.weight_bytes / plain.weight_bytes < 0.62
    assert online.tokens > plain.tokens


def test_every_pipeline_rank_is_run(talk: Conversation) -> None:
    outcome = talk.check("--model-path llama-70b --tp 4 --pp-size 2")

    assert outcome.verdict == "pass"
    assert sorted(outcome.ranks) == [0, 1]
    assert outcome.pools[0].tokens == min(pool.tokens for pool in outcome.pools)


def test_host_memory_of_a_hierarchical_cache_is_that_of_the_machine(talk: Conversation) -> None:
    fits = talk.check("--model-path llama-8b --enable-hierarchical-cache --hicache-size 100")
    too_large = talk.check("--model-path llama-8b --enable-hierarchical-cache --hicache-size 50000")

    assert fits.verdict == "pass" and fits.pools[0].host_kv_bytes == pytest.approx(100e9, rel=0.01)
    assert too_large.verdict == "fail" and too_large.error is not None
    assert too_large.error.message.startswith("Not enough host memory available")
    assert stage(too_large) == "prefix cache"


def test_a_bare_assert_names_its_condition(talk: Conversation) -> None:
    outcome = talk.check("--model-path llama-8b --tp 3")

    assert outcome.verdict == "fail" and outcome.error is not None
    assert (outcome.error.exception, outcome.error.message) == ("AssertionError", "")
    assert outcome.error.condition == "self.total_num_heads % tp_size == 0"


def test_an_unknown_flag_is_the_parser_s(talk: Conversation) -> None:
    outcome = talk.check("--model-path llama-8b --no-such-flag")

    assert outcome.verdict == "fail" and outcome.error is not None
    assert outcome.error.message.endswith("unrecognized arguments: --no-such-flag")


def test_a_model_that_is_not_given_is_unknown(talk: Conversation) -> None:
    outcome = talk.check("--model-path nobody/has-this")

    assert outcome.verdict == "unknown"


def test_too_few_gpus_are_said(talk: Conversation) -> None:
    outcome = talk.check("--model-path llama-70b --tp 4", gpus=2)

    assert (outcome.verdict, outcome.gpus_needed) == ("unknown", 4)


def test_one_process_can_be_another_device_of_its_group(talk: Conversation) -> None:
    outcome = talk.check("--model-path llama-8b", hardware=profiles().find("b200").device)

    assert outcome.verdict == "pass"
    assert outcome.resolved["attention_backend"] == "trtllm_mha"


def test_checks_of_one_command_agree(talk: Conversation) -> None:
    first = talk.check("--model-path gpt-oss" + UNIFIED)
    second = talk.check("--model-path gpt-oss" + UNIFIED)

    assert first.pools == second.pools and first.budget == second.budget


def test_a_forked_check_and_a_fresh_process_agree(talk: Conversation) -> None:
    """A sample; `bench/differential.py` compares as many as it is told to."""
    engine = installed("0.5.18")
    assert engine is not None
    device = profiles().find("b200").device
    saving = tuple(entry.target for entry in standins.REGISTRY.values() if entry.kind == "cost")
    line = "--model-path deepseek-v3 --tp 8 --page-size 64"

    with started(engine, device, warmup=(Request(("--no-such-flag",), device),), without=saving) as fresh:
        alone = fresh.check(line)

    assert essence(talk.check(line, hardware=device)) == essence(alone)
