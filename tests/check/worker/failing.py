"""Code that fails in the ways that start-up code does. Apart from the tests, whose asserts pytest rewrites."""

from __future__ import annotations

import argparse
import json
from typing import Any


class Pool:
    """Something whose methods fail."""

    size = 1

    def refuse(self, size: int) -> None:
        if size > 3:
            if size < 10:
                print("small")
            else:
                raise ValueError(
                    f"size {size} is too large for "
                    "this pool"
                )  # fmt: skip

    def bare(self, size: int) -> None:
        assert size % 64 == 0

    def missing(self) -> None:
        self.no_such_thing  # type: ignore[attr-defined]  # noqa: B018

    def wrong_message(self) -> None:
        raise ValueError(f"{self.no_such_thing}")  # type: ignore[attr-defined]

    def blank(self, kernel: Any) -> None:
        kernel + "x"

    def attribute(self, module: Any) -> None:
        module.no_such_thing  # noqa: B018

    def index(self) -> None:
        [1][self.size]

    def library(self) -> None:
        json.loads("{")

    def parse(self) -> None:
        argparse.ArgumentParser(prog="sglang serve").parse_args(["--no-such-flag"])
