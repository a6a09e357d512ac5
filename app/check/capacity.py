"""How far a number of tokens can be trusted: its range, and where it cannot be trusted at all.

SGLang's own code gives the tokens; what it is told of the machine (free memory, communication buffers) and what weights
gain after loading are assumptions. `docs/capacity.md` has the measurements behind every number here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from app.check.protocol import Budget, Pools, Request

GIB = 1 << 30
# How far logs of one kind of machine lie apart. Bytes per GPU.
FREE_MEASURED = round(0.10 * GIB)
FREE_RECKONED = round(0.40 * GIB)
FREE_GIVEN = round(0.03 * GIB)  # a log rounds to 0.01 GB, weights agree to 0.02
COMMUNICATION = round(0.50 * GIB)
DRAFT = round(0.30 * GIB)  # what a draft shares with its target is settled after loading
EXPERTS_GROW = round(0.15 * GIB)  # logs of mixtures of experts show 0.1 to 0.2 more after loading
POST_CAPTURE = "SGLANG_ENABLE_POST_CAPTURE_KV_SIZING"


@dataclass(frozen=True, slots=True)
class Range:
    """The tokens that the assumptions allow, and the bytes that each of them may be off, by name."""

    low: int
    high: int
    doubts: Mapping[str, int]


def token_range(
    target: Pools, budget: Budget, request: Request, *, free_is_measured: bool, reserve_given: bool = False
) -> Range | None:
    """Return the range of the tokens of `target`; None where the pool says too little.

    SGLang gives the pools `fraction x free - weights`: a doubt about free memory counts by the fraction, one
    about the weights in full.
    """
    spent = target.kv_bytes + target.state_bytes
    if spent <= 0 or target.tokens <= 0:
        return None
    fraction = budget.fraction if budget.fraction is not None else 1.0
    several = request.capacity.reserve_bytes > 0 or request.gpus > 1
    given = request.capacity.free_bytes is not None
    doubts = {"free memory": FREE_GIVEN if given else FREE_MEASURED if free_is_measured else FREE_RECKONED}
    if several and not reserve_given and not given:
        doubts["communication buffers"] = COMMUNICATION
    both = round(fraction * sum(doubts.values()))
    if len(request.models) > 1:
        doubts["weights that the draft shares"] = DRAFT
        both += DRAFT
    down = both
    if has_experts(request):
        doubts["growth of expert weights after loading"] = EXPERTS_GROW
        down += EXPERTS_GROW
    page = budget.page_size or 1
    low = max(0, target.tokens - round(target.tokens * down / spent) - page)
    high = target.tokens + round(target.tokens * both / spent) + page
    return Range(low, high, doubts)


def uncalibrated(target: Pools | None, request: Request) -> tuple[str, ...]:
    """Return why the tokens of a run have not been compared with any log, as sentences; empty where they have."""
    said = []
    methods = quantisations(request)
    if target is not None and target.token_to_kv_pool.startswith("DeepSeekV4"):
        said.append(
            "DeepSeek-V4 has not been compared with a log of this release; logs of older ones differ both ways."
        )
    if "mxfp4" in methods and request.hardware.vendor == "nvidia":
        more = "0.8 GB" if request.hardware.capability >= (10, 0) else "2 to 3 GB"
        said.append(
            f"MXFP4 weights are repacked after loading; logs of this kind of GPU show about {more} more than counted."
        )
    if methods & {"nvfp4", "modelopt_fp4", "modelopt_mixed"}:
        said.append("NVFP4 weights have not been compared with a log of this release.")
    if request.hardware.vendor == "amd":
        said.append("No start-up log of an AMD machine has been compared.")
    if _truthy(request.environment.get(POST_CAPTURE, "")):
        said.append(f"{POST_CAPTURE} sizes the pool after measuring CUDA graphs, which needs the real device.")
    return tuple(said)


def gives_no_number(request: Request) -> bool:
    """Say whether the tokens depend on a measurement that only the real device can make."""
    return _truthy(request.environment.get(POST_CAPTURE, ""))


def quantisations(request: Request) -> frozenset[str]:
    """Return the names of the weight formats that the models' files and the command name."""
    found = set()
    for model in request.models:
        config = _json(model.files.get("config.json"))
        text = config.get("text_config")
        for part in (config, text if isinstance(text, dict) else {}):
            method = part.get("quantization_config")
            if isinstance(method, dict):
                found |= {str(method.get(key, "")).lower() for key in ("quant_method", "quant_algo", "format")}
        quantization = _json(model.files.get("hf_quant_config.json")).get("quantization")
        if isinstance(quantization, dict):
            found.add(str(quantization.get("quant_algo", "")).lower())
    for at, word in enumerate(request.arguments[:-1]):
        if word == "--quantization":
            found.add(request.arguments[at + 1].lower())
    if "mixed_precision" in found:
        found.add("modelopt_mixed")
    return frozenset(found - {""})


def has_experts(request: Request) -> bool:
    """Say whether a model of the request is a mixture of experts."""
    names = {"num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts"}
    for model in request.models:
        config = _json(model.files.get("config.json"))
        text = config.get("text_config")
        for part in (config, text if isinstance(text, dict) else {}):
            counts = [part.get(name) for name in names]
            if any(isinstance(count, int) and count > 1 for count in counts):
                return True
    return False


def _json(text: str | None) -> dict[str, object]:
    try:
        value = json.loads(text) if text else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _truthy(value: str) -> bool:
    return value.strip().lower() in ("1", "true", "yes", "y", "on")
