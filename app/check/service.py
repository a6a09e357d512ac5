"""A submitted command -> the answer of `POST /api/check`: reading, choosing, running, telling."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from app.check import cache as caching
from app.check import capacity as calibration
from app.check import command as commands
from app.check import model_config
from app.check.cache import OutcomeCache
from app.check.catalogue import Catalogue, Near
from app.check.command import LaunchCommand
from app.check.fixes.advice import Advice
from app.check.fixes.fixer import Fixer
from app.check.fixes.search import USUAL, Budget
from app.check.hardware import DEFAULT as DEFAULT_HARDWARE
from app.check.hardware import Profile, Profiles
from app.check.options import Options
from app.check.pool import Engine, ParentStatus, SandboxPool
from app.check.protocol import Capacity, Error, Lost, Model, Outcome, Pools, Reason, Request, Stage, Verdict
from app.errors import BadInput, NotFound, Unavailable

PACKAGE = "sglang"
GPU_LIMIT = 4096
PACKAGE_LIMIT = 16
STAND_IN_LIMIT = 100

_MODEL = ("--model-path", "--model")
_DRAFT = ("--speculative-draft-model-path", "--speculative-draft-model")
_SIZES: Mapping[str, tuple[str, ...]] = {
    "tp": ("--tp", "--tp-size", "--tensor-parallel-size"),
    "pp": ("--pp", "--pp-size", "--pipeline-parallel-size"),
    "dp": ("--dp", "--dp-size", "--data-parallel-size"),
    "nodes": ("--nnodes",),
    "rank": ("--node-rank",),
}
_ABSOLUTE = re.compile(r"(?<![\w.:/-])/[\w.-]+(?:/[\w.+-]+)+")
_DISTRIBUTION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LOST: Mapping[Reason, str] = {
    "memory": "The check needed more memory than one may take, so it was stopped.",
    "died": "The process of this check ended without an answer.",
    "output": "The check said more than one may, so it was stopped.",
    "protocol": "The process of this check gave an answer that could not be read.",
    "cancelled": "The check was cancelled.",
    "broken": "The simulation broke; this says nothing about the launch.",
}


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked. Empty and None mean: choose. `model_config` is the text of a `config.json` or its object.

    Shape: `packages` maps an optional distribution to its version, or to "" for "not installed"; `free_bytes`,
    `reserve_bytes` and `growth_bytes` replace what is assumed of one GPU.
    """

    command: str
    engine: str = ""
    hardware: str = ""
    gpus: int | None = None
    model_config: str | Mapping[str, Any] | None = None
    draft_model_config: str | Mapping[str, Any] | None = None
    fixes: bool = False
    packages: Mapping[str, str] = field(default_factory=dict)
    free_bytes: int | None = None
    reserve_bytes: int | None = None
    growth_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class RecordLink:
    """The record behind an error."""

    id: str
    url: str
    title: str


@dataclass(frozen=True, slots=True)
class Judged:
    """What an outcome says of a question: the verdict, why it is undecided, and what is left to tell."""

    verdict: Verdict
    reason: str
    result: Outcome


@dataclass(frozen=True, slots=True)
class Prepared:
    """A question with everything chosen. `unknown` says why no verdict about the model is possible, if so.

    Shape: `partial` names the models whose configuration lacks fields, or whose class a generic one stands in for.
    """

    launch: LaunchCommand
    engine: Engine
    engine_chosen: str
    profile: Profile
    hardware_chosen: str
    request: Request
    gpus_chosen: str
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...]
    unknown: str = ""
    reserve_given: bool = False
    partial: tuple[str, ...] = ()


Linker = Callable[[Error, str], RecordLink | None]
Adviser = Callable[[str], Advice | None]


class Engines(Protocol):
    """What engines are installed."""

    def installed(self) -> tuple[Engine, ...]:
        """Return the installed engines, oldest release first."""
        ...

    def default(self) -> str:
        """Return the version that is taken when none is asked for."""
        ...


class CheckService:
    """Answers questions. One per process."""

    def __init__(
        self, pool: SandboxPool, engines: Engines, catalogue: Catalogue, profiles: Profiles, *,
        link: Linker | None = None, fetch: Callable[[str], Awaitable[model_config.Given]] | None = None,
        cache: OutcomeCache | None = None, advise: Adviser | None = None,
        options: Callable[[Engine], Options] = Options.of, budget: Budget = USUAL,
    ) -> None:  # fmt: skip
        self.pool, self.engines, self.catalogue, self.profiles = pool, engines, catalogue, profiles
        self.cache = cache or OutcomeCache()
        self.verdicts: dict[str, int] = {}
        self.stand_in_failures: dict[str, int] = {}
        self._link = link or (lambda error, version: None)
        self._fetch = fetch
        self._advise = advise or (lambda record: None)
        self._options = options
        self._budget = budget

    async def check(
        self, question: Question, on_stage: Callable[[Stage], None] | None = None,
        on_state: Callable[[str], None] | None = None, on_verdict: Callable[[dict[str, Any]], None] | None = None,
        on_tried: Callable[[dict[str, Any]], None] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Return the body of the answer; where fixes are looked for, `on_verdict` hears of it as far as it is known.

        Raises: BadInput, TooLarge: the question. TooMany, Unavailable, OutOfTime: no answer now.
        """
        began = time.perf_counter()
        prepared = await self.prepare(question)
        outcome, cached = await self.run(prepared, on_stage, on_state)
        judged = self.judged(prepared, outcome)
        body = self.body(prepared, outcome, cached=cached, elapsed_ms=(time.perf_counter() - began) * 1000)
        if question.fixes and judged.verdict == "fail" and judged.result.error is not None:
            if on_verdict is not None:
                on_verdict(body)
            body |= await self.fixer().find(question, prepared, judged, on_tried)
            body["elapsed_ms"] = round((time.perf_counter() - began) * 1000, 1)
        return body

    def fixer(self) -> Fixer:
        """Return what looks for fixes. One per search."""
        return Fixer(self, self.engines.installed(), tuple(self.profiles), self._options, self._budget)

    def advised(self, error: Error, version: str) -> Advice | None:
        """Return what is known of the record behind an error."""
        link = self._link(error, version)
        return None if link is None else self._advise(link.id)

    async def run(
        self, prepared: Prepared, on_stage: Callable[[Stage], None] | None = None,
        on_state: Callable[[str], None] | None = None,
    ) -> tuple[Outcome | Lost, bool]:  # fmt: skip
        """Return the outcome of a prepared question, and whether it was known already."""
        engine, request = prepared.engine, prepared.request
        key = caching.key(engine.version, str(engine.release), request)
        return await self.cache.get_or_run(key, lambda: self.pool.check(engine, request, on_stage, on_state))

    async def prepare(self, question: Question, launch: LaunchCommand | None = None) -> Prepared:
        """Read the command, unless it is given as `launch`, and choose what was left open."""
        launch = launch or commands.read(question.command)
        engine, engine_chosen = self._engine(question.engine, launch)
        profile = self.profiles.find(question.hardware or DEFAULT_HARDWARE)
        gpus, gpus_chosen = _gpus(question.gpus, launch)
        models, said, unknown = await self._models(question, launch)
        capacity, assumed = self._capacity(question, profile, launch)
        request = Request(
            arguments=launch.arguments,
            hardware=profile.device,
            gpus=gpus,
            models=models,
            environment=dict(launch.environment),
            packages=_packages(question.packages),
            capacity=capacity,
            node_rank=min(_size(launch, "rank", 0), GPU_LIMIT),
        )
        return Prepared(
            launch, engine, engine_chosen, profile, "asked" if question.hardware else "default", request, gpus_chosen,
            (*said, *assumed), (*launch.notes, *_other_release(launch, engine, question)), unknown,
            question.reserve_bytes is not None,
            self._partial(question, launch),
        )  # fmt: skip

    def _engine(self, asked: str, launch: LaunchCommand) -> tuple[Engine, str]:
        installed = {engine.version: engine for engine in self.engines.installed()}
        if not installed:
            raise Unavailable("No check engine is installed. Run `errata engine install`.")
        version = asked.strip().removeprefix(f"{PACKAGE}==").removeprefix("v")
        if version:
            if version not in installed:
                raise BadInput(
                    f"SGLang {version[:40]} is not installed here; these are: {', '.join(installed)}.",
                    known=list(installed),
                )
            return installed[version], "asked"
        if launch.release in installed:
            return installed[launch.release], "named in the command"
        default = self.engines.default()
        return installed.get(default) or installed[next(reversed(installed))], "default"

    async def _models(self, question: Question, launch: LaunchCommand) -> tuple[tuple[Model, ...], list[str], str]:
        """Return the model folders, what is assumed of them, and why one is not known."""
        models: dict[str, Model] = {}
        said: list[str] = []
        unknown = ""
        wanted = [(_MODEL, question.model_config), (_DRAFT, question.draft_model_config)]
        for options, config in wanted:
            name = launch.option(*options)
            if config is not None:
                given = model_config.pasted(config) if isinstance(config, str) else model_config.checked(dict(config))
                if name:
                    models[name] = Model(name, given.files)
                    said += _dropped(given, name)
            elif name and name not in models:
                found = self.catalogue.find(name)
                if not isinstance(found, Near):
                    models[name] = Model(name, found.files())
                    said += found.caveats()
                elif (fetched := await self._fetched(name)) is not None:
                    models[name] = Model(name, fetched.files)
                    said += [f"The configuration of {name} was fetched from the model hub.", *_dropped(fetched, name)]
                else:
                    unknown = unknown or found.reason
        return tuple(models.values()), said, unknown

    def _partial(self, question: Question, launch: LaunchCommand) -> tuple[str, ...]:
        wanted = [(_MODEL, question.model_config), (_DRAFT, question.draft_model_config)]
        names = [name for options, given in wanted if given is None and (name := launch.option(*options))]
        found = [model for name in names if not isinstance(model := self.catalogue.find(name), Near)]
        return tuple(model.hub_id for model in found if model.incomplete or model.stand_in)

    async def _fetched(self, name: str) -> model_config.Given | None:
        if self._fetch is None:
            return None
        try:
            return await self._fetch(name)
        except (NotFound, BadInput):
            return None

    def _capacity(self, question: Question, profile: Profile, launch: LaunchCommand) -> tuple[Capacity, list[str]]:
        if profile.device.vendor == "cpu":
            return Capacity(), []
        ranks = _size(launch, "tp", 1) * _size(launch, "pp", 1)
        reserve = self.profiles.reserve(profile, ranks)
        said = []
        free = question.free_bytes
        if free is None:
            how = "as start-up logs of this card show" if profile.free_is_measured else "reckoned from a sister card"
            said.append(f"Free on each GPU before loading: {_gib(profile.free_bytes)}, {how}; nothing else runs on it.")
        else:
            said.append(f"Free on each GPU before loading: {_gib(free)}, as given.")
        # What a log finds free before loading is what is left when the buffers of communication are there.
        typical = reserve.bytes if reserve and free is None else 0
        reserve_bytes = typical if question.reserve_bytes is None else question.reserve_bytes
        if reserve_bytes:
            how = "as given" if question.reserve_bytes is not None else f"typical of {ranks} GPUs working together"
            said.append(f"Communication buffers take {_gib(reserve_bytes)} of each GPU, {how}.")
        growth = question.growth_bytes or 0
        if growth:
            said.append(f"The weights grow by {_gib(growth)} after loading, as given.")
        return Capacity(free_bytes=free, reserve_bytes=reserve_bytes, growth_bytes=growth), said

    # -- the answer -----------------------------------------------------------------------------------------

    def judged(self, prepared: Prepared, outcome: Outcome | Lost) -> Judged:
        """Return the verdict of an outcome: a model that is not known and a file that is not here leave it open."""
        lost = isinstance(outcome, Lost)
        result = _of_lost(outcome) if isinstance(outcome, Lost) else outcome
        if prepared.unknown and not lost and not _decided_before_the_model(result):
            return Judged("unknown", prepared.unknown, replace(result, error=None, pools=(), budget=None))
        if result.verdict == "fail" and result.error and (path := _missing_file(result.error, prepared.launch)):
            reason = (
                f"SGLang stops because {path[:120]} is not there; a check has no files but the models' configurations."
            )
            return Judged("unknown", reason, result)
        if result.verdict == "fail" and result.error and prepared.partial and _misses_a_field(result.error):
            reason = (
                f"The configuration of {prepared.partial[0]} that is known here is incomplete, and SGLang asks for a "
                "field that it lacks. Paste the whole config.json."
            )
            return Judged("unknown", reason, result)
        if result.verdict == "pass" and (reason := _more_than_there_is(result)):
            return Judged("unknown", reason, result)
        return Judged(result.verdict, result.basis if result.verdict == "unknown" else "", result)

    def body(self, prepared: Prepared, outcome: Outcome | Lost, *, cached: bool, elapsed_ms: float) -> dict[str, Any]:
        """Return the body of an answer, as INTERFACE.md has it and with further members after it."""
        judged = self.judged(prepared, outcome)
        verdict, reason, result = judged.verdict, judged.reason, judged.result
        self.verdicts[verdict] = self.verdicts.get(verdict, 0) + 1
        if result.stand_in_failure:
            self._count_stand_in(result.stand_in_failure)
        body: dict[str, Any] = {
            "verdict": verdict,
            "engine": {"package": PACKAGE, "version": prepared.engine.version, "chosen": prepared.engine_chosen},
            "hardware": {
                "name": prepared.profile.name, "title": prepared.profile.title, "gpus": prepared.request.gpus,
                "chosen": prepared.hardware_chosen, "gpus_chosen": prepared.gpus_chosen,
            },
            "stages": [{"name": s.name, "outcome": s.outcome, "ms": round(s.ms, 1)} for s in result.stages],
            "error": self._error(result.error, prepared.engine.version) if result.error else None,
            "resolved": result.resolved,
            "pools": _pools(result, prepared) if result.pools else None,
            "warnings": [*prepared.warnings, *result.warnings],
            "fixes": [],
            "elapsed_ms": round(elapsed_ms, 1),
            "reason": reason or None,
            "basis": result.basis or None,
            "asked": result.asked,
            "assumptions": list(dict.fromkeys([*prepared.assumptions, *result.assumptions])),
            "uncalibrated": _uncalibrated(result, prepared) if result.pools else [],
            "command": prepared.launch.text(),
            "cached": cached,
        }  # fmt: skip
        return body

    def _count_stand_in(self, name: str) -> None:
        """Count a failure on a stand-in. The name comes from a check, so neither it nor their number is trusted."""
        name = name if re.fullmatch(r"[\w.: -]{1,80}", name) else "other"
        if name not in self.stand_in_failures and len(self.stand_in_failures) >= STAND_IN_LIMIT:
            name = "other"
        self.stand_in_failures[name] = self.stand_in_failures.get(name, 0) + 1

    def _error(self, error: Error, version: str) -> dict[str, Any]:
        link = self._link(error, version)
        return {
            "exception": error.exception,
            "message": error.message,
            "path": error.path,
            "line": error.line,
            "function": error.qualified or error.function,
            "statement": error.statement,
            "condition": error.condition or None,
            "guards": list(error.guards),
            "explicit": error.explicit,
            "raised_by": error.foreign or PACKAGE,
            "rank": error.rank,
            "record": None if link is None else {"id": link.id, "url": link.url, "title": link.title},
            "traceback": list(error.traceback),
        }

    def engines_body(self) -> dict[str, Any]:
        """Return the body of `GET /api/engines`."""
        states = {(s.version, s.group): s for s in self.pool.status()}
        default = self.engines.default()
        return {
            "items": [
                {
                    "package": PACKAGE,
                    "version": engine.version,
                    "default": engine.version == default,
                    "processes": [_process(s) for (version, _), s in states.items() if version == engine.version],
                }
                for engine in self.engines.installed()
            ]
        }

    def hardware_body(self) -> dict[str, Any]:
        """Return the body of `GET /api/hardware`."""
        return {
            "items": [
                {
                    "name": p.name, "title": p.title, "vendor": p.device.vendor, "default": p.name == DEFAULT_HARDWARE,
                    "memory_bytes": p.device.total_bytes, "free_bytes": p.free_bytes,
                    "free_is_measured": p.free_is_measured, "gpus_per_node": p.gpus_per_node,
                    "capability": list(p.device.capability) if p.device.vendor == "nvidia" else None,
                }
                for p in self.profiles
            ]
        }  # fmt: skip

    def models_body(self) -> dict[str, Any]:
        """Return the body of `GET /api/models`."""
        return {
            "items": [
                {
                    "id": m.hub_id, "role": m.role, "architecture": m.architecture, "model_type": m.model_type,
                    "source": m.source, "also": [a.hub_id for a in m.same_as], "incomplete": list(m.incomplete),
                    "draft_of": m.draft_of or None, "algorithm": m.algorithm or None, "stand_in": m.stand_in,
                    "notes": list(m.notes), "provenance": m.provenance,
                    "trials": [
                        {
                            "engine": t.engine, "hardware": t.hardware, "gpus": t.gpus, "command": t.arguments,
                            "outcome": t.outcome, "stage": t.stage or None, "reason": t.reason or None,
                        }
                        for t in m.trials
                    ],
                }
                for m in self.catalogue
            ]
        }  # fmt: skip


def _process(status: ParentStatus) -> dict[str, Any]:
    return {"group": status.group, "state": status.state, "memory_bytes": status.rss_bytes or None}


def _of_lost(lost: Lost) -> Outcome:
    return Outcome("unknown", _LOST.get(lost.reason, _LOST["broken"]), ())


def _missing_file(error: Error, launch: LaunchCommand) -> str:
    """Return the path that SGLang says is not there, if it does; the asker's machine may have it."""
    if not re.search(r"not found|no such file|does not exist|cannot find", error.message, re.IGNORECASE):
        return ""
    if system := _ABSOLUTE.search(error.message):
        return system[0].rstrip(".")
    model = launch.option(*_MODEL)
    values = [word.partition("=")[2] if word.startswith("--") else word for word in launch.arguments]
    return next((v for v in values if ("/" in v or "." in v) and v != model and v in error.message), "")


def _other_release(launch: LaunchCommand, engine: Engine, question: Question) -> tuple[str, ...]:
    if not launch.release or question.engine or launch.release == engine.version:
        return ()
    return (
        f"The text names SGLang {launch.release}, which is not installed here; {engine.version} was asked instead.",
    )


def _more_than_there_is(outcome: Outcome) -> str:
    """Say that the pools that SGLang sized are larger than the GPU, if so: it allocates them without a look."""
    target = _tightest(outcome.pools, "target")
    if target is None or outcome.budget is None or not outcome.budget.total_bytes:
        return ""
    wanted, there = target.weight_bytes + target.kv_bytes, outcome.budget.total_bytes
    if wanted <= there:
        return ""
    return (
        f"SGLang sizes its pools without complaint, but weights and KV cache take {_gib(wanted)} of a GPU with "
        f"{_gib(there)}: allocating them runs out of memory. Look at --mem-fraction-static and --max-total-tokens."
    )


def _misses_a_field(error: Error) -> bool:
    """Say whether SGLang broke, without meaning to, on something that is not there."""
    return not error.explicit and error.exception in ("AttributeError", "KeyError")


def _decided_before_the_model(outcome: Outcome) -> bool:
    """Say whether SGLang's argument parser refused, which does not depend on the model."""
    return outcome.verdict == "fail" and outcome.error is not None and outcome.error.foreign == "argparse"


def _dropped(given: model_config.Given, name: str) -> list[str]:
    return [f"Left out of the configuration of {name}: {', '.join(given.dropped)}."] if given.dropped else []


def _size(launch: LaunchCommand, what: str, default: int) -> int:
    text = launch.option(*_SIZES[what])
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,5}", text) else default


def _gpus(asked: int | None, launch: LaunchCommand) -> tuple[int, str]:
    """Return the GPUs of one node, and how the number was chosen."""
    if asked is not None:
        if not 1 <= asked <= GPU_LIMIT:
            raise BadInput(f"gpus is from 1 to {GPU_LIMIT}, not {asked}.")
        return asked, "asked"
    world = max(1, _size(launch, "tp", 1)) * max(1, _size(launch, "pp", 1))
    if not any(a.replace("_", "-") == "--enable-dp-attention" for a in launch.arguments):
        world *= max(1, _size(launch, "dp", 1))
    needed = min(GPU_LIMIT, max(1, math.ceil(world / max(1, _size(launch, "nodes", 1)))))
    if launch.visible is not None and launch.visible >= 1:
        return min(launch.visible, GPU_LIMIT), "made visible by the command"
    return needed, "what the command's parallel sizes need"


def _packages(given: Mapping[str, str]) -> dict[str, str]:
    if len(given) > PACKAGE_LIMIT:
        raise BadInput(f"At most {PACKAGE_LIMIT} packages can be chosen.")
    for name, version in given.items():
        if not _DISTRIBUTION.fullmatch(name) or (version and not _DISTRIBUTION.fullmatch(version)):
            raise BadInput(f"{name[:40]!r} {version[:40]!r} is no distribution and version.")
    return dict(given)


def _gib(count: int) -> str:
    return f"{count / (1 << 30):.2f} GiB"


def _tightest(pools: Iterable[Pools], role: str) -> Pools | None:
    return min((p for p in pools if p.role == role), key=lambda p: (p.tokens, p.rank), default=None)


def _range(target: Pools, outcome: Outcome, prepared: Prepared) -> dict[str, Any] | None:
    if outcome.budget is None or calibration.gives_no_number(prepared.request):
        return None
    span = calibration.token_range(
        target, outcome.budget, prepared.request, free_is_measured=prepared.profile.free_is_measured,
        reserve_given=prepared.reserve_given,
    )  # fmt: skip
    return None if span is None else {"low": span.low, "high": span.high, "doubts_bytes": dict(span.doubts)}


def _uncalibrated(outcome: Outcome, prepared: Prepared) -> list[str]:
    said = list(calibration.uncalibrated(_tightest(outcome.pools, "target"), prepared.request))
    if outcome.uncalibrated:
        methods = ", ".join(outcome.uncalibrated)
        said.append(f"Weights of {methods} are counted as created: their post-processing needs the real device.")
    return said


def _pools(outcome: Outcome, prepared: Prepared) -> dict[str, Any] | None:
    target, draft = _tightest(outcome.pools, "target"), _tightest(outcome.pools, "draft")
    if target is None:
        return None
    return {
        "token_to_kv_pool": target.token_to_kv_pool,
        "allocator": target.allocator,
        "max_total_num_tokens": None if calibration.gives_no_number(prepared.request) else target.tokens,
        "token_range": _range(target, outcome, prepared),
        "max_running_requests": target.requests,
        "kv_cache_bytes": target.kv_bytes,
        "weight_bytes": target.loaded_weight_bytes,
        "assumptions": list(dict.fromkeys([*prepared.assumptions, *outcome.assumptions])),
        "request_pool": target.request_pool,
        "state_bytes": target.state_bytes,
        "request_bytes": target.request_bytes,
        "bytes_per_token": target.bytes_per_token,
        "swa_tokens": target.swa_tokens,
        "state_slots": target.state_slots,
        "kv_dtype": target.kv_dtype,
        "host_kv_bytes": target.host_kv_bytes,
        "model": target.model,
        "rank": target.rank,
        "draft": None if draft is None else draft.to_json(),
        "budget": None if outcome.budget is None else outcome.budget.to_json(),
        "reserve_bytes": prepared.request.capacity.reserve_bytes,
    }
