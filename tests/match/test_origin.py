"""Whose file is it?"""

from __future__ import annotations

import pytest

from app.match.origin import PYTHON, package_of

PARTS = frozenset({"sglang/srt", "sglang/lang"})
SUFFIXES = frozenset({"layers/ring.py", "openai/serving_chat.py"})


@pytest.mark.parametrize(
    ("path", "package"),
    [
        ("/usr/lib/python3/dist-packages/sglang/srt/layers/ring.py", "sglang"),
        ("/sgl-workspace/sglang/python/sglang/srt/layers/ring.py", "sglang"),
        ("~/sglang/python/sglang/srt/layers/ring.py", "sglang"),
        ("srt/layers/ring.py", "sglang"),
        ("/home/me/ray/sglang/python/sglang/srt/new.py", "sglang"),
        ("/srv/sglang/src/vllm/vllm/entrypoints/openai/serving_chat.py", "vllm"),
        ("/home/me/sglang/build.py", ""),
        (".../layers/unknown.py", ""),
        ("ring.py", ""),
        ("sglang/lib/python3.12/site-packages/flashinfer/ring.py", "flashinfer"),
        ("/home/me/sglang/.venv/lib/python3.12/site-packages/torch/_ops.py", "torch"),
        ("/workspace/vllm/vllm/entrypoints/openai/serving_chat.py", "vllm"),
        ("/sgl-workspace/DeepEP/deep_ep/buffer.py", "deep_ep"),
        ("/usr/lib/python3.10/threading.py", PYTHON),
        ("<frozen importlib._bootstrap>", PYTHON),
        ("C:\\venv\\Lib\\site-packages\\sglang\\srt\\layers\\ring.py", "sglang"),
    ],
)
def test_package_of(path: str, package: str) -> None:
    assert package_of(path, PARTS, SUFFIXES) == package
