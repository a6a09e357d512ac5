"""Messages survive their journey, and nothing but a message is read as one."""

from __future__ import annotations

import json

import pytest

from app.check.protocol import (
    Answer,
    Budget,
    Cancel,
    Capacity,
    Command,
    Error,
    Fault,
    Frame,
    Hardware,
    Job,
    Limits,
    Lost,
    Model,
    Outcome,
    Pools,
    Progress,
    ProtocolError,
    Ready,
    Report,
    Request,
    Stage,
    Start,
    dump,
    load,
)

H100 = Hardware("h100", "nvidia", "NVIDIA H100 80GB HBM3", (9, 0), 85 << 30, 81559, 600 << 20, 132)
REQUEST = Request(
    ("--model-path", "a/b"),
    H100,
    gpus=2,
    models=(Model("a/b", {"config.json": "{}"}),),
    environment={"SGLANG_X": "1"},
    packages={"nixl": ""},
    capacity=Capacity(free_bytes=1, reserve_bytes=2, growth_bytes=3),
)
OUTCOME = Outcome(
    "fail",
    "SGLang refuses with its own ValueError",
    (Stage("arguments", "pass", 1.5), Stage("pools", "fail", 2)),
    error=Error(
        "ValueError", "no", "sglang/x.py", 3, "f", "C.f", "raise ValueError", True, frames=(Frame("p", 1, "f", ""),)
    ),
    resolved={"page_size": 64, "nested": {"a": [1, None, True]}},
    pools=(Pools("target", "M", "P", "R", "A", 10, 2, 1, 1, 5, 0, 1, bytes_per_token=0.5, swa_tokens=None),),
    budget=Budget(1, 1, 1, 1, fraction=0.9),
)
MESSAGES: list[Command | Report] = [
    Start("0.5.18", "/x", H100, ("/y",), (REQUEST,)),
    Job(7, REQUEST, Limits(wall_s=1, policy={"read": ["/usr"]})),
    Cancel(7),
    Ready("0.5.18", "sm90", 1, 2.0, 3.0, 4, 5, ("pass",), ("torch.cuda.init",)),
    Progress(7, Stage("model", "pass", 1.0)),
    Answer(7, outcome=OUTCOME),
    Answer(7, lost=Lost("timeout", stage="model")),
    Fault("no"),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_survives_its_journey(message: Command | Report) -> None:
    line = dump(message)

    assert line.count(b"\n") == 1
    assert load(line) == message


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"{}",
        b'{"job": {}, "cancel": {"id": 1}}',
        b'{"outcome": {}}',
        b'{"cancel": {}}',
        b'{"cancel": {"id": "1"}}',
        b'{"cancel": {"id": true}}',
        b'{"cancel": {"id": 1, "more": 2}}',
        b'{"cancel": [1]}',
        b'{"progress": {"id": 1, "stage": {"name": "lunch", "outcome": "pass"}}}',
        b'{"progress": {"id": 1, "stage": {"name": "model", "outcome": "pass", "ms": "1"}}}',
        b"[" * 100_000,
        b'{"fault": {"detail": "\xff"}}',
    ],
)
def test_what_is_no_message_is_refused(line: bytes) -> None:
    with pytest.raises(ProtocolError):
        load(line)


def test_a_tuple_of_fixed_length_keeps_it() -> None:
    value = json.loads(dump(Job(1, REQUEST)))
    value["job"]["request"]["hardware"]["capability"] = [9]

    with pytest.raises(ProtocolError, match="2 items expected"):
        load(json.dumps(value))


@pytest.mark.parametrize(
    ("hardware", "group"),
    [
        (H100, "sm90"),
        (Hardware("b200", "nvidia", capability=(10, 0)), "sm90"),
        (Hardware("l4", "nvidia", capability=(8, 9)), "sm80"),
        (Hardware("mi300x", "amd", capability=(9, 4), arch="gfx942"), "hip"),
        (Hardware("mi355x", "amd", capability=(9, 5), arch="gfx950:sramecc+"), "hip-gfx95"),
        (Hardware("cpu", "cpu"), "cpu"),
    ],
)
def test_hardware_belongs_to_one_group(hardware: Hardware, group: str) -> None:
    assert hardware.group == group
