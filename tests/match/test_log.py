"""Forms of logs -> blocks."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.match import log
from app.match.log import Block, Frame, read

TRACE = (
    "Traceback (most recent call last):",
    '  File "/x/sglang/srt/ring.py", line 7, in turn',
    "    raise ValueError(",
    "ValueError: the ring is stuck",
)
BLOCK = Block(
    "ValueError", "the ring is stuck", (Frame("/x/sglang/srt/ring.py", 7, "turn", "raise ValueError("),), closed=True
)


@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "[2025-03-29 18:18:34 TP0] ",
        "[2026-05-28 00:11:09.816 DP7 TP30 EP2] ",
        "2025-03-26 17:10:21 TP5] ",
        "sglang-1  | ",
        "sglang_service-1  | [2026-05-28 00:11:09 DP0] ",
        "(WorkerDict pid=2782, ip=10.1.2.3) ",
        "(EngineCore_0 pid=1) ERROR 09-01 12:00:00 [core.py:700] ",
        "[2025-11-06T02:08:27.278Z] [..] ",
        "ERROR 2026-06-15T14:10:59.392125190Z ",
        "2025-04-03 12:06:29,948 - __main__ - INFO - ",
        "2025-12-11 14:43:48.754323+08:00 - gpustack.worker.serve - ERROR - ",
        "2026-01-02T03:04:05+08:00 node-3 >> (Engine pid=3111) ",
        "[rank3]: ",
        "[1,0]<stderr>: ",
        "2026-01-02T03:04:05.000000001Z stderr F ",
        "Mar  6 17:10:21 node-3 python3[123]: ",
        "> ",
    ],
)
def test_a_prefix_on_every_line(prefix: str) -> None:
    text = "\n".join(prefix + line for line in TRACE)

    (block,) = read(text).blocks
    assert replace(block, logger="") == BLOCK


@pytest.mark.parametrize(
    "form",
    [
        "\r\n".join,
        lambda lines: "\n".join(f"│ {line:<60} │" for line in lines),
        lambda lines: "\n".join(f"\x1b[31m{line}\x1b[0m" for line in lines),
        lambda lines: "\n".join(line.strip() for line in lines),
        lambda lines: "```\n" + "\n".join(lines) + "\n```",
        lambda lines: (
            "[2026-01-02 03:04:05] Scheduler hit an exception: " + "\n".join(lines) + "\n\n[2026-01-02 03:04:06] Killed"
        ),
    ],
)
def test_forms_of_a_whole_traceback(form) -> None:  # type: ignore[no-untyped-def]
    assert read(form(TRACE)).blocks == (BLOCK,)


def test_the_same_error_of_every_rank_is_one_block() -> None:
    text = "\n".join(f"[rank{rank}]: {line}" for line in TRACE for rank in range(8))

    assert read(text).blocks == (BLOCK,)


@pytest.mark.parametrize("stamp", ["[2026-03-04 09:11:08 {}] ", "2026-03-04 09:11:08 {}] ", "(Worker pid={}) "])
def test_the_lines_of_two_writers_come_apart(stamp: str) -> None:
    other = [line.replace("ring", "belt") for line in TRACE]
    ranks = ("TP0", "DP1 TP3") if "pid" not in stamp else ("11", "12")
    text = "\n".join(
        stamp.format(rank) + line
        for pair in zip(TRACE, other, strict=True)
        for rank, line in zip(ranks, pair, strict=True)
    )

    first, second = read(text).blocks
    assert (first.message, second.message) == ("the ring is stuck", "the belt is stuck")
    assert (first.frames[0].path, second.frames[0].path) == ("/x/sglang/srt/ring.py", "/x/sglang/srt/belt.py")


@pytest.mark.parametrize(
    ("line", "chained"),
    [
        ("During handling of the above exception, another exception occurred:", "context"),
        ("The above exception was the direct cause of the following exception:", "cause"),
    ],
)
def test_chains(line: str, chained: str) -> None:
    blocks = read("\n".join([*TRACE, "", line, "", *TRACE[:-1], "RuntimeError: turning failed"])).blocks

    assert [(b.exception, b.chained) for b in blocks] == [("ValueError", ""), ("RuntimeError", chained)]


@pytest.mark.parametrize(
    "body",
    [
        '{"error": {"message": "the model\'s ring is stuck", "code": 400}}',
        '{\n  "message": "the model\'s ring is stuck"\n}',
        "Error code: 400 - {'object': 'error', 'message': \"the model\\'s ring is stuck\"}",
        'got b\'{"object":"error","message":"the model\\\'s ring is stuck"}\'',
        '"{\\"message\\": \\"the model\'s ring is stuck\\"}"',
        '{"message": "the model\\u0027s ring is stuck',
    ],
)
def test_http_bodies(body: str) -> None:
    assert "the model's ring is stuck" in [b.message for b in read(body).blocks if b.chained == "body"] or (
        "the model's ring is stuck" in read(body).paragraphs
    )


@pytest.mark.parametrize(
    ("line", "frame"),
    [
        ('File "mooncake_store.py", line 817, in get', Frame("mooncake_store.py", 817, "get")),
        ("mamba_component.py, line 498, in _alloc", Frame("mamba_component.py", 498, "_alloc")),
        ("at python/sglang/srt/gdn.py:782", Frame("python/sglang/srt/gdn.py", 782)),
    ],
)
def test_frames_under_a_message(line: str, frame: Frame) -> None:
    assert read(f"AssertionError: out of slots\n  {line}").blocks == (
        Block("AssertionError", "out of slots", (frame,), closed=True),
    )


@given(
    st.text(
        st.sampled_from("aE:\n .\"'[](){}\\|│\x1b[0m-0123 File line, in Traceback (most recent call last):"),
        max_size=300,
    )
)
def test_any_text_is_legal(text: str) -> None:
    found = read(text)

    assert all(isinstance(block, Block) for block in found.blocks)


def test_the_number_of_lines_looked_at_is_bounded() -> None:
    text = "x\n" * 40_000 + "ValueError: in the middle\n" + "x\n" * 40_000

    lines = log._budgeted(text)

    assert len(lines) <= log.MAX_LINES
    assert "ValueError: in the middle" in lines


def test_no_pattern_repeats_without_a_bound_inside_a_repeat() -> None:
    patterns = [value.pattern for value in vars(log).values() if isinstance(value, re.Pattern)]

    assert len(patterns) > 20
    assert not [p for p in patterns if re.search(r"[*+]\)[*+]", p)]
