"""Read off a started scheduler what it made: pools, tokens, requests, and bytes by kind."""

from __future__ import annotations

from typing import Any

import torch

from app.check.protocol import Pools
from app.check.worker.paper import storage_bytes
from app.check.worker.weights import Weights

DEPTH_LIMIT = 6
ITEMS_LIMIT = 4096
_STATE = ("mamba", "conv_state", "temporal_state", "ssm_state")


def held_tensors(thing: Any, depth: int = DEPTH_LIMIT, seen: set[int] | None = None) -> list[torch.Tensor]:
    """Return the tensors that an object of SGLang's memory code holds, through its own parts only."""
    seen = set() if seen is None else seen
    if id(thing) in seen or depth < 0:
        return []
    seen.add(id(thing))
    if isinstance(thing, torch.Tensor):
        return [thing]
    if isinstance(thing, dict):
        parts: list[Any] = list(thing.values())[:ITEMS_LIMIT]
    elif isinstance(thing, (list, tuple)):
        parts = list(thing)[:ITEMS_LIMIT]
    elif "mem_cache" in type(thing).__module__:
        parts = _parts(thing)
    else:
        return []
    return [tensor for part in parts for tensor in held_tensors(part, depth - 1, seen)]


def _parts(thing: Any) -> list[Any]:
    parts = list(getattr(thing, "__dict__", {}).values())
    for cls in type(thing).__mro__:
        slots = vars(cls).get("__slots__", ())
        parts += [getattr(thing, name, None) for name in ([slots] if isinstance(slots, str) else slots)]
    return parts


def _state_pool(runner: Any) -> Any:
    """Return the pool of recurrent state (Mamba and its kin), wherever this release keeps it."""
    for holder in (runner.req_to_token_pool, runner.token_to_kv_pool):
        for name in ("mamba_pool", "mamba_state_pool"):
            if (found := getattr(holder, name, None)) is not None:
                return found
    return None


def _number(value: Any) -> int | None:
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def describe(
    role: str, runner: Any, weights: Weights, counted: set[int], *, host_pool: Any = None, rank: int = 0
) -> Pools:
    """Return the memory of one worker. `counted` carries the storages already counted for another worker."""
    state_pool = _state_pool(runner)
    state = storage_bytes(_on_device(held_tensors(state_pool)), counted) if state_pool is not None else 0
    kv = storage_bytes(_on_device(held_tensors(runner.token_to_kv_pool)), counted)
    requests = storage_bytes(_on_device(held_tensors(runner.req_to_token_pool)), counted)
    tokens = int(runner.max_total_num_tokens)
    return Pools(
        role="target" if role == "target" else "draft",
        model=type(runner.model).__name__,
        token_to_kv_pool=type(runner.token_to_kv_pool).__name__,
        request_pool=type(runner.req_to_token_pool).__name__,
        allocator=type(runner.token_to_kv_pool_allocator).__name__,
        tokens=tokens,
        requests=int(runner.max_running_requests),
        weight_bytes=weights.resident,
        loaded_weight_bytes=weights.loaded,
        kv_bytes=kv,
        state_bytes=state,
        request_bytes=requests,
        bytes_per_token=round(kv / tokens, 3) if tokens and kv else None,
        swa_tokens=_number(getattr(runner, "swa_max_total_num_tokens", None)),
        state_slots=_number(getattr(state_pool, "size", None)),
        kv_dtype=str(getattr(runner, "kv_cache_dtype", "")).removeprefix("torch."),
        host_kv_bytes=_host_bytes(host_pool),
        rank=rank,
    )


def _on_device(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    return [tensor for tensor in tensors if tensor.device.type == "meta"]


def _host_bytes(tree_cache: Any) -> int:
    """Return the bytes of the host pools behind a hierarchical cache."""
    if tree_cache is None:
        return 0
    pools: list[Any] = []
    for holder in (tree_cache, getattr(tree_cache, "cache_controller", None)):
        for name in ("token_to_kv_pool_host", "full_kv_pool_host", "mem_pool_host", "host_kv_pool", "mamba_pool_host"):
            if (pool := getattr(holder, name, None)) is not None:
                pools.append(pool)
    total, seen = 0, set()
    for pool in pools:
        for part in getattr(pool, "entries", None) or [pool]:
            host = getattr(part, "host_pool", part)
            size, per_token = _number(getattr(host, "size", None)), _number(getattr(host, "size_per_token", None))
            if id(host) not in seen and size and per_token:
                seen.add(id(host))
                total += size * per_token
    return total
