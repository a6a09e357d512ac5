"""Questions and answers, with the pool at its seam."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from app.check import hardware
from app.check.catalogue import Catalogue, Model, catalogue
from app.check.model_config import Given, pasted
from app.check.pool import Engine, ParentStatus, SandboxPool
from app.check.protocol import Budget, Error, Lost, Outcome, Pools, Reason, Request, Stage
from app.check.service import CheckService, Question, RecordLink
from app.errors import BadInput, NotFound, Unavailable

COMMAND = "python -m sglang.launch_server --model-path Qwen/Qwen3-8B"
CONFIG = '{"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "auto_map": {"AutoConfig": "x.Y"}}'
STAGES = (Stage("arguments", "pass", 20.5), Stage("pools", "fail", 4.0), Stage("draft pools", "not reached"))
PASSED = Outcome("pass", "all of it", STAGES)
ERROR = Error("ValueError", "no", "sglang/srt/x.py", 7, "f", "C.f", "raise ValueError(", explicit=True, guards=("a",))
POOLS = Pools("target", "M", "MHATokenToKVPool", "R", "A", 1000, 10, 1, 2, 3, 4, 5, 6.0)
BUDGET = Budget(100, 90, 80, 10, 0.9, 1, 4096, 8192)


@dataclass
class FakePool:
    """Answers what it is told to, and remembers what it was asked."""

    answer: Outcome | Lost = PASSED
    asked: list[Request] = field(default_factory=list)

    async def check(
        self, engine: Engine, request: Request, on_stage: Callable[[Stage], None] | None = None, on_state: object = None
    ) -> Outcome | Lost:
        self.asked.append(request)
        if on_stage is not None:
            on_stage(STAGES[0])
        return self.answer

    def status(self) -> tuple[ParentStatus, ...]:
        return (ParentStatus("0.5.18", "sm90", "ready", 0, 1 << 20),)


@dataclass
class FakeEngines:
    versions: tuple[str, ...] = ("0.5.18", "0.5.23")

    def installed(self) -> tuple[Engine, ...]:
        return tuple(Engine(version, Path("/x/bin/python"), Path("/x", version)) for version in self.versions)

    def default(self) -> str:
        return "0.5.18"


def service(pool: FakePool | None = None, *, models: Catalogue | None = None, **parts: Any) -> CheckService:
    engines = parts.pop("engines", FakeEngines())
    return CheckService(
        cast("SandboxPool", pool or FakePool()), engines, models or catalogue(), hardware.profiles(), **parts
    )


def answered(pool: FakePool, question: Question | str = COMMAND, **parts: Any) -> dict[str, Any]:
    asked = Question(question) if isinstance(question, str) else question
    return asyncio.run(service(pool, **parts).check(asked))


def sent(question: Question | str, **parts: Any) -> Request:
    pool = FakePool()
    answered(pool, question, **parts)
    return pool.asked[0]


def test_an_answer_has_the_members_of_the_interface() -> None:
    body = answered(FakePool(Outcome("fail", "said so", STAGES, ERROR, {"page_size": 1}, warnings=("w",))))

    assert list(body)[:10] == [
        *("verdict", "engine", "hardware", "stages", "error", "resolved", "pools", "warnings", "fixes", "elapsed_ms")
    ]
    assert (body["verdict"], body["pools"], body["warnings"]) == ("fail", None, ["w"])
    assert body["stages"][0] == {"name": "arguments", "outcome": "pass", "ms": 20.5}
    assert body["error"]["exception"] == "ValueError"
    assert (body["error"]["path"], body["error"]["line"], body["error"]["function"]) == ("sglang/srt/x.py", 7, "C.f")


def test_pools_are_told_of_the_tightest_rank() -> None:
    pools = (POOLS, replace(POOLS, tokens=900, rank=1), replace(POOLS, role="draft", tokens=5))

    body = answered(FakePool(Outcome("pass", "", STAGES, pools=pools, budget=BUDGET)))

    told = body["pools"]
    assert (told["max_total_num_tokens"], told["rank"], told["max_running_requests"]) == (900, 1, 10)
    assert (told["token_to_kv_pool"], told["kv_cache_bytes"], told["weight_bytes"]) == ("MHATokenToKVPool", 3, 2)
    assert told["draft"]["tokens"] == 5


def test_the_record_is_found_by_its_place() -> None:
    seen = []

    def link(error: Error, version: str) -> RecordLink:
        seen.append((error.path, error.line, error.qualified, version))
        return RecordLink("ce5cbefa16d6fad4", "/errors/ce5cbefa16d6fad4", "Title")

    body = answered(FakePool(Outcome("fail", "", STAGES, ERROR)), link=link)

    assert body["error"]["record"] == {
        "id": "ce5cbefa16d6fad4", "url": "/errors/ce5cbefa16d6fad4", "title": "Title"
    }  # fmt: skip
    assert seen == [("sglang/srt/x.py", 7, "C.f", "0.5.18")]


@pytest.mark.parametrize("reason", ["memory", "died", "output", "protocol", "broken"])
def test_what_is_lost_is_never_a_refusal(reason: Reason) -> None:
    body = answered(FakePool(Lost(reason)))

    assert body["verdict"] == "unknown"
    assert body["reason"]
    assert body["error"] is None


def test_an_unknown_model_is_unknown_with_names_like_it() -> None:
    body = answered(FakePool(Outcome("fail", "", STAGES, ERROR)), "sglang serve Qwen/Qwen3-8")

    assert body["verdict"] == "unknown"
    assert "Qwen/Qwen3-8B" in body["reason"]
    assert body["error"] is None


def test_an_unknown_model_does_not_hide_what_the_parser_refuses() -> None:
    refused = replace(ERROR, exception="SystemExit", foreign="argparse")

    body = answered(FakePool(Outcome("fail", "", STAGES, refused)), "sglang serve no/such --bogus")

    assert (body["verdict"], body["error"]["exception"]) == ("fail", "SystemExit")


def test_an_unknown_draft_is_unknown_too() -> None:
    line = COMMAND + " --speculative-algorithm EAGLE --speculative-draft-model-path no/such"

    assert answered(FakePool(), line)["verdict"] == "unknown"


def test_a_known_model_is_sent_with_its_files() -> None:
    (model,) = sent(COMMAND).models

    assert model.name == "Qwen/Qwen3-8B"
    assert "Qwen3ForCausalLM" in model.files["config.json"]


@pytest.mark.parametrize("config", [CONFIG, {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]}])
def test_a_pasted_configuration_stands_for_the_model(config: str | dict[str, Any]) -> None:
    (model,) = sent(Question("sglang serve my/model", model_config=config)).models

    assert model.name == "my/model"
    assert "auto_map" not in model.files["config.json"]


def test_code_left_out_of_a_configuration_is_said() -> None:
    body = answered(FakePool(), Question("sglang serve my/model", model_config=CONFIG))

    assert any("auto_map" in line for line in body["assumptions"])


def test_a_configuration_can_be_fetched() -> None:
    async def fetch(name: str) -> Given:
        if name != "my/model":
            raise NotFound("no")
        return pasted(CONFIG)

    assert sent("sglang serve my/model", fetch=fetch).models[0].name == "my/model"
    assert answered(FakePool(), "sglang serve no/such", fetch=fetch)["verdict"] == "unknown"


@pytest.mark.parametrize(
    ("line", "gpus", "chosen"),
    [
        ("", 1, "what the command's parallel sizes need"),
        ("--tp 4", 4, "what the command's parallel sizes need"),
        ("--tp-size=2 --pp-size 2", 4, "what the command's parallel sizes need"),
        ("--tp 2 --dp 2", 4, "what the command's parallel sizes need"),
        ("--tp 8 --dp 8 --enable-dp-attention", 8, "what the command's parallel sizes need"),
        ("--tp 16 --nnodes 2 --node-rank 1", 8, "what the command's parallel sizes need"),
        ("--tp many", 1, "what the command's parallel sizes need"),
        ("--tp 999999999999", 1, "what the command's parallel sizes need"),
    ],
)
def test_the_number_of_gpus(line: str, gpus: int, chosen: str) -> None:
    pool = FakePool()

    body = answered(pool, f"{COMMAND} {line}")

    assert (pool.asked[0].gpus, body["hardware"]["gpus"], body["hardware"]["gpus_chosen"]) == (gpus, gpus, chosen)


def test_gpus_that_are_asked_for_or_made_visible() -> None:
    assert sent(Question(COMMAND, gpus=3)).gpus == 3
    assert sent(f"CUDA_VISIBLE_DEVICES=0,1 {COMMAND} --tp 4").gpus == 2
    with pytest.raises(BadInput):
        sent(Question(COMMAND, gpus=0))


@pytest.mark.parametrize(
    ("question", "version", "chosen"),
    [
        (Question(COMMAND), "0.5.18", "default"),
        (Question(COMMAND, engine="0.5.23"), "0.5.23", "asked"),
        (Question(COMMAND, engine="v0.5.23"), "0.5.23", "asked"),
        (Question(f"docker run lmsysorg/sglang:v0.5.23 {COMMAND}"), "0.5.23", "named in the command"),
        (Question(f"docker run lmsysorg/sglang:v0.1.0 {COMMAND}"), "0.5.18", "default"),
    ],
)
def test_the_release(question: Question, version: str, chosen: str) -> None:
    engine = answered(FakePool(), question)["engine"]

    assert (engine["version"], engine["chosen"]) == (version, chosen)


def test_what_cannot_be_chosen_is_named() -> None:
    with pytest.raises(BadInput) as engine:
        answered(FakePool(), Question(COMMAND, engine="9.9"))
    with pytest.raises(BadInput) as machine:
        answered(FakePool(), Question(COMMAND, hardware="toaster"))
    with pytest.raises(Unavailable):
        answered(FakePool(), COMMAND, engines=FakeEngines(()))

    assert engine.value.extra["known"] == ["0.5.18", "0.5.23"]
    assert "h100-80gb" in cast("list[str]", machine.value.extra["known"])


def test_capacity_is_assumed_and_said() -> None:
    pool = FakePool()

    body = answered(pool, Question(f"{COMMAND} --tp 2", free_bytes=1 << 30))

    assert pool.asked[0].capacity.free_bytes == 1 << 30
    assert any("1.00 GiB, as given" in line for line in body["assumptions"])


def test_notes_of_the_reader_are_warnings() -> None:
    assert any("typographic" in line for line in answered(FakePool(), COMMAND + " –tp 2")["warnings"])


@pytest.mark.parametrize("packages", [{"../x": "1"}, {"x": "1 2"}, {f"p{i}": "" for i in range(99)}])
def test_packages_are_names_and_versions(packages: dict[str, str]) -> None:
    with pytest.raises(BadInput):
        sent(Question(COMMAND, packages=packages))


def test_equal_questions_are_run_once() -> None:
    pool = FakePool()
    made = service(pool)

    async def ask() -> list[dict[str, Any]]:
        first = await made.check(Question(COMMAND))
        return [
            first,
            await made.check(Question("sglang serve Qwen/Qwen3-8B")),
            await made.check(Question(COMMAND + " ")),
        ]

    answers = asyncio.run(ask())

    assert len(pool.asked) == 1
    assert [answer["cached"] for answer in answers] == [False, True, True]


def test_other_questions_are_run_again() -> None:
    pool = FakePool()
    made = service(pool)

    async def ask() -> None:
        for question in (
            Question(COMMAND), Question(COMMAND, engine="0.5.23"), Question(COMMAND, hardware="h200"),
            Question(COMMAND, gpus=2), Question(f"SGLANG_X=1 {COMMAND}"),
        ):  # fmt: skip
            await made.check(question)

    asyncio.run(ask())

    assert len(pool.asked) == 5


def test_stand_in_failures_are_counted_without_trust_in_their_names() -> None:
    made = service(FakePool(Outcome("unknown", "", STAGES, stand_in_failure="a\nb")))

    asyncio.run(made.check(Question(COMMAND)))

    assert made.stand_in_failures == {"other": 1}


def test_lists_name_what_can_be_asked_for() -> None:
    made = service()

    engines, machines, models = made.engines_body(), made.hardware_body(), made.models_body()

    assert [(e["version"], e["default"]) for e in engines["items"]] == [("0.5.18", True), ("0.5.23", False)]
    assert engines["items"][0]["processes"] == [{"group": "sm90", "state": "ready", "memory_bytes": 1 << 20}]
    assert "h100-80gb" in [h["name"] for h in machines["items"]]
    assert len(models["items"]) == len(catalogue())


def test_a_catalogue_of_ones_own() -> None:
    config: dict[str, Any] = {"model_type": "x", "architectures": ["X"]}
    own = Catalogue([Model("a/b", "target", "s", "p", config)])

    assert sent("sglang serve a/b", models=own).models[0].name == "a/b"


@pytest.mark.parametrize(
    ("message", "verdict"),
    [("Config file not found: /my/own.yaml", "unknown"), ("page_size of /my/own.yaml must be 1", "fail")],
)
def test_a_file_that_only_the_asker_has_decides_nothing(message: str, verdict: str) -> None:
    pool = FakePool(Outcome("fail", "", STAGES, replace(ERROR, message=message)))

    assert answered(pool, COMMAND + " --config /my/own.yaml")["verdict"] == verdict


@pytest.mark.parametrize(
    ("model", "error", "verdict"),
    [
        ("openbmb/MiniCPM3-4B", replace(ERROR, exception="AttributeError", explicit=False), "unknown"),
        ("openbmb/MiniCPM3-4B", ERROR, "fail"),
        ("Qwen/Qwen3-8B", replace(ERROR, exception="AttributeError", explicit=False), "fail"),
    ],
)
def test_a_field_that_an_incomplete_configuration_lacks_decides_nothing(model: str, error: Error, verdict: str) -> None:
    body = answered(FakePool(Outcome("fail", "broke", STAGES, error)), f"sglang serve {model}")

    assert body["verdict"] == verdict
    assert ("incomplete" in (body["reason"] or "")) is (verdict == "unknown")


def test_pools_larger_than_the_gpu_are_no_start() -> None:
    target = replace(POOLS, weight_bytes=60, kv_bytes=50)

    body = answered(FakePool(Outcome("pass", "all", STAGES, pools=(target,), budget=BUDGET)))

    assert body["verdict"] == "unknown"
    assert "runs out of memory" in body["reason"]


def test_a_system_folder_that_is_not_here_decides_nothing() -> None:
    error = replace(ERROR, message="InfiniBand path not found: /sys/class/infiniband")

    body = answered(FakePool(Outcome("fail", "said so", STAGES, error)))

    assert body["verdict"] == "unknown"
    assert "/sys/class/infiniband is not there" in body["reason"]


def test_a_release_that_the_text_names_and_is_not_here_is_said() -> None:
    body = answered(
        FakePool(), "docker run lmsysorg/sglang:v0.5.20 python -m sglang.launch_server --model Qwen/Qwen3-8B"
    )

    assert body["engine"]["version"] == "0.5.18"
    assert any("0.5.20, which is not installed" in text for text in body["warnings"])
