"""Build the model's real class on the meta device, and count the bytes that its weights will take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from app.check.worker import packages
from app.check.worker.standins import replace


@dataclass(slots=True)
class Weights:
    """What the loading of one model came to. Units: bytes per GPU.

    `loaded` is what its parameters and buffers take as created, `resident` after post-processing. `kept`
    names the quantisation methods whose post-processing could not run without kernels.
    """

    loaded: int
    resident: int
    kept: tuple[str, ...] = ()


def tensors(module: torch.nn.Module) -> Iterator[torch.Tensor]:
    """Yield the parameters and buffers of one module alone."""
    yield from (tensor for tensor in module._parameters.values() if tensor is not None)
    yield from (tensor for tensor in module._buffers.values() if tensor is not None)


def model_bytes(model: torch.nn.Module) -> int:
    """Return the bytes of all parameters and buffers, each tensor once."""
    seen: set[int] = set()
    total = 0
    for module in model.modules():
        for tensor in tensors(module):
            if id(tensor) not in seen:
                seen.add(id(tensor))
                total += tensor.numel() * tensor.element_size()
    return total


def _own_bytes(module: torch.nn.Module) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors(module))


def _shape(module: torch.nn.Module, method: Any) -> tuple[Any, ...]:
    """Return what decides how many bytes post-processing leaves: modules that agree here are processed once."""
    names = [
        (name, tuple(tensor.shape), tensor.dtype)
        for group in (module._parameters, module._buffers)
        for name, tensor in group.items()
        if tensor is not None
    ]
    return (type(module), type(method), *names)


class _Restored:
    """Give a module its state back at the end, whatever happened to it."""

    def __init__(self, module: torch.nn.Module, method: Any) -> None:
        self._states = [(vars(thing), dict(vars(thing))) for thing in (module, method)]
        self._groups = [(group, dict(group)) for group in (module._parameters, module._buffers, module._modules)]
        self._data = [(tensor, tensor.data) for tensor in tensors(module)]

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        for live, kept in (*self._groups, *self._states):
            live.clear()
            live.update(kept)
        for tensor, data in self._data:
            if tensor.data is not data:
                tensor.data = data


def online(model_config: Any) -> bool:
    """Tell whether weights are quantised while loading: the checkpoint says nothing of quantisation."""
    config = model_config.hf_config
    texts = (config, getattr(config, "text_config", None))
    names = ("quantization_config", "compression_config")
    return not any(getattr(text, name, None) for text in texts for name in names)


def processed_bytes(model: torch.nn.Module) -> tuple[int, tuple[str, ...]]:
    """Return by how many bytes the real post-processing of quantised weights changes the model, and what could not run.

    One module per shape is processed, on the meta device, and then given its state back.
    """
    changes: dict[tuple[Any, ...], int | None] = {}
    kept: set[str] = set()
    total = 0
    for module in model.modules():
        method = getattr(module, "quant_method", None)
        process = getattr(method, "process_weights_after_loading", None)
        if process is None or type(method).__name__.startswith("Unquantized"):
            continue
        shape = _shape(module, method)
        if shape not in changes:
            changes[shape] = _change(module, method, process)
        change = changes[shape]
        if change is None:
            kept.add(type(method).__name__)
        else:
            total += change
    return total, tuple(sorted(kept))


def _change(module: torch.nn.Module, method: Any, process: Callable[[Any], Any]) -> int | None:
    """Return the change in bytes of one module, or None if it cannot be told without kernels."""
    before = _own_bytes(module)
    with _Restored(module, method):
        try:
            with torch.device("meta"):
                process(module)
            if any(packages.is_blank(value) for value in vars(module).values()):
                return None
            after = _own_bytes(module)
            return after - before if after else None
        except Exception:  # a kernel is missing, or read a value that is not there
            return None


def absorbed_bytes(model: torch.nn.Module) -> int:
    """Return the bytes of the copies that multi-head latent attention makes of `kv_b_proj` after loading.

    SGLang splits that weight into two contiguous parts (`w_kc`, `w_vc`) and keeps it as well. A block-quantised
    weight is copied as bfloat16, one with a scale per channel as it is.
    """
    total = 0
    for module in model.modules():
        weight = getattr(getattr(module, "kv_b_proj", None), "weight", None)
        if hasattr(module, "w_kc") and isinstance(weight, torch.Tensor):
            whole = weight.element_size() > 1 or hasattr(module.kv_b_proj, "weight_scale_inv")
            total += weight.numel() * (2 if whole else 1)
    return total


def replace_loaders(loader: Any, loaded: Callable[[Any, Any, Weights], None]) -> None:
    """Make every loader class build its model on the meta device and call `loaded(model, config, weights)`."""

    def load_model(this: Any, *, model_config: Any, device_config: Any, **options: Any) -> Any:
        quantization = loader._get_quantization_config(model_config, this.load_config)
        with loader.set_default_torch_dtype(model_config.dtype), torch.device("meta"):
            model = loader._initialize_model(model_config, this.load_config, quantization)
        created = model_bytes(model)
        change, kept = processed_bytes(model) if quantization is not None and online(model_config) else (0, ())
        loaded(model, model_config, Weights(created, created + change + absorbed_bytes(model), kept))
        return model.eval()

    for cls in list(vars(loader).values()):
        if isinstance(cls, type) and issubclass(cls, loader.BaseModelLoader) and "load_model" in vars(cls):
            replace(cls, "load_model", load_model, "sglang.srt.model_loader.loader.*.load_model")
