"""The messages between the service and the engine's own process. Standard library only.

The worker lives in SGLang's environment, so nothing else of `app` may be needed here. Every message is a
frozen value and travels as one line of JSON. Reading is strict: an unknown or missing key, a wrong type
or a value out of range is a `ProtocolError`, never a guess. `docs/engine.md` draws the conversation.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

Json = Any  # whatever `json.loads` can give
StageName = Literal[
    "arguments", "checks", "model", "draft model", "pools", "draft pools", "attention backends", "prefix cache"
]
STAGES: tuple[StageName, ...] = typing.get_args(StageName)
StageOutcome = Literal["pass", "fail", "unknown", "not reached"]
Verdict = Literal["pass", "fail", "unknown"]
Vendor = Literal["nvidia", "amd", "cpu"]
Group = Literal["sm90", "sm80", "hip", "hip-gfx95", "cpu"]
Reason = Literal["timeout", "memory", "died", "output", "protocol", "sandbox", "cancelled", "broken"]
GROUPS: tuple[Group, ...] = typing.get_args(Group)


class ProtocolError(ValueError):
    """A line is not the message it should be."""


class Message:
    """The base of all messages: one value, one JSON object."""

    __slots__ = ()

    def to_json(self) -> dict[str, Json]:
        """Return the message as JSON types."""
        return dataclasses.asdict(self)  # type: ignore[call-overload, no-any-return]

    def to_line(self) -> bytes:
        """Return the message as one line, newline included."""
        return json.dumps(self.to_json(), separators=(",", ":")).encode() + b"\n"

    @classmethod
    def from_json(cls: type[M], value: Json) -> M:
        """Read the message from JSON types. Raises: ProtocolError."""
        return typing.cast("M", _read(cls, value, cls.__name__))

    @classmethod
    def from_line(cls: type[M], line: bytes | str) -> M:
        """Read the message from one line. Raises: ProtocolError."""
        return cls.from_json(_parse(line))


M = TypeVar("M", bound=Message)


@dataclass(frozen=True, slots=True)
class Hardware(Message):
    """What one accelerator of the simulated machine says of itself.

    Units: bytes; `smi_mib` is nvidia-smi's memory.total. `used_bytes` is what is gone on an idle GPU once
    the process has its context. `capability` is (9, 0) for SM90; a HIP device also has `arch` ("gfx942").
    A `cpu` profile uses only `name`, `host_bytes` and `cores`.
    """

    name: str
    vendor: Vendor
    device_name: str = ""
    capability: tuple[int, int] = (0, 0)
    total_bytes: int = 0
    smi_mib: int = 0
    used_bytes: int = 0
    multiprocessors: int = 0
    shared_memory_bytes: int = 49152
    l2_bytes: int = 0
    cuda: str = ""
    driver: str = ""
    hip: str = ""
    arch: str = ""
    peer_access: bool = True
    host_bytes: int = 2 << 40
    cores: int = 96

    @property
    def group(self) -> Group:
        """Return which preloaded process can stand for this device.

        SGLang reads the vendor, AMD's generation (its kind of FP8 with it) and deep_gemm's SM90 flag once, at import.
        """
        if self.vendor == "cpu":
            return "cpu"
        if self.vendor == "amd":
            return "hip-gfx95" if self.arch.startswith("gfx95") else "hip"
        return "sm90" if self.capability >= (9, 0) else "sm80"


@dataclass(frozen=True, slots=True)
class Model(Message):
    """A model folder that the command may name.

    Shape: `name` as the command writes it (hub id or path); `files` maps a bare file name to its text,
    "config.json" at least.
    """

    name: str
    files: dict[str, str]


@dataclass(frozen=True, slots=True)
class Capacity(Message):
    """What the simulated GPU has free. All in bytes, per GPU.

    `free_bytes` overrides the profile (what a log prints as "avail mem" before loading); `reserve_bytes`
    is what communication libraries take when the process groups are made; `growth_bytes` what the weights
    grow by after loading.
    """

    free_bytes: int | None = None
    reserve_bytes: int = 0
    growth_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Limits(Message):
    """The bounds of one check, set by the service and applied by the parent and the child.

    `policy` is handed to `app.check.sandbox.enter` as it is; null runs the check unconfined, which only an
    operator may ask for.
    """

    wall_s: float = 20.0
    cpu_s: int = 20
    memory_bytes: int = 6 << 30
    file_bytes: int = 1 << 20
    open_files: int = 256
    output_bytes: int = 4 << 20
    policy: dict[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class Request(Message):
    """One launch command to run through an engine's start-up.

    Shape: `arguments` follow the module name; `environment` holds allow-listed names only; `packages` maps
    an optional distribution ("mooncake-transfer-engine", "bitsandbytes") to its version, or to "" for absent;
    `gpus` is per node; `node_rank` says which node's first rank is run. With several pipeline ranks all are
    run unless `all_pipeline_ranks` is false.
    """

    arguments: tuple[str, ...]
    hardware: Hardware
    gpus: int = 8
    models: tuple[Model, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    packages: dict[str, str] = field(default_factory=dict)
    capacity: Capacity = Capacity()
    node_rank: int = 0
    all_pipeline_ranks: bool = True
    seed: int = 0
    want_traceback: bool = True


@dataclass(frozen=True, slots=True)
class Stage(Message):
    """One step of start-up. Units: milliseconds."""

    name: StageName
    outcome: StageOutcome
    ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Frame(Message):
    """One frame of a traceback; `path` is relative to the folder that holds the package ("sglang/srt/x.py")."""

    path: str
    line: int
    function: str
    statement: str


@dataclass(frozen=True, slots=True)
class Error(Message):
    """What stopped the start-up.

    The place is that of the frame that decided: the `raise` or `assert` for an explicit error. `qualified`
    is the qualified name of its function ("KVCacheConfigurator._init_pools"). `explicit` says that the
    innermost frame is a `raise` or `assert` statement of the engine or its libraries; `condition` is the
    source of a bare assert's condition, and `guards` the conditions around the statement, outermost first.
    `foreign` names what raised when it was not the engine: "argparse", "transformers", "torch", ...
    """

    exception: str
    message: str
    path: str
    line: int
    function: str
    qualified: str
    statement: str
    explicit: bool
    condition: str = ""
    guards: tuple[str, ...] = ()
    foreign: str = ""
    rank: int = 0
    traceback: tuple[str, ...] = ()
    frames: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True)
class Pools(Message):
    """The memory of one worker (target or draft) on one GPU. Units: bytes per GPU, tokens, requests.

    `kv_bytes` counts the token-to-KV pool, `state_bytes` Mamba or other recurrent state, `request_bytes` the
    request-to-token table. `bytes_per_token` is `kv_bytes` over the tokens the pool holds. Absent is null.
    """

    role: Literal["target", "draft"]
    model: str
    token_to_kv_pool: str
    request_pool: str
    allocator: str
    tokens: int
    requests: int
    weight_bytes: int
    loaded_weight_bytes: int
    kv_bytes: int
    state_bytes: int
    request_bytes: int
    bytes_per_token: float | None = None
    swa_tokens: int | None = None
    state_slots: int | None = None
    kv_dtype: str = ""
    host_kv_bytes: int = 0
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Budget(Message):
    """How SGLang divided one GPU's memory. Bytes, per GPU, of the tightest rank."""

    total_bytes: int
    free_before_bytes: int
    free_after_weights_bytes: int
    left_bytes: int
    fraction: float | None = None
    page_size: int | None = None
    context_length: int | None = None
    chunked_prefill_size: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome(Message):
    """What became of a command.

    `basis` says what the verdict rests on (for `unknown`: why it could not be decided). `resolved` holds the
    arguments whose value SGLang changed or chose, `asked` what they were before. `stand_ins` names the
    registered stand-ins that the failing path went through; `assumptions` are sentences.
    """

    verdict: Verdict
    basis: str
    stages: tuple[Stage, ...]
    error: Error | None = None
    resolved: dict[str, Json] = field(default_factory=dict)
    asked: dict[str, Json] = field(default_factory=dict)
    pools: tuple[Pools, ...] = ()
    budget: Budget | None = None
    ranks: tuple[int, ...] = (0,)
    warnings: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()
    stand_in_failure: str = ""
    uncalibrated: tuple[str, ...] = ()
    elapsed_ms: float = 0.0
    cpu_ms: float = 0.0
    peak_bytes: int = 0
    sandbox: tuple[str, ...] = ()
    pipeline_ranks: int = 1
    gpus_needed: int = 0


@dataclass(frozen=True, slots=True)
class Lost(Message):
    """No verdict: the child is gone or spoke nonsense."""

    reason: Reason
    detail: str = ""
    stage: str = ""
    elapsed_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Start(Message):
    """The first line a parent reads: which engine, for which hardware, warmed by which requests.

    Shape: `release` is the folder of the unpacked wheel; `overlays` are folders of packages that this release
    needs in other versions than the shared environment has, first wins. `without` names stand-ins to leave out,
    which only those that save time can be: comparisons ask for it.
    """

    version: str
    release: str
    hardware: Hardware
    overlays: tuple[str, ...] = ()
    warmup: tuple[Request, ...] = ()
    max_children: int = 2
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Option(Message):
    """One option of the release's own argument parser, as the parser declares it.

    Shape: `names` are all spellings, `dest` the field they set. `nargs` is "" for one value, "0" for none, else what
    argparse takes ("?", "*", "+", a number). `const` is what a flag without a value sets. `deprecated` is what the
    release itself says of the option, `instead` the option (perhaps with its value) or the text it points to.
    """

    names: tuple[str, ...]
    dest: str
    nargs: str = ""
    choices: tuple[str, ...] = ()
    default: Json = None
    const: Json = None
    type: str = ""
    required: bool = False
    deprecated: bool = False
    instead: str = ""
    help: str = ""


@dataclass(frozen=True, slots=True)
class Ready(Message):
    """The first line a parent writes, once it has imported and warmed everything.

    Shape: `warmup` says how each warm-up command ended; `stand_ins` are the targets it has replaced; `options` is
    what the release's argument parser takes, in its order.
    """

    version: str
    group: Group
    pid: int
    import_s: float
    warmup_s: float
    rss_bytes: int
    modules: int
    warmup: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True)
class Job(Message):
    """A check to fork. `id` is the service's; answers carry it."""

    id: int
    request: Request
    limits: Limits = Limits()


@dataclass(frozen=True, slots=True)
class Cancel(Message):
    """Kill the child of this job, if there is one."""

    id: int


@dataclass(frozen=True, slots=True)
class Progress(Message):
    """A stage of a job has ended."""

    id: int
    stage: Stage


@dataclass(frozen=True, slots=True)
class Answer(Message):
    """The end of a job: an outcome, or that it was lost."""

    id: int
    outcome: Outcome | None = None
    lost: Lost | None = None


@dataclass(frozen=True, slots=True)
class Fault(Message):
    """A parent that cannot serve at all says why and ends."""

    detail: str


Command = Start | Job | Cancel
Report = Ready | Progress | Answer | Fault
_KINDS: dict[str, type[Message]] = {
    kind.__name__.lower(): kind for kind in (Start, Job, Cancel, Ready, Progress, Answer, Fault)
}


def dump(message: Command | Report) -> bytes:
    """Return a message of the conversation as one line that says its kind."""
    return json.dumps({type(message).__name__.lower(): message.to_json()}, separators=(",", ":")).encode() + b"\n"


def load(line: bytes | str) -> Command | Report:
    """Read a line that `dump` wrote. Raises: ProtocolError."""
    value = _parse(line)
    if not isinstance(value, dict) or len(value) != 1:
        raise ProtocolError("a message is an object with its kind as the one key")
    kind, body = next(iter(value.items()))
    if kind not in _KINDS:
        raise ProtocolError(f"no such kind of message: {kind[:40]!r}")
    return typing.cast("Command | Report", _KINDS[kind].from_json(body))


def _parse(line: bytes | str) -> Json:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"not JSON: {error}") from None


@functools.cache
def _hints(cls: Any) -> dict[str, tuple[Any, bool]]:
    """Return each field's type and whether it must be given."""
    hints = typing.get_type_hints(cls)
    return {
        f.name: (hints[f.name], f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING)
        for f in dataclasses.fields(cls)
    }


def _read(kind: Any, value: Json, at: str) -> Any:
    """Read `value` as `kind`; `at` names the place for the error."""
    if kind is Any:
        return value
    if dataclasses.is_dataclass(kind):
        return _read_object(kind, value, at)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        if value not in arguments or isinstance(value, bool):
            raise ProtocolError(f"{at}: not one of {arguments}")
        return value
    if origin in (types.UnionType, typing.Union):
        return None if value is None else _read(arguments[0], value, at)
    if origin is dict:
        return _read_map(arguments[1], value, at)
    if origin is tuple:
        return _read_tuple(arguments, value, at)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise ProtocolError(f"{at}: {kind.__name__} expected, {type(value).__name__} given")
    return value


def _read_object(kind: Any, value: Json, at: str) -> Any:
    hints = _hints(kind)
    if not isinstance(value, dict):
        raise ProtocolError(f"{at}: object expected")
    if unknown := [str(key)[:40] for key in value if key not in hints]:
        raise ProtocolError(f"{at}: unknown key {unknown[0]!r}")
    if missing := [name for name, (_, needed) in hints.items() if needed and name not in value]:
        raise ProtocolError(f"{at}: {missing[0]!r} is missing")
    return kind(**{name: _read(hints[name][0], item, f"{at}.{name}") for name, item in value.items()})


def _read_map(kind: Any, value: Json, at: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ProtocolError(f"{at}: object expected")
    return {key: _read(kind, item, f"{at}[{key[:40]!r}]") for key, item in value.items()}


def _read_tuple(arguments: tuple[Any, ...], value: Json, at: str) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise ProtocolError(f"{at}: list expected")
    if arguments[1:] == (...,):
        return tuple(_read(arguments[0], item, f"{at}[{i}]") for i, item in enumerate(value))
    if len(value) != len(arguments):
        raise ProtocolError(f"{at}: {len(arguments)} items expected")
    return tuple(_read(kind, item, f"{at}[{i}]") for i, (kind, item) in enumerate(zip(arguments, value, strict=True)))
