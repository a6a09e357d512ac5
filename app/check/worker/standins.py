"""The one list of what a check replaces, with a reason each.

SGLang's own code runs; only the devices it asks and the packages that a GPU machine has are replaced. Nothing
is replaced but through `replace` or the package finder, and both refuse a name that is not listed here, so
the list cannot fall behind the code. `docs/engine.md` prints it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["device", "placement", "collective", "program", "loading", "serving", "process", "cost", "observer"]


@dataclass(frozen=True, slots=True)
class StandIn:
    """One replaced name. `target` is dotted; `reason` says why it cannot be the real one here."""

    target: str
    kind: Kind
    reason: str


@dataclass(frozen=True, slots=True)
class Package:
    """One distribution that is announced as installed and served as blank modules.

    Shape: `modules` are its top-level modules as far as SGLang imports them; `version` is "" where the release's own
    Requires-Dist gives it. An `optional` one is no dependency of SGLang: a request may say that it is absent.
    """

    distribution: str
    modules: tuple[str, ...]
    reason: str
    version: str = ""
    optional: bool = False


def _table(kind: Kind, prefix: str, names: str, reason: str) -> list[StandIn]:
    """Return one entry per name of `names`, all under `prefix`, for one reason."""
    return [StandIn(prefix + name, kind, reason) for name in names.split()]


_STAND_INS: list[StandIn] = [
    # What torch says of the accelerator.
    *_table(
        "device",
        "torch.cuda.",
        "is_available is_initialized device_count current_device get_device_capability get_device_name "
        "get_device_properties get_arch_list is_bf16_supported can_device_access_peer",
        "There is no GPU; the hardware profile answers.",
    ),
    StandIn(
        "torch.cuda.mem_get_info",
        "device",
        "Free memory is the profile's total less what the run has placed on the device so far.",
    ),
    *_table(
        "device",
        "torch.cuda.",
        "memory_allocated memory_reserved max_memory_allocated memory_stats reset_peak_memory_stats empty_cache "
        "synchronize ipc_collect",
        "The caching allocator of a device that is not there: nothing cached, nothing to wait for.",
    ),
    *_table(
        "device",
        "torch.cuda.",
        "init _lazy_init set_device manual_seed manual_seed_all cudart",
        "Would initialise the CUDA driver.",
    ),
    *_table(
        "device",
        "torch.cuda.",
        "Stream Event stream current_stream default_stream set_stream",
        "Streams and events order kernels, and no kernel runs.",
    ),
    *_table("device", "torch.version.", "cuda hip", "SGLang reads here, once at import, which vendor's build this is."),
    StandIn("torch.get_device_module", "device", "The CPU build has no module for an accelerator name."),
    StandIn("psutil.virtual_memory", "device", "Host memory is the simulated machine's, not this one's."),
    StandIn(
        "sglang.srt.mem_cache.host_memory._cgroup_memory_headroom",
        "device",
        "The control group of a check is this machine's; the simulated one sets no limit below its memory.",
    ),
    # Where tensors live.
    StandIn(
        "torch.overrides.TorchFunctionMode",
        "placement",
        "A tensor placed on the accelerator, or a host buffer too large for here, becomes a shape without storage "
        "(torch's meta device); a value read back from one is zeros, and is remembered as made up.",
    ),
    *_table(
        "placement",
        "sglang.srt.mem_cache.*.",
        "alloc_mmap alloc_shm",
        "Host pools of hundreds of gigabytes are kept as shapes; SGLang's own test of host memory still runs.",
    ),
    # Collectives.
    *_table(
        "collective",
        "torch.distributed.",
        "init_process_group new_group",
        "torch's own fake process group: real group sizes and ranks in one process, no sockets.",
    ),
    *_table(
        "collective",
        "torch.distributed.",
        "batch_isend_irecv monitored_barrier",
        "The fake process group lacks these two; with one process they have nothing to do.",
    ),
    StandIn(
        "sglang.*.broadcast_pyobj",
        "collective",
        "With one process there is nobody to receive from: every rank has what it would have sent.",
    ),
    StandIn(
        "sglang.srt.distributed.parallel_state.GroupCoordinator.__init__",
        "collective",
        "Runs as it is, but told not to build NCCL and custom all-reduce communicators.",
    ),
    # Programs that are asked.
    *_table(
        "program",
        "subprocess.",
        "run check_output call check_call Popen.__init__",
        "nvidia-smi, rocminfo and lscpu are answered from the profile; no program is started.",
    ),
    *_table("program", "os.", "system popen", "No program is started."),
    # Weights.
    StandIn(
        "sglang.srt.model_loader.loader.*.load_model",
        "loading",
        "Builds the real model class on the meta device instead of reading gigabytes; bytes are counted from its "
        "parameters and buffers, after the real post-processing where that runs without kernels.",
    ),
    *_table(
        "loading",
        "sglang.srt.managers.tp_worker.",
        "get_tokenizer get_processor get_tokenizer_from_processor",
        "Tokenizers are files that a check does not have, and they decide no pool.",
    ),
    *_table(
        "loading",
        "sglang.*.",
        "load_jit",
        "Would start a compiler to build a kernel or extension on first use.",
    ),
    # Parts of the scheduler that serve rather than start.
    *_table(
        "serving",
        "sglang.srt.managers.scheduler.Scheduler.",
        "init_ipc_channels init_tokenizer init_idle_sleeper init_soft_watchdog init_metrics_collector "
        "init_metrics_reporter init_kv_events_publisher maybe_init_rust_server init_profiler "
        "init_watch_dog_memory_saver_input_blocker",
        "Opens sockets, starts threads or exports metrics for serving; decides nothing about start-up.",
    ),
    StandIn(
        "sglang.srt.managers.scheduler.Scheduler.init_all_cuda_graphs",
        "serving",
        "Captures kernels on the device. No verdict covers it, and the answer says so.",
    ),
    *_table(
        "serving",
        "sglang.srt.",
        "managers.scheduler.prewarm_graph_pool_borrow model_executor.model_runner.ModelRunner.prewarm_sampling",
        "Runs kernels to warm them up.",
    ),
    # The process itself.
    StandIn(
        "sglang.srt.managers.scheduler.Scheduler",
        "process",
        "The class with the parts above left out. It carries an error past the entry point, which would log it and "
        "signal its parent, and ends once start-up has reached the end of the last stage.",
    ),
    StandIn(
        "sglang.srt.managers.scheduler.psutil",
        "process",
        "The entry point signals its parent process on failure; here the parent serves other checks.",
    ),
    StandIn(
        "sglang.srt.managers.scheduler.configure_scheduler_process",
        "process",
        "Renames the process, binds it to NUMA nodes and asks the kernel to end it with its parent.",
    ),
    StandIn(
        "sglang.srt.managers.scheduler.load_plugins",
        "process",
        "Imports code named by installed entry points; there are none.",
    ),
    # Cost, not outcome.
    StandIn(
        "sglang.srt.eplb.expert_location._compute_logical_to_all_physical_map",
        "cost",
        "With the trivial layout every layer has the same map: SGLang's own function computes it for one layer, and "
        "the others repeat it (0.5 to 1 s saved on large mixtures of experts).",
    ),
    StandIn(
        "sglang.srt.server_args.ServerArgs.add_cli_args",
        "cost",
        "SGLang's own parser, built by its own function once before the fork and handed to every check.",
    ),
    StandIn(
        "regex.fullmatch",
        "cost",
        "Compiles each pattern once: quantised checkpoints name more excluded layers than the library remembers, and "
        "every layer asks for all of them (1 to 2 s saved).",
    ),
    StandIn(
        "logging.basicConfig",
        "cost",
        "Would clear the level caches of thousands of loggers; a check prints nothing, and warnings are collected.",
    ),
    # Only look on.
    *_table(
        "observer",
        "sglang.srt.",
        "server_args.ServerArgs.from_cli_args mem_cache.kv_cache_builder.build_kv_cache "
        "model_executor.model_runner.ModelRunner.alloc_memory_pool",
        "Calls the real one and notes what went in, or that it came back.",
    ),
    *_table(
        "observer",
        "sglang.srt.managers.scheduler.Scheduler.",
        "init_tp_model_worker maybe_init_draft_worker init_memory_pools init_all_attention_backends",
        "Calls the real one and notes which stage has begun.",
    ),
    *_table(
        "observer",
        "huggingface_hub.errors.",
        "LocalEntryNotFoundError.__init__ HFValidationError.__init__",
        "Calls the real one and notes what it says: an error of SGLang's that repeats it is about files not here.",
    ),
    StandIn("os.environ", "observer", "Notes which variables are read while SGLang is imported, then is itself again."),
    StandIn("logging.record_factory", "observer", "Collects SGLang's own warnings (bounded)."),
]
REGISTRY: dict[str, StandIn] = {entry.target: entry for entry in _STAND_INS}

_KERNELS = "CUDA kernels: compiled, large, and never called here."
_SERVING = "Only serving uses it; start-up merely imports names from it."
_MEDIA = "Decodes pictures, sound or video of requests; start-up merely imports names from it."
_GRAMMAR = "Constrained decoding of requests; start-up merely imports names from it."
_COMPILER = "A compiler for kernels; none is compiled here."

PACKAGES: tuple[Package, ...] = (
    Package("triton", ("triton",), _COMPILER, version="3.7.1"),
    Package("tilelang", ("tilelang",), _COMPILER),
    Package("nvidia-cutlass-dsl", ("cutlass",), _COMPILER),
    Package("cuda-tile", (), _COMPILER),
    Package("numba", ("numba",), _COMPILER),
    Package("apache-tvm-ffi", ("tvm_ffi",), _COMPILER),
    Package("ninja", ("ninja",), _COMPILER),
    Package("sglang-kernel", ("sgl_kernel", "triton_kernels"), _KERNELS),
    Package("flashinfer-python", ("flashinfer",), _KERNELS),
    Package("flashinfer-cubin", (), _KERNELS, version="="),
    Package("flashinfer-jit-cache", (), _KERNELS, version="="),
    Package("sgl-deep-gemm", ("deep_gemm",), _KERNELS),
    Package("sgl-deep-ep", ("deep_ep",), _KERNELS),
    Package("sgl-flash-mla", ("flash_mla",), _KERNELS),
    Package("flash-attn-4", ("flash_attn",), _KERNELS),
    Package("quack-kernels", ("quack",), _KERNELS),
    Package("kernels", ("kernels",), _KERNELS),
    Package("tokenspeed-mla", ("tokenspeed_mla",), _KERNELS),
    Package("humming-kernels", ("humming",), _KERNELS),
    Package("nvshmem4py-cu13", ("nvshmem",), _KERNELS),
    Package("nvidia-cublas", (), "SGLang reads its version only.", version="13.1.0.3"),
    Package("cuda-python", ("cuda",), "Bindings to a driver that is not here."),
    Package("nvidia-ml-py", ("pynvml",), "Bindings to a driver that is not here."),
    Package("torch-memory-saver", ("torch_memory_saver",), "Hooks the allocator of a device that is not here."),
    Package("torchvision", ("torchvision",), _MEDIA, version="0.28.0"),
    Package("torchaudio", ("torchaudio",), _MEDIA),
    Package("torchcodec", ("torchcodec",), _MEDIA),
    Package("torchao", ("torchao",), "Quantises with kernels; start-up merely imports names from it."),
    Package("soundfile", ("soundfile",), _MEDIA),
    Package("av", ("av",), _MEDIA),
    Package("decord2", ("decord",), _MEDIA),
    Package("timm", ("timm",), _MEDIA),
    Package("scipy", ("scipy",), _MEDIA),
    Package("xgrammar", ("xgrammar",), _GRAMMAR),
    Package("llguidance", ("llguidance",), _GRAMMAR),
    Package("outlines", ("outlines", "outlines_core"), _GRAMMAR),
    Package("interegular", ("interegular",), _GRAMMAR),
    Package("ipython", ("IPython",), _SERVING),
    Package("openai-harmony", ("openai_harmony",), _SERVING),
    Package("smg-grpc-servicer", ("smg_grpc_servicer", "smg_grpc_proto"), _SERVING),
    Package("tiktoken", ("tiktoken",), _SERVING),
    Package("mistral-common", ("mistral_common",), _SERVING),
    Package("modelscope", ("modelscope",), _SERVING),
    Package("datasets", ("datasets",), _SERVING),
    Package("anthropic", ("anthropic",), _SERVING),
    Package("uvicorn", ("uvicorn",), _SERVING),
    Package("uvloop", ("uvloop",), _SERVING),
    Package("watchfiles", ("watchfiles",), _SERVING),
    Package("prometheus-client", ("prometheus_client",), _SERVING),
    Package("blobfile", ("blobfile",), _SERVING),
    Package("easydict", ("easydict",), _SERVING),
    Package("xxhash", ("xxhash",), _SERVING),
    Package("build", ("build",), _SERVING),
    Package("py-spy", (), _SERVING),
    Package("deepseek-recipe", ("deepseek_recipe",), _SERVING),
    Package("tml-renderers", ("tml_renderers",), _SERVING),
    Package(
        "mooncake-transfer-engine",
        ("mooncake",),
        "The default transfer engine of disaggregation; its engine object answers every call with success.",
        version="0.3.9",
        optional=True,
    ),
    Package("nixl", ("nixl",), "A transfer engine: needs the network of a real machine.", "0.9.0", optional=True),
    Package("mori", ("mori",), "A transfer engine for AMD: needs a real machine.", "1.0.0", optional=True),
    Package("bitsandbytes", ("bitsandbytes",), _KERNELS, "0.49.0", optional=True),
    Package("lmcache", ("lmcache",), "A cache server's client: needs a real machine.", "0.3.9", optional=True),
    Package("nvidia-modelopt", ("modelopt",), "Quantises with kernels, and none is run here.", "0.39.0", optional=True),
    Package("auto-round", ("auto_round",), "Quantises with kernels, and none is run here.", "0.13.1", optional=True),
    Package("vllm", ("vllm",), _KERNELS, "0.12.0", optional=True),
    Package("aiter", ("aiter",), "AMD kernels: part of every ROCm image of SGLang.", "0.1.9", optional=True),
    Package(
        "amdsmi", ("amdsmi",), "Bindings to AMD's driver: part of every ROCm image of SGLang.", "7.0", optional=True
    ),
)
BY_DISTRIBUTION: dict[str, Package] = {package.distribution: package for package in PACKAGES}
PRESENT: dict[str, tuple[str, ...]] = {
    "nvidia": ("mooncake-transfer-engine",),
    "amd": ("mooncake-transfer-engine", "aiter", "amdsmi"),
    "cpu": (),
}
"""Optional distributions that are announced unless a request says otherwise, by vendor."""

VALUES: dict[str, str] = {
    "triton.cdiv": "Plain arithmetic that start-up uses for sizes.",
    "triton.next_power_of_2": "Plain arithmetic that start-up uses for sizes.",
    "triton.jit": "Keeps the Python function that it decorates, so that its name and signature can be read.",
    "triton.autotune": "Keeps the Python function that it decorates.",
    "triton.heuristics": "Keeps the Python function that it decorates.",
    "triton.JITFunction": "SGLang tests kernels with isinstance.",
    "triton.runtime.jit.JITFunction": "SGLang tests kernels with isinstance.",
    "triton.runtime.driver.active.get_current_target": "Names the simulated architecture.",
    "deep_gemm.get_num_sms": "The profile's number of multiprocessors: sizes are derived from it.",
    "mooncake.engine.TransferEngine": "Start-up tests the return codes of its calls.",
    "tvm_ffi.libinfo.find_libtvm_ffi": "A path is expected.",
    "tvm_ffi.Object": "A class is derived from it with slots.",
    "pynvml.c_nvmlSystemConfComputeSettings_v1_t": "A ctypes structure is derived from it.",
}
"""Attributes of blank packages that must have a behaviour, and why."""


class UnlistedError(LookupError):
    """Something was to be replaced that the list does not name."""


_MISSING = object()
_installed: dict[str, Any] = {}
_left_out: set[str] = set()


def leave_out(targets: Iterable[str]) -> None:
    """Do without some stand-ins that only save time. Raises: UnlistedError: one of them is not of that kind."""
    for target in targets:
        if target not in REGISTRY or REGISTRY[target].kind != "cost":
            raise UnlistedError(f"{target} is no stand-in that only saves time")
        _left_out.add(target)


def replace(owner: Any, name: str, value: Any, target: str) -> Any:
    """Replace `owner.name` with `value` and return what was there before (None if there was nothing).

    Raises: UnlistedError: `target` is not in the registry.
    """
    if target not in REGISTRY:
        raise UnlistedError(f"{target} is replaced without an entry in the registry")
    before = vars(owner).get(name, getattr(owner, name, _MISSING)) if hasattr(owner, "__dict__") else _MISSING
    if target not in _left_out:
        _installed.setdefault(target, before)
        setattr(owner, name, value)
    return None if before is _MISSING else before


def note(target: str) -> None:
    """Say that the stand-in `target` is at work though no attribute was set. Raises: UnlistedError."""
    if target not in REGISTRY:
        raise UnlistedError(f"{target} stands in without an entry in the registry")
    _installed.setdefault(target, _MISSING)


def installed() -> frozenset[str]:
    """Return the targets that this process has replaced so far."""
    return frozenset(_installed)


def markdown(entries: Iterable[StandIn] = _STAND_INS, packages: Iterable[Package] = PACKAGES) -> str:
    """Return the tables of `docs/engine.md`."""
    lines = ["| replaced | kind | why |", "| --- | --- | --- |"]
    lines += [f"| `{entry.target}` | {entry.kind} | {entry.reason} |" for entry in entries]
    lines += ["", "| distribution | modules | why |", "| --- | --- | --- |"]
    for package in packages:
        modules = ", ".join(f"`{name}`" for name in package.modules) or "none"
        choice = " A request may say that it is absent." if package.optional else ""
        lines.append(f"| {package.distribution} | {modules} | {package.reason}{choice} |")
    lines += ["", "| attribute | why it has a behaviour |", "| --- | --- |"]
    lines += [f"| `{name}` | {why} |" for name, why in VALUES.items()]
    return "\n".join(lines) + "\n"
