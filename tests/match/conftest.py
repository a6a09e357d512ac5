"""Records made up for these tests, and the index over them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import pytest

from app.match.index import Index
from app.store.queries import Seen, Signature

VERSIONS = ("0.5.17", "0.5.18", "0.5.19")


def signature(
    title: str,
    *texts: Sequence[str],
    exception: str = "ValueError",
    path: str = "sglang/srt/server_args.py",
    function: str = "ServerArgs.check",
    statement: str = "raise ValueError(",
    condition: str = "",
    kind: str = "raise",
    earlier: tuple[str, str] | None = None,
    versions: tuple[str, ...] = VERSIONS,
    line: int = 100,
) -> Signature:
    """Return the signature of a made-up record; `earlier` is a (path, function) that it had in the first release."""
    seen = [Seen(versions, path, function, statement, condition, tuple(line + n for n in range(len(versions))))]
    if earlier:
        seen.insert(0, Seen(("0.5.17",), *earlier, statement, condition, (line,)))
    parts = tuple(tuple(text) for text in texts)
    message = "".join(p if i % 2 == 0 else "{" + p + "}" for i, p in enumerate(parts[0])) if parts else ""
    return Signature(
        record_id=hashlib.sha256(title.encode()).hexdigest()[:16],
        package="sglang",
        kind=kind,  # type: ignore[arg-type]
        exception=exception,
        title=title,
        message=message,
        texts=parts,
        seen=tuple(seen),
        first=versions[0],
        last=versions[-1],
    )


SIGNATURES = (
    signature("page size", ("The page size ", "self.page_size", " does not divide the chunk of ", "chunk", " tokens.")),
    signature(
        "ring width",
        ("The ring width must be a power of two, got ", "width", ""),
        exception="AssertionError",
        path="sglang/srt/layers/ring.py",
        function="RingLayer.__init__",
        statement="assert width & (width - 1) == 0, (",
        condition="width & (width - 1) == 0",
        kind="assert",
        earlier=("sglang/srt/ring_layer.py", "RingLayer.__init__"),
    ),
    signature(
        "slots (pool)",
        ("Cannot hand out a slot, the pool is exhausted",),
        exception="RuntimeError",
        path="sglang/srt/mem_cache/slot_pool.py",
        function="SlotPool.take",
        statement='raise RuntimeError("Cannot hand out a slot, the pool is exhausted")',
    ),
    signature(
        "slots (host)",
        ("Cannot hand out a slot, the pool is exhausted",),
        exception="RuntimeError",
        path="sglang/srt/mem_cache/host_slot_pool.py",
        function="HostSlotPool.take_many",
        statement='raise RuntimeError("Cannot hand out a slot, the pool is exhausted")',
    ),
    signature(
        "recording failed",
        ("Recording the step graph failed: ", "e", "\nPossible ways out:\n1. lower --graph-sizes\n2. switch it off"),
        exception="Exception",
        path="sglang/srt/model_executor/step_graph.py",
        function="StepGraph.__init__",
        statement="raise Exception(",
    ),
    signature(
        "adapter",
        ("Failed to attach the adapter ", "name", ": ", "result.reason", ""),
        exception="RuntimeError",
        path="sglang/srt/lora/attach.py",
        function="Attacher.attach_all",
        statement="raise RuntimeError(",
    ),
    signature(
        "adapter rank",
        ("This server was started for adapters of rank ", "limit", " at most, this one has rank ", "rank", ""),
        path="sglang/srt/lora/attach.py",
        function="Attacher.validate",
    ),
    signature(
        "bare assert",
        exception="AssertionError",
        path="sglang/srt/layers/mixer.py",
        function="Mixer.forward",
        statement="assert gates.shape[0] == tokens.shape[0]",
        condition="gates.shape[0] == tokens.shape[0]",
        kind="assert",
    ),
    signature(
        "split heads",
        ("", "a", " cannot be split evenly over ", "b", " ranks"),
        exception="AssertionError",
        path="sglang/srt/distributed/split.py",
        function="ensure_even",
        statement='assert a % b == 0, "{} cannot be split evenly over {} ranks".format(',
        condition="a % b == 0",
        kind="assert",
    ),
    signature(
        "helper",
        ("", "message", ""),
        ("", "pool", " lost track of its pages! ", "details", ""),
        path="sglang/srt/utils/complain.py",
        function="complain",
        statement="raise ValueError(message)",
    ),
    signature(
        "prompt too long",
        ("The prompt has ", "n", " tokens, the model's window is ", "self.window", " tokens."),
        path="sglang/srt/managers/front.py",
        function="Front._validate",
    ),
    signature(
        "queue full",
        ("The waiting queue is full (", "len(self.queue)", " requests). Try again later.",),
        exception="",
        kind="message",
        path="sglang/srt/managers/scheduler.py",
        function="Scheduler.add",
        statement="return abort(",
    ),
    signature(
        "old quant",
        ("The ", "method", " weights need an operator that this build does not have.",),
        path="sglang/srt/layers/quantization/old.py",
        function="pick",
        versions=("0.5.17",),
    ),
    signature(
        "alpha backend",
        ("ALPHA backend for prefill is only available on devices of kind (G100). Choose another prefill backend.",),
    ),
    signature(
        "beta backend",
        ("BETA backend for decode is only available on devices of kind (G100). Choose another decode backend.",),
    ),
    signature(
        "backend list",
        ("fast, plain, shared, remote or mixed is required for the Tower model but got ", "backend", ""),
        exception="AssertionError",
        kind="assert",
        statement="assert backend in allowed, (",
        condition="backend in allowed",
    ),
    signature(
        "warm-up",
        ("res=", "res", ", res.text=", "res.text", ""),
        exception="AssertionError",
        kind="assert",
        path="sglang/srt/entrypoints/warm.py",
        function="_warm_up",
        statement='assert res.status_code == 200, f"{res=}, {res.text=}"',
        condition="res.status_code == 200",
    ),
    signature(
        "transfer",
        ("TransferFailed(room=", "self.room", "): ", "self.reason", ""),
        exception="TransferFailed",
        path="sglang/srt/disaggregation/link.py",
        function="Receiver.fail",
        statement="raise TransferFailed(self.room, reason)",
    ),
    signature(
        "slot count",
        ("free_slots=", "self.pool.free()", " is less than needed_slots=", "needed", ", lower --most-requests"),
        exception="RuntimeError",
        path="sglang/srt/mem_cache/slot_pool.py",
        function="SlotPool.reserve",
        statement="raise RuntimeError(",
    ),
    signature(
        "not written",
        ("Not implemented yet",),
        exception="NotImplementedError",
        path="sglang/srt/layers/mixer.py",
        function="Mixer.backward",
        statement='raise NotImplementedError("Not implemented yet")',
    ),
    signature(
        "context window",
        ("Warning: ", "why", " window (", "asked", ") is greater than the window of the model (", "own",
         "). Set ALLOW_WIDER=1."),
        path="sglang/srt/configs/window.py",
        function="derive_window",
    ),
    signature("table", ("The ring writer expects a table of [max_pos, width], got ", "shape", "")),
    signature(
        "gates and tokens",
        ("gates=", "gates", " tokens=", "tokens", ""),
        exception="AssertionError",
        kind="assert",
        path="sglang/srt/layers/mixer.py",
        function="Mixer.check",
        statement='assert ok, f"{gates=} {tokens=}"',
        condition="ok",
    ),
    signature(
        "lane",
        ("lane=", "lane", ""),
        exception="AssertionError",
        kind="assert",
        path="sglang/srt/layers/mixer.py",
        function="Mixer.lane",
        statement='assert lane < 4, f"{lane=}"',
        condition="lane < 4",
    ),
    signature("kept", ("The kept ", "what", " is off by ", "n", "")),
    signature("kept height", ("The kept height is off by ", "n", "")),
    signature("bare text", ("out of range",), path="sglang/srt/layers/ring.py", function="RingLayer.at"),
)  # fmt: skip


@pytest.fixture(scope="session")
def index() -> Index:
    """The index over the made-up records."""
    return Index(SIGNATURES)
