"""Compare forked checks with fresh processes: random commands, same outcomes?

    .venv/bin/python -m bench.differential --count 300 --engine 0.5.18

A fresh process imports the release for one command alone, without the stand-ins that only save time, and without what
earlier checks could have left behind. Prints every difference, and how many commands were compared.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator

from app.check.hardware import profiles
from app.check.protocol import Outcome, Request
from app.check.worker import standins
from tests.check.worker.conversation import MODELS, installed, started

FLAGS = (
    "--page-size 16", "--page-size 64", "--kv-cache-dtype fp8_e4m3", "--mem-fraction-static 0.5",
    "--chunked-prefill-size 2048", "--attention-backend triton", "--attention-backend flashinfer",
    "--attention-backend fa3", "--enable-unified-memory", "--disable-radix-cache",
    "--enable-hierarchical-cache", "--max-running-requests 64", "--quantization fp8",
    "--speculative-algorithm NGRAM", "--enable-dp-attention --dp 2", "--cuda-graph-backend-prefill=disabled",
    "--disaggregation-mode prefill", "--disaggregation-mode decode", "--context-length 4096",
    "--max-total-tokens 100000", "--enable-two-batch-overlap", "--ep 2", "--pp-size 2", "--dtype float16",
    "--no-such-flag", "--enable-lora",
)  # fmt: skip
TARGETS = tuple(name for name in MODELS if not name.startswith("dspark"))
DEVICES = ("h100-80gb", "h200", "b200")


def commands(count: int, seed: int) -> Iterator[tuple[str, str]]:
    """Yield `count` random commands, each with the hardware to run it on."""
    chance = random.Random(seed)
    for _ in range(count):
        words = [f"--model-path {chance.choice(TARGETS)}", f"--tp {chance.choice((1, 2, 3, 4, 8))}"]
        words += chance.sample(FLAGS, chance.randint(0, 3))
        yield " ".join(words), chance.choice(DEVICES)


def essence(outcome: Outcome) -> tuple[object, ...]:
    """Return what must agree: verdict, stage by stage, error and place, pools, budget."""
    error = outcome.error
    place = (error.exception, error.message, error.path, error.line) if error else None
    stages = tuple((stage.name, stage.outcome) for stage in outcome.stages)
    return outcome.verdict, stages, place, outcome.pools, outcome.budget


def main() -> int:
    """Run the comparison. Returns 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--engine", default="0.5.18")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    engine = installed(chosen.engine)
    if engine is None:
        print(f"engine {chosen.engine} is not installed: errata engine install {chosen.engine}", file=sys.stderr)
        return 3
    saving = tuple(entry.target for entry in standins.REGISTRY.values() if entry.kind == "cost")
    home = profiles().find(DEVICES[0]).device
    compared = differing = 0
    with started(engine, home) as forked:
        for line, name in commands(chosen.count, chosen.seed):
            device = profiles().find(name).device
            first = forked.check(line, hardware=device)
            nothing = (Request(("--no-such-flag",), device),)
            with started(engine, device, warmup=nothing, without=saving) as fresh:
                second = fresh.check(line)
            compared += 1
            if compared % 25 == 0:
                print(f"{compared} commands compared, {differing} differ so far", file=sys.stderr, flush=True)
            if essence(first) != essence(second):
                differing += 1
                print(f"{name}: {line}\n  forked: {essence(first)}\n  fresh:  {essence(second)}", flush=True)
    print(f"{compared} commands compared, {differing} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
