"""Run code written for an accelerator without one.

Tensors that would live on the accelerator become shapes without storage (torch's meta device) and
collectives run in torch's single-process fake group. A value read back from a shape is zeros: it is made up,
and where that happened is remembered, so that no verdict rests on it.
"""

from __future__ import annotations

import sys
import types
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from app.check.worker.standins import note, replace

ACCELERATORS = ("cuda", "hip")
HOST_LIMIT = 1 << 28
"""Elements above which a host buffer is kept as a shape."""
LARGE = 1 << 20
"""Elements above which made-up zeros take no memory (and cannot be written to)."""

_READS: frozenset[Any] = frozenset(
    getattr(torch.Tensor, name)
    for name in ("cpu", "numpy", "tolist", "item", "__bool__", "__int__", "__index__", "__float__")
)
_FACTORIES: frozenset[Any] = frozenset((torch.empty, torch.zeros, torch.ones, torch.full))
_WATCHED: frozenset[Any] = (
    _READS | _FACTORIES | frozenset((torch.Tensor.to, torch.Tensor.cuda, torch.Tensor.pin_memory))
)
made_up: set[types.CodeType] = set()
"""The code of functions that read a value back from a shape, in this process."""


def on_paper(device: Any) -> Any:
    """Return the meta device for any accelerator, and any other device as it is."""
    if device is None:
        return None
    if isinstance(device, int):
        return torch.device("meta")
    if isinstance(device, str):
        return torch.device("meta") if device.split(":")[0] in ACCELERATORS else device
    if isinstance(device, torch.device) and device.type in ACCELERATORS:
        return torch.device("meta")
    return device


def _zeros(shape: torch.Tensor) -> torch.Tensor:
    """Return zeros on the host for a tensor without storage; a large one repeats a single element."""
    if shape.numel() > LARGE:
        return torch.zeros((), dtype=shape.dtype).expand(shape.shape)
    return torch.zeros(shape.shape, dtype=shape.dtype)


def _on_host(device: Any) -> bool:
    return device is None or getattr(device, "type", device) == "cpu"


def _elements(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Return how many elements a factory function was asked for (0 if that cannot be seen)."""
    size = kwargs.get("size", args[0] if args and isinstance(args[0], (tuple, list)) else args)
    count = 1
    for dimension in size if isinstance(size, (tuple, list)) else (size,):
        if not isinstance(dimension, int):
            return 0
        count *= dimension
    return count


def _remember_reader() -> None:
    """Note the function that is reading a made-up value: the first caller outside torch and this module."""
    frame = sys._getframe(2)
    while frame is not None and (
        frame.f_code.co_filename == __file__ or "/torch/" in frame.f_code.co_filename.replace("\\", "/")
    ):
        frame = frame.f_back  # type: ignore[assignment]
    if frame is not None:
        made_up.add(frame.f_code)


class OnPaper(TorchFunctionMode):
    """Send what is placed on the accelerator to the meta device; host tensors stay real."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not kwargs:
            kwargs = {}
            if func not in _WATCHED:
                return func(*args)
        elif "device" in kwargs or "pin_memory" in kwargs:
            kwargs = dict(kwargs)
            if "device" in kwargs:
                kwargs["device"] = on_paper(kwargs["device"])
            if kwargs.get("pin_memory"):
                kwargs["pin_memory"] = False
        if func in _FACTORIES:
            if _on_host(kwargs.get("device")) and _elements(args, kwargs) > HOST_LIMIT:
                kwargs["device"] = "meta"
        elif func is torch.Tensor.to:
            return self._to(func, args, kwargs)
        elif func is torch.Tensor.cuda:
            return args[0].to("meta")
        elif func is torch.Tensor.pin_memory:
            return args[0]
        elif func in _READS and args[0].device.type == "meta":
            _remember_reader()
            args = (_zeros(args[0]), *args[1:])
        return func(*args, **kwargs)

    @staticmethod
    def _to(func: Any, args: Any, kwargs: Any) -> Any:
        args = (args[0], *[on_paper(arg) if isinstance(arg, (str, torch.device)) else arg for arg in args[1:]])
        if isinstance(args[0], torch.Tensor) and args[0].device.type == "meta":
            wanted = kwargs.get("device", next((arg for arg in args[1:] if isinstance(arg, (str, torch.device))), None))
            if wanted is not None and torch.device(wanted).type == "cpu":
                _remember_reader()
                return _zeros(args[0])
        return func(*args, **kwargs)


def fake_collectives() -> None:
    """Make every process group torch's fake one: any world size in one process, no sockets."""
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    real_init, real_new = dist.init_process_group, dist.new_group

    def init_process_group(
        backend: Any = None, init_method: Any = None, world_size: int = -1, rank: int = -1, **options: Any
    ) -> None:
        real_init(backend="fake", store=FakeStore(), world_size=world_size, rank=rank)

    def new_group(ranks: Any = None, timeout: Any = None, backend: Any = None, **options: Any) -> Any:
        return real_new(ranks=ranks, backend="fake")

    replacements: dict[str, Any] = {
        "init_process_group": init_process_group,
        "new_group": new_group,
        "batch_isend_irecv": lambda operations: [],
        "monitored_barrier": lambda *args, **kwargs: None,
    }
    for name, value in replacements.items():
        replace(torch.distributed, name, value, f"torch.distributed.{name}")
    note("torch.overrides.TorchFunctionMode")


def storage_bytes(tensors: list[torch.Tensor], seen: set[int] | None = None) -> int:
    """Return the bytes of the storages behind `tensors`, each counted once; `seen` is carried on."""
    seen = set() if seen is None else seen
    total = 0
    for tensor in tensors:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in seen:
            seen.add(key)
            total += storage.nbytes()
    return total
