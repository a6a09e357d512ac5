"""What the one box takes a text for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.web.paste import kind_of

CASES = {
    "command": [
        "python -m sglang.launch_server --model-path x",
        "$ python3 -m sglang.launch_server \\\n  --model-path x \\\n  --tp 8",
        "CUDA_VISIBLE_DEVICES=0 FOO=1 python -m sglang.launch_server --model x",
        "docker run --gpus all lmsysorg/sglang:latest python3 -m sglang.launch_server --model-path x",
        "sglang serve --model-path x",
        "--model-path x --tp-size 2",
        "# on one node\npython -m sglang.launch_server --model-path x\n",
    ],
    "error": [
        "ValueError: chunked_prefill_size must be divisible",
        "torch.OutOfMemoryError: CUDA out of memory",
        "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    g()\nKeyError: 'x'",
        "[2026-08-28 10:00:00 TP0] Scheduler hit an exception",
        "--enable-unified-memory only supports hybrid Mamba or hybrid sliding-window models; got x of y",
        "one\ntwo\nthree",
        '{"error": {"message": "The window is too small", "code": 400}}',
        'got b\'{"object": "error", "message": "too small"}\'',
        "Error code: 400 - {}",
        "**ValueError**: too small",
        "I get `ValueError: too small` at the start",
        "assert width % height == 0",
        "$ python -m sglang.launch_server --model-path x\nTraceback (most recent call last):\n",
    ],
    "record": ["ce5cbefa16d6fad4", "  ce5cbefa16d6fad4\n"],
    "words": ["unified memory", "--enable-unified-memory swa", "page_size", "kv_cache_configurator.py", "cuda graph"],
    "nothing": ["", "  \n"],
}


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in CASES.items() for text in texts])
def test_a_text_is_taken_for_what_it_is(kind: str, text: str) -> None:
    assert kind_of(text) == kind


@given(st.text(max_size=2_000))
def test_any_text_is_something(text: str) -> None:
    assert kind_of(text) in CASES


@pytest.mark.parametrize("unit", ["A=1 ", "a.", " \n", "[", "Aa", "sudo ", "X_", "A=", "Error ", "--a", "x" * 50 + " "])
def test_a_megabyte_of_anything_is_looked_at_in_bounded_time(unit: str) -> None:
    assert kind_of(unit * (1024 * 1024 // len(unit))) in CASES
