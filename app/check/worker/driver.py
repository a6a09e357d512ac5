"""Run a release's own start-up for one launch command, as its rank 0 or another pipeline rank would.

SGLang's code decides everything: its argument parser and resolution, `check_server_args`, then its own scheduler
entry point with the model class, draft worker, pools, attention backends and prefix cache behind it. The
driver adapts by looking (is this method there? which parameters has it?), never by version.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import importlib
import inspect
import io
import json
import logging
import os
import random
import re
import resource
import sys
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from app.check.protocol import (
    STAGES,
    Budget,
    Hardware,
    Json,
    Outcome,
    Pools,
    Request,
    Stage,
    StageName,
    StageOutcome,
)
from app.check.worker import accelerator, capacity, failures, packages, standins, weights
from app.check.worker.standins import replace

ENVIRONMENT = {
    "TORCH_COMPILE_DISABLE": "1",  # triton is blank, so no inductor
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HOME": ".hf",  # relative: the folder of each check
    "HF_MODULES_CACHE": ".hf/modules",
    "SGLANG_HOST_IP": "127.0.0.1",  # else it opens sockets to find one
    "SGLANG_UNIFIED_RADIX_TREE_CORE_BACKEND": "python",  # the compiled one allocates on the device by itself
    "TOKENIZERS_PARALLELISM": "false",
    "OMP_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
}
"""What the engine's process adds to its otherwise empty environment."""

DECLARATIONS = ("namespace_of", "resolvable_fields")
"""What SGLang derives from the declarations of its arguments and remembers: no device takes part."""

WARNINGS_LIMIT = 40
WARNING_LENGTH = 600
VALUE_LIMIT = 2000
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_LATE: tuple[StageName, ...] = ("prefix cache",)
"""Stages that a verdict does not need: what a stand-in breaks there is said, and leaves the verdict."""


class Reached(BaseException):
    """Raised from inside the engine's own start-up: the end of the last stage."""


class Failed(BaseException):
    """Carries an error past the entry point, which would log it and signal its parent."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__()
        self.cause = cause


class Clock:
    """Says which stage is running and how long each took; tells `report` when one ends."""

    def __init__(self, report: Callable[[Stage], None]) -> None:
        self._report = report
        self._done: dict[StageName, float] = {}
        self.current: StageName = "arguments"
        self._since = time.perf_counter()

    def enter(self, name: StageName) -> None:
        """End the stage that runs, successfully, and begin another."""
        self._end("pass")
        self.current = name

    def _end(self, outcome: StageOutcome) -> None:
        now = time.perf_counter()
        spent = self._done.get(self.current, 0.0) + (now - self._since) * 1000
        self._done[self.current] = spent
        self._since = now
        self._report(Stage(self.current, outcome, round(spent, 2)))

    def finish(self, outcome: StageOutcome) -> tuple[Stage, ...]:
        """End the stage that runs and return them all, in the order of `STAGES`."""
        self._end(outcome)
        return tuple(
            Stage(name, outcome if name == self.current else "pass", round(self._done[name], 2))
            if name in self._done
            else Stage(name, "not reached")
            for name in STAGES
        )


@dataclasses.dataclass(slots=True)
class Run:
    """What one check has seen so far."""

    request: Request
    clock: Clock
    pipeline_rank: int
    namespace: dict[str, Any] = dataclasses.field(default_factory=dict)
    loaded: list[tuple[Any, weights.Weights]] = dataclasses.field(default_factory=list)
    runners: list[Any] = dataclasses.field(default_factory=list)
    free_after_weights: int = 0
    tree_cache: Any = None
    warnings: dict[str, None] = dataclasses.field(default_factory=dict)
    arguments: Any = None


class Engine:
    """A release, imported as on a machine with `hardware`. One per process; `check` changes global state."""

    def __init__(self, release: Path, overlays: tuple[Path, ...], hardware: Hardware, gpus: int = 8) -> None:
        begun = time.perf_counter()
        os.environ.update(ENVIRONMENT)
        if hardware.vendor == "cpu":
            os.environ["SGLANG_USE_CPU_ENGINE"] = "1"
        sys.path[:0] = [str(path) for path in (*overlays, release)]
        self.vendor = hardware.vendor
        self.finder = packages.install(release, hardware.vendor)
        import torch

        torch.set_num_threads(1)
        self.machine = accelerator.simulate(torch, hardware, gpus)
        from app.check.worker import paper

        self.paper = paper
        paper.fake_collectives()
        self.run: Run | None = None
        with _recording_environment() as read:
            self._import()
        self.environment_read = frozenset(read)
        self._observe_warnings()
        self.import_s = time.perf_counter() - begun

    # -- preparation, once per process

    def _import(self) -> None:
        self._no_compiler()
        for name in (
            "server_args",
            "runtime_context",
            "managers.scheduler",
            "managers.tp_worker",
            "model_executor.model_runner",
            "model_loader.loader",
            "mem_cache.kv_cache_builder",
            "distributed.parallel_state",
        ):
            importlib.import_module(f"sglang.srt.{name}")
        for name in ("mem_cache.unified_memory_pool",):
            with contextlib.suppress(ModuleNotFoundError):
                importlib.import_module(f"sglang.srt.{name}")
        self.server_args = sys.modules["sglang.srt.server_args"]
        self.scheduler = sys.modules["sglang.srt.managers.scheduler"]
        self._no_compiler()
        self._loading()
        self._no_communicators()
        self._host_pools()
        self._one_expert_layer()
        self._one_parser()
        self._compiled_patterns()
        self._scheduler()
        self._observe()
        self._observe_hub()

    def _no_compiler(self) -> None:
        for name, module in list(sys.modules.items()):
            if name.startswith("sglang.") and "load_jit" in vars(module or types.ModuleType("")):
                replace(module, "load_jit", lambda *args, **kwargs: mock.MagicMock(), "sglang.*.load_jit")
        for name in (
            "sglang.kernels.jit.utils.compile.loader",
            "sglang.kernels.jit.utils.compile",
            "sglang.jit_kernel.utils",
        ):
            with contextlib.suppress(ImportError):
                module = importlib.import_module(name)
                if hasattr(module, "load_jit"):
                    replace(module, "load_jit", lambda *args, **kwargs: mock.MagicMock(), "sglang.*.load_jit")

    def _loading(self) -> None:
        weights.replace_loaders(sys.modules["sglang.srt.model_loader.loader"], self._model_loaded)
        worker = sys.modules["sglang.srt.managers.tp_worker"]
        for name in ("get_tokenizer", "get_processor", "get_tokenizer_from_processor"):
            if hasattr(worker, name):
                replace(worker, name, lambda *args, **kwargs: None, f"sglang.srt.managers.tp_worker.{name}")

    def _model_loaded(self, model: Any, config: Any, counted: weights.Weights) -> None:
        run = self._running()
        growth = 0 if run.loaded else run.request.capacity.growth_bytes
        run.loaded.append((model, counted))
        self.machine.used_bytes += counted.resident + growth
        run.free_after_weights = self.machine.free_bytes

    def _no_communicators(self) -> None:
        group = sys.modules["sglang.srt.distributed.parallel_state"].GroupCoordinator
        real = group.__init__
        off = [
            name
            for name in inspect.signature(real).parameters
            if name
            in (
                "use_pynccl",
                "use_pymscclpp",
                "use_custom_allreduce",
                "use_torch_symm_mem_all_reduce",
                "use_message_queue_broadcaster",
            )
        ]

        @functools.wraps(real)
        def init(this: Any, *args: Any, **kwargs: Any) -> None:
            bound = inspect.signature(real).bind(this, *args, **kwargs)
            bound.arguments.update(dict.fromkeys(off, False))
            real(*bound.args, **bound.kwargs)

        replace(group, "__init__", init, "sglang.srt.distributed.parallel_state.GroupCoordinator.__init__")

        def broadcast_pyobj(data: Any, *args: Any, **kwargs: Any) -> Any:
            return data

        for name, module in list(sys.modules.items()):
            if name.startswith("sglang.srt.") and "broadcast_pyobj" in vars(module or types.ModuleType("")):
                replace(module, "broadcast_pyobj", broadcast_pyobj, "sglang.*.broadcast_pyobj")

    def _host_pools(self) -> None:
        """Keep host pools as shapes, under every name by which a module of the memory code knows the allocator."""
        import torch

        def alloc_mmap(dims: Any, dtype: Any, *args: Any, **kwargs: Any) -> Any:
            return torch.empty(dims, dtype=dtype, device="meta")

        def alloc_shm(dims: Any, dtype: Any, *args: Any, **kwargs: Any) -> Any:
            return alloc_mmap(dims, dtype), 0, None

        for name, module in list(sys.modules.items()):
            if name.startswith("sglang.srt.mem_cache"):
                for function in (alloc_mmap, alloc_shm):
                    if function.__name__ in vars(module):
                        target = f"sglang.srt.mem_cache.*.{function.__name__}"
                        replace(module, function.__name__, function, target)
        limits, name = sys.modules.get("sglang.srt.mem_cache.host_memory"), "_cgroup_memory_headroom"
        if name in vars(limits or types.ModuleType("")):
            replace(limits, name, lambda *args, **kwargs: None, f"sglang.srt.mem_cache.host_memory.{name}")

    def _one_expert_layer(self) -> None:
        module = importlib.import_module("sglang.srt.eplb.expert_location")
        name = "_compute_logical_to_all_physical_map"
        real = getattr(module, name, None)
        if real is None:
            return
        import torch

        @functools.wraps(real)
        def computed(*args: Any, **kwargs: Any) -> Any:
            bound = inspect.signature(real).bind(*args, **kwargs)
            layout, logical = bound.arguments["physical_to_logical_map"], bound.arguments["num_logical_experts"]
            asked = getattr(self._running().arguments, "init_expert_location", None)
            if asked != "trivial" or layout.device.type != "meta" or not logical:
                return real(*args, **kwargs)
            layers, physical = layout.shape
            with torch._C.DisableTorchFunction():
                bound.arguments["physical_to_logical_map"] = (torch.arange(physical) % logical).unsqueeze(0)
                one = real(*bound.args, **bound.kwargs)
                return one.expand(layers, *one.shape[1:]).to("meta")

        replace(module, name, computed, f"sglang.srt.eplb.expert_location.{name}")

    def _one_parser(self) -> None:
        """Build the argument parser, and what SGLang derives from its declarations, once before the fork."""
        cls = self.server_args.ServerArgs
        real = cls.add_cli_args
        template = argparse.ArgumentParser()
        real(template)
        self.parser = template

        def add_cli_args(parser: Any) -> None:
            own = {name: vars(parser)[name] for name in ("prog", "usage", "description", "epilog")}
            vars(parser).update({**vars(template), **own})

        replace(cls, "add_cli_args", staticmethod(add_cli_args), "sglang.srt.server_args.ServerArgs.add_cli_args")
        declarations = importlib.import_module("sglang.srt.arg_groups.arg_utils")
        for name in DECLARATIONS:
            if hasattr(declarations, name):
                getattr(declarations, name)(cls)

    def _compiled_patterns(self) -> None:
        """Keep every pattern that `regex.fullmatch` compiles: lists of excluded layers hold more than it remembers."""
        regex = sys.modules.get("regex")
        if regex is None:
            return
        real, compiled = regex.fullmatch, functools.lru_cache(maxsize=1 << 14)(regex.compile)

        @functools.wraps(real)
        def fullmatch(pattern: Any, string: Any, *args: Any, **kwargs: Any) -> Any:
            if args or kwargs or type(pattern) is not str:
                return real(pattern, string, *args, **kwargs)
            return compiled(pattern).fullmatch(string)

        replace(regex, "fullmatch", fullmatch, "regex.fullmatch")

    def _scheduler(self) -> None:
        prefix = "sglang.srt.managers.scheduler."
        module, real, engine = self.scheduler, self.scheduler.Scheduler, self
        body: dict[str, Any] = {"tokenizer": None}
        on_paper = type("Scheduler", (real,), body)

        def left_out(name: str, **attributes: Any) -> None:
            def nothing(this: Any, *args: Any, **kwargs: Any) -> None:
                for attribute, value in attributes.items():
                    setattr(this, attribute, value() if callable(value) else value)

            if hasattr(real, name):
                replace(on_paper, name, nothing, f"{prefix}Scheduler.{name}")

        for name in (
            "init_tokenizer",
            "init_idle_sleeper",
            "init_soft_watchdog",
            "init_kv_events_publisher",
            "maybe_init_rust_server",
            "init_profiler",
            "init_watch_dog_memory_saver_input_blocker",
            "init_all_cuda_graphs",
        ):
            left_out(name)
        left_out("init_ipc_channels", ipc_channels=mock.MagicMock)
        left_out("init_metrics_reporter", metrics_reporter=mock.MagicMock)
        left_out(
            "init_metrics_collector",
            metrics_collector=mock.MagicMock,
            metrics_collector_context=mock.MagicMock,
            enable_metrics=False,
            enable_kv_cache_events=False,
        )

        def stage(name: str, before: StageName, after: StageName | None = None) -> None:
            if not hasattr(real, name):
                return
            inner = getattr(real, name)

            @functools.wraps(inner)
            def entered(this: Any, *args: Any, **kwargs: Any) -> Any:
                clock = engine._running().clock
                if name != "maybe_init_draft_worker" or _speculates(this):
                    clock.enter(before)
                result = inner(this, *args, **kwargs)
                if after is not None:
                    clock.enter(after)
                return result

            replace(on_paper, name, entered, f"{prefix}Scheduler.{name}")

        stage("init_tp_model_worker", "model")
        stage("maybe_init_draft_worker", "draft model")
        stage("init_memory_pools", "pools")
        stage("init_all_attention_backends", "attention backends", "prefix cache")

        def start(*args: Any, **kwargs: Any) -> Any:
            try:
                with engine.paper.OnPaper():
                    return on_paper(*args, **kwargs)
            except Exception as error:
                raise Failed(error) from None

        replace(module, "Scheduler", start, f"{prefix}Scheduler")
        replace(module, "psutil", mock.MagicMock(), f"{prefix}psutil")
        for name in ("configure_scheduler_process", "load_plugins", "prewarm_graph_pool_borrow"):
            if hasattr(module, name):
                replace(module, name, lambda *args, **kwargs: None, f"{prefix}{name}")

    def _observe_hub(self) -> None:
        errors = sys.modules.get("huggingface_hub.errors")
        for name in ("LocalEntryNotFoundError", "HFValidationError"):
            cls = getattr(errors, name, None)
            if cls is None:
                continue

            def init(this: Any, *args: Any, real: Any = cls.__init__, **kwargs: Any) -> None:
                real(this, *args, **kwargs)
                failures.unanswered.append(str(args[0]) if args else "")

            replace(cls, "__init__", init, f"huggingface_hub.errors.{name}.__init__")

    def _observe(self) -> None:
        """Look on at what the release does: nothing here changes what it is given or gives back."""
        engine = self
        namespace = self.server_args.ServerArgs.from_cli_args

        def from_cli_args(cls: Any, args: Any) -> Any:
            run = engine._running()
            run.namespace = dict(vars(args))
            run.arguments = namespace.__func__(cls, args)
            return run.arguments

        target = "sglang.srt.server_args.ServerArgs.from_cli_args"
        replace(self.server_args.ServerArgs, "from_cli_args", classmethod(from_cli_args), target)

        runner = sys.modules["sglang.srt.model_executor.model_runner"].ModelRunner
        allocate = runner.alloc_memory_pool

        @functools.wraps(allocate)
        def alloc_memory_pool(this: Any, *args: Any, **kwargs: Any) -> Any:
            run = engine._running()
            if getattr(this, "is_draft_worker", False):
                run.clock.enter("draft pools")
            result = allocate(this, *args, **kwargs)
            run.runners.append(this)
            return result

        target = "sglang.srt.model_executor.model_runner.ModelRunner"
        replace(runner, "alloc_memory_pool", alloc_memory_pool, f"{target}.alloc_memory_pool")
        if hasattr(runner, "prewarm_sampling"):
            replace(runner, "prewarm_sampling", lambda *args, **kwargs: None, f"{target}.prewarm_sampling")

        builder = sys.modules["sglang.srt.mem_cache.kv_cache_builder"]
        build = builder.build_kv_cache

        @functools.wraps(build)
        def build_kv_cache(*args: Any, **kwargs: Any) -> Any:
            engine._running().tree_cache = build(*args, **kwargs).tree_cache
            raise Reached

        replace(builder, "build_kv_cache", build_kv_cache, "sglang.srt.mem_cache.kv_cache_builder.build_kv_cache")

    def _observe_warnings(self) -> None:
        standins.note("logging.record_factory")
        real = logging.getLogRecordFactory()

        def record(*args: Any, **kwargs: Any) -> logging.LogRecord:
            made = real(*args, **kwargs)
            run = self.run
            if run is not None and made.levelno >= logging.WARNING and len(run.warnings) < WARNINGS_LIMIT:
                with contextlib.suppress(Exception):
                    run.warnings[_COLOUR.sub("", made.getMessage())[:WARNING_LENGTH]] = None
            return made

        logging.setLogRecordFactory(record)
        logging.disable(logging.INFO)
        replace(logging, "basicConfig", lambda **options: None, "logging.basicConfig")

    def _running(self) -> Run:
        if self.run is None:
            raise RuntimeError("no check is running in this process")
        return self.run

    # -- one check; call it in a forked child

    def check(self, request: Request, report: Callable[[Stage], None], pipeline_rank: int = 0) -> Outcome:
        """Run one command to the end of the last stage and say what became of it.

        The current folder must be the check's own, with the request's models in it.
        """
        begun, cpu = time.perf_counter(), time.process_time()
        run = self.run = Run(request, Clock(report), pipeline_rank)
        absent = self._prepare(request)
        printed = io.StringIO()
        error: BaseException | None = None
        try:
            with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(printed):
                self._go(run)
        except Reached:
            pass
        except Failed as failed:
            error = failed.cause
        except BaseException as raised:
            error = raised
        outcome = self._outcome(run, error, printed.getvalue(), absent)
        return dataclasses.replace(
            outcome,
            elapsed_ms=round((time.perf_counter() - begun) * 1000, 2),
            cpu_ms=round((time.process_time() - cpu) * 1000, 2),
            peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10,
        )

    def _prepare(self, request: Request) -> frozenset[str]:
        """Become the machine that the request describes; return the modules that it lacks."""
        if request.hardware != self.machine.hardware:
            accelerator.forget_answers(keep=DECLARATIONS)
        self.machine.become(request.hardware, request.gpus, request.capacity)
        if request.packages:
            self.finder.change(request.packages)
        folder = os.getcwd()  # `torch.compile` makes its cache even where nothing is compiled
        os.environ.update(HOME=folder, TORCHINDUCTOR_CACHE_DIR=f"{folder}/.torch")
        os.environ.update(request.environment)
        random.seed(request.seed)
        present = set(self.finder.versions)
        return frozenset(
            module
            for package in standins.PACKAGES
            if package.optional and package.distribution not in present
            for module in package.modules
        )

    def _go(self, run: Run) -> None:
        arguments = self.server_args.prepare_server_args(list(run.request.arguments))
        run.arguments = arguments
        getattr(arguments, "resolve_once", lambda: None)()
        run.clock.enter("checks")
        arguments.check_server_args()
        run.clock.enter("model")
        entry = self.scheduler.run_scheduler_process
        given = {
            "server_args": arguments,
            "port_args": types.SimpleNamespace(nccl_port=0),
            "dp_rank": None,
            "pp_rank": run.pipeline_rank,
        }
        wanted = [name for name, one in inspect.signature(entry).parameters.items() if one.default is one.empty]
        entry(**{name: given.get(name, 0 if name.endswith(("_rank", "gpu_id")) else None) for name in wanted})

    # -- what became of it

    def _outcome(self, run: Run, error: BaseException | None, printed: str, absent: frozenset[str]) -> Outcome:
        described = (
            failures.describe(error, said=printed, rank=run.pipeline_rank, want_traceback=run.request.want_traceback)
            if error is not None
            else None
        )
        verdict, basis, stand_in = "pass", "SGLang's own start-up ran to the end of the last stage", ""
        stage: StageOutcome = "pass"
        assumptions: list[str] = []
        if error is not None:
            judgement = failures.judge(error, run.clock.current, absent, self.paper.made_up)
            verdict, basis, stand_in = ("fail" if judgement.refused else "unknown"), judgement.why, judgement.stand_in
            stage = "fail" if judgement.refused else "unknown"
            if not judgement.refused and run.clock.current in _LATE:
                verdict, described = "pass", None
                assumptions.append(f"The {run.clock.current} could not be built here ({basis}).")
                basis = "SGLang's own start-up ran to the end of the attention backends"
        values = _values(run)
        needed = _gpus_needed(values)
        if verdict == "pass" and needed > run.request.gpus:
            verdict, basis = "unknown", f"the command needs {needed} GPUs on a node, the machine has {run.request.gpus}"
        pools = self._pools(run)
        unseen = sorted(name for name in run.request.environment if name in self.environment_read)
        if unseen:
            assumptions.append("Read when SGLang is imported, so not applied here: " + ", ".join(unseen) + ".")
        current, asked = _resolved(run)
        return Outcome(
            verdict=verdict,  # type: ignore[arg-type]
            basis=basis,
            stages=run.clock.finish(stage),
            error=described,
            resolved=current,
            asked=asked,
            pools=pools,
            budget=self._budget(run, pools),
            ranks=(run.pipeline_rank,),
            warnings=tuple(run.warnings),
            assumptions=tuple(assumptions),
            stand_in_failure=stand_in,
            uncalibrated=tuple(sorted({name for _, counted in run.loaded for name in counted.kept})),
            pipeline_ranks=_whole(values.get("pp_size")) or 1,
            gpus_needed=needed,
        )

    def _pools(self, run: Run) -> tuple[Pools, ...]:
        counted: set[int] = set()
        found = []
        by_model = {id(model): one for model, one in run.loaded}
        for runner in run.runners:
            role = "draft" if getattr(runner, "is_draft_worker", False) else "target"
            known = by_model.get(id(runner.model), weights.Weights(0, 0))
            tree = run.tree_cache if role == "target" else None
            with contextlib.suppress(AttributeError, TypeError, ValueError):
                found.append(capacity.describe(role, runner, known, counted, host_pool=tree, rank=run.pipeline_rank))
        return tuple(found)

    def _budget(self, run: Run, pools: tuple[Pools, ...]) -> Budget | None:
        if not run.runners:
            return None
        target = run.runners[0]
        before = getattr(target, "pre_model_load_memory", None)
        spent = sum(one.kv_bytes + one.state_bytes + one.request_bytes for one in pools)
        return Budget(
            total_bytes=self.machine.hardware.total_bytes,
            free_before_bytes=int(before * (1 << 30)) if isinstance(before, (int, float)) else 0,
            free_after_weights_bytes=run.free_after_weights,
            left_bytes=run.free_after_weights - spent,
            fraction=_float(getattr(target, "mem_fraction_static", None)),
            page_size=_whole(getattr(target, "page_size", None)),
            context_length=_whole(getattr(target.model_config, "context_len", None)),
            chunked_prefill_size=_whole(_setting(run, "chunked_prefill_size")),
        )


@contextlib.contextmanager
def _recording_environment() -> Iterator[set[str]]:
    """Yield the set of environment variables that are read while the block runs."""
    read: set[str] = set()
    kind = type(os.environ)
    real = kind.__getitem__

    def getitem(this: Any, key: str) -> str:
        if isinstance(key, str):
            read.add(key)
        return real(this, key)

    replace(kind, "__getitem__", getitem, "os.environ")
    try:
        yield read
    finally:
        replace(kind, "__getitem__", real, "os.environ")


def _speculates(scheduler: Any) -> bool:
    algorithm = getattr(scheduler, "spec_algorithm", None)
    return algorithm is not None and not algorithm.is_none()


def _float(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _gpus_needed(values: dict[str, Any]) -> int:
    """Return how many GPUs of one node the ranks of a command take; 0 if that was not decided."""

    def size(name: str) -> int:
        return max(_whole(values.get(name)) or 1, 1)

    if not values:
        return 0
    world = size("tp_size") * size("pp_size")
    if not values.get("enable_dp_attention"):
        world *= size("dp_size")
    return -(-world // size("nnodes"))


def _plain(value: Any) -> Json:
    """Return a value as JSON, or its bounded text."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return value[:VALUE_LIMIT]
    with contextlib.suppress(TypeError, ValueError, RecursionError):
        if isinstance(value, (list, tuple, dict)) and len(text := json.dumps(value)) <= VALUE_LIMIT:
            return json.loads(text)
    with contextlib.suppress(Exception):
        return str(getattr(value, "value", value))[:VALUE_LIMIT]
    return None


def _setting(run: Run, name: str) -> Any:
    """Return a resolved argument, from the published configuration where the release keeps it there."""
    context = sys.modules["sglang.srt.runtime_context"]
    for bag in ("get_schedule", "get_memory", "get_model", "get_exec"):
        with contextlib.suppress(Exception):
            return getattr(getattr(context, bag)(), name)
    return getattr(run.arguments, name, None)


def _values(run: Run) -> dict[str, Any]:
    """Return all arguments as SGLang resolved them, wherever this release keeps what it decided."""
    arguments = run.arguments
    if arguments is None:
        return {}
    values = {name: getattr(arguments, name) for name in run.namespace if hasattr(arguments, name)}
    for _, declared in getattr(arguments, "_resolved_overrides", None) or ():
        values.update({name: value for name, value in declared.items() if name in values})
    with contextlib.suppress(Exception):  # a resolution that failed half-way has no whole answer
        values.update({name: value for name, value in arguments.resolved_dict().items() if name in values})
    return values


def _resolved(run: Run) -> tuple[dict[str, Json], dict[str, Json]]:
    """Return the arguments that SGLang changed or chose, and what they were before."""
    current: dict[str, Json] = {}
    asked: dict[str, Json] = {}
    for name, value in _values(run).items():
        before, after = _plain(run.namespace[name]), _plain(value)
        if after is not None and before != after:
            current[name], asked[name] = after, before
    return current, asked
