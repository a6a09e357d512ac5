"""Let torch, psutil and the machine's programs answer as on the simulated machine."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import types
from typing import Any

from app.check.protocol import Capacity, Hardware
from app.check.worker import packages
from app.check.worker.standins import replace

WARP = {"nvidia": 32, "amd": 64, "cpu": 1}


class Machine:
    """The state that the probes read. One process can change device, count and use.

    `used_bytes` is what stands on each GPU so far. All probes of one process read one machine.
    """

    def __init__(self, hardware: Hardware, gpus: int) -> None:
        self.hardware = hardware
        self.gpus = gpus
        self.used_bytes = hardware.used_bytes

    def become(self, hardware: Hardware, gpus: int, capacity: Capacity) -> None:
        """Be another machine of the same group, with what the asker knows of its memory."""
        self.hardware, self.gpus = hardware, gpus
        free = capacity.free_bytes
        used = hardware.used_bytes if free is None else max(hardware.total_bytes - free, 0)
        self.used_bytes = used + capacity.reserve_bytes

    @property
    def free_bytes(self) -> int:
        """Return what is free on a GPU."""
        return max(self.hardware.total_bytes - self.used_bytes, 0)

    def properties(self) -> types.SimpleNamespace:
        """Return what `torch.cuda.get_device_properties` would."""
        device = self.hardware
        return types.SimpleNamespace(
            name=device.device_name,
            major=device.capability[0],
            minor=device.capability[1],
            total_memory=device.total_bytes,
            multi_processor_count=device.multiprocessors,
            gcnArchName=device.arch,
            warp_size=WARP[device.vendor],
            shared_memory_per_block=49152,
            shared_memory_per_block_optin=device.shared_memory_bytes,
            shared_memory_per_multiprocessor=device.shared_memory_bytes + 1024,
            max_threads_per_multi_processor=2048,
            regs_per_multiprocessor=65536,
            L2_cache_size=device.l2_bytes,
            is_integrated=False,
            is_multi_gpu_board=False,
            uuid="00000000-0000-0000-0000-000000000000",
        )

    def triton_target(self) -> types.SimpleNamespace:
        """Return what triton's active driver would name as its target."""
        device = self.hardware
        if device.vendor == "amd":
            return types.SimpleNamespace(backend="hip", warp_size=64, arch=device.arch.split(":")[0])
        return types.SimpleNamespace(
            backend="cuda", warp_size=32, arch=device.capability[0] * 10 + device.capability[1]
        )


class Stream:
    """A stream or event: orders nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.cuda_stream = 0
        self.device = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _always(None)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc: object) -> None:
        return None


class Event(Stream):
    """An event: has always happened, took no time."""

    def query(self) -> bool:
        """Say that it has happened."""
        return True

    def elapsed_time(self, other: object) -> float:
        """Return no time."""
        return 0.0


class Runtime:
    """The CUDA runtime's calls that start-up makes on host memory; all succeed."""

    cudaHostRegister = staticmethod(lambda *args: 0)  # noqa: N815 - CUDA's name
    cudaHostUnregister = staticmethod(lambda *args: 0)  # noqa: N815
    cudaGetErrorString = staticmethod(lambda error: "")  # noqa: N815


def _always(value: Any) -> Any:
    return lambda *args, **kwargs: value


def simulate(torch: Any, hardware: Hardware, gpus: int) -> Machine:
    """Make torch, psutil and subprocess answer as on `gpus` such devices. Call before SGLang is imported."""
    machine = Machine(hardware, gpus)
    if hardware.vendor != "cpu":
        _simulate_torch(torch, machine)
    _simulate_host(machine)
    _simulate_programs(machine)
    packages.give("deep_gemm.get_num_sms", lambda: machine.hardware.multiprocessors)
    packages.give("triton.runtime.driver.active.get_current_target", machine.triton_target)
    return machine


def _simulate_torch(torch: Any, machine: Machine) -> None:
    answers: dict[str, Any] = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "device_count": lambda: machine.gpus,
        "get_device_capability": lambda device=None: machine.hardware.capability,
        "get_device_name": lambda device=None: machine.hardware.device_name,
        "get_device_properties": lambda device=None: machine.properties(),
        "mem_get_info": lambda device=None: (machine.free_bytes, machine.hardware.total_bytes),
        "current_device": _current_device(machine),
        "can_device_access_peer": lambda a, b: machine.hardware.peer_access,
        "get_arch_list": lambda: ["sm_80", "sm_90", "sm_100", "sm_120"],
        "is_bf16_supported": _always(True),
        "current_stream": lambda *args, **kwargs: Stream(),
        "default_stream": lambda *args, **kwargs: Stream(),
        "stream": lambda stream=None: Stream(),
        "cudart": Runtime,
        "Stream": Stream,
        "Event": Event,
        "set_device": _set_device(machine),
        "memory_stats": lambda *args, **kwargs: {},
    }
    for name in ("memory_allocated", "memory_reserved", "max_memory_allocated"):
        answers[name] = _always(0)
    for name in (
        "init",
        "_lazy_init",
        "empty_cache",
        "synchronize",
        "ipc_collect",
        "set_stream",
        "reset_peak_memory_stats",
        "manual_seed",
        "manual_seed_all",
    ):
        answers[name] = _always(None)
    for name, answer in answers.items():  # one object per name: dynamo's rules key on identity
        replace(torch.cuda, name, answer, f"torch.cuda.{name}")
    real_module = torch.get_device_module

    def get_device_module(device: Any = None) -> Any:
        return torch.cuda if device is None or torch.device(device).type == "cuda" else real_module(device)

    replace(torch, "get_device_module", get_device_module, "torch.get_device_module")
    replace(torch.version, "cuda", machine.hardware.cuda or None, "torch.version.cuda")
    replace(torch.version, "hip", machine.hardware.hip or None, "torch.version.hip")


def _current_device(machine: Machine) -> Any:
    return lambda: getattr(machine, "current", 0)


def _set_device(machine: Machine) -> Any:
    def set_device(device: Any) -> None:
        index = device if isinstance(device, int) else getattr(device, "index", None)
        machine.current = index or 0  # type: ignore[attr-defined]

    return set_device


def _simulate_host(machine: Machine) -> None:
    import psutil  # type: ignore[import-untyped]

    real = psutil.virtual_memory

    def virtual_memory() -> Any:
        total = machine.hardware.host_bytes
        free = total * 9 // 10
        return real()._replace(total=total, available=free, free=free, used=total - free, percent=10.0)

    replace(psutil, "virtual_memory", virtual_memory, "psutil.virtual_memory")


def answer(machine: Machine, command: str) -> str | None:
    """Return what a program would print on the simulated machine, or None for a program that it lacks."""
    words = command.split()
    program = os.path.basename(words[0]) if words else ""
    device = machine.hardware
    if program == "nvidia-smi" and device.vendor == "nvidia":
        rows = {
            "memory.total": str(device.smi_mib),
            "driver_version": device.driver,
            "compute_cap": f"{device.capability[0]}.{device.capability[1]}",
        }
        return next((f"{value}\n" * machine.gpus for query, value in rows.items() if query in command), None)
    if program == "rocminfo" and device.vendor == "amd":
        return f"{device.smi_mib * 1024}(0x0)\n" * machine.gpus
    if program == "lscpu":
        half = max(device.cores // 2, 1)
        return "# CPU,Core,Socket,Node\n" + "".join(f"{i},{i},{i // half},{i // half}\n" for i in range(device.cores))
    return None


def _simulate_programs(machine: Machine) -> None:
    def reply(command: Any, text: Any) -> Any:
        line = command if isinstance(command, str) else " ".join(map(str, command))
        said = answer(machine, line)
        if said is None:
            raise FileNotFoundError(2, "No such file or directory", line.split(" ")[0][:200])
        return said if text else said.encode()

    def run(cmd: Any, *args: Any, **options: Any) -> Any:
        said = reply(cmd, options.get("text") or options.get("universal_newlines") or options.get("encoding"))
        return subprocess.CompletedProcess(cmd, 0, said, said[:0])

    def check_output(cmd: Any, *args: Any, **options: Any) -> Any:
        return reply(cmd, options.get("text") or options.get("universal_newlines") or options.get("encoding"))

    def refuse(cmd: Any, *args: Any, **options: Any) -> Any:
        raise FileNotFoundError(2, "No such file or directory", str(cmd)[:200])

    def refuse_object(self: Any, cmd: Any, *args: Any, **options: Any) -> Any:
        refuse(cmd)

    replace(subprocess, "run", run, "subprocess.run")
    replace(subprocess, "check_output", check_output, "subprocess.check_output")
    for name in ("call", "check_call"):
        replace(subprocess, name, refuse, f"subprocess.{name}")
    replace(subprocess.Popen, "__init__", refuse_object, "subprocess.Popen.__init__")
    for name in ("system", "popen"):
        replace(os, name, refuse, f"os.{name}")


def forget_answers(modules: tuple[str, ...] = ("sglang",), *, keep: tuple[str, ...] = ()) -> int:
    """Clear what SGLang remembers of an earlier device, but for the functions named `keep`; return how many."""
    found = [wrapper for wrapper in _cached_functions(modules) if getattr(wrapper, "__name__", "") not in keep]
    for wrapper in found:
        wrapper.cache_clear()
    return len(found)


def _cached_functions(modules: tuple[str, ...]) -> list[Any]:
    kind = functools._lru_cache_wrapper
    found: dict[int, Any] = {}
    for name, module in list(sys.modules.items()):
        if module is not None and name.partition(".")[0] in modules:
            found.update((id(value), value) for value in list(vars(module).values()) if isinstance(value, kind))
    return list(found.values())
