"""A small option table, and what it is made from."""

from __future__ import annotations

from pathlib import Path

from app.check.fixes.changes import Variant
from app.check.options import Options
from app.check.pool import Engine
from app.check.protocol import Option

OPTIONS = Options(
    "1.0",
    (
        Option(("--model-path", "--model"), "model_path", type="str", required=True),
        Option(("--tp-size", "--tensor-parallel-size"), "tp_size", type="int", default=1),
        Option(("--page-size",), "page_size", type="int"),
        Option(("--attention-backend",), "attention_backend", choices=("fa3", "triton", "flashinfer"), type="str"),
        Option(("--enable-unified-memory",), "enable_unified_memory", "0", default=False, const=True, type="bool"),
        Option(("--disable-radix-cache",), "disable_radix_cache", "0", default=False, const=True, type="bool"),
        Option(("--mem-fraction-static",), "mem_fraction_static", type="float"),
        Option(("--graph-bs",), "graph_bs", "+", type="int"),
        Option(("--quantization",), "quantization", choices=("awq", "fp8", "gptq"), type="str"),
        Option(("--served-name",), "served_name", type="str"),
        Option(("--old-backend",), "attention_backend", type="str", deprecated=True, instead="--attention-backend"),
    ),
)
LATER = Options("1.1", (*OPTIONS.options, Option(("--new-thing",), "new_thing", "0", type="bool")))
ENGINE, NEXT = (Engine(version, Path("/x/python"), Path("/x", version)) for version in ("1.0", "1.1"))


def table(engine: Engine) -> Options:
    return LATER if engine == NEXT else OPTIONS


def variant(line: str, **variables: str) -> Variant:
    return Variant(tuple(line.split()), tuple(variables.items()), ENGINE, "h100-80gb")
