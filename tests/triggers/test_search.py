"""The search finds commands for a small start-up that is really run and looked at."""

from __future__ import annotations

import importlib.util
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from app.check.catalogue import catalogue
from app.check.hardware import profiles
from app.check.options import Options
from app.check.protocol import Option
from app.triggers.model import Site
from app.triggers.proposals import Proposer
from app.triggers.reads import Release
from app.triggers.reasons import reason
from app.triggers.runner import Launch, Result, Runner, Seen
from app.triggers.search import FIRST, Search
from app.triggers.tracer import Watch

PATH = "sglang/srt/server_args.py"
SOURCE = """
def is_npu():
    return False


class ServerArgs:
    def check(self):
        if self.page_size % 48 == 0 and self.kind == "b":
            raise ValueError("both")
        if self.kind not in ("a", "b", "c"):
            raise ValueError("no choice")
        if is_npu():
            raise ValueError("elsewhere")
        if self.deep:
            self.deeper()

    def deeper(self):
        assert self.page_size > 7, "small"

    def never(self):
        raise ValueError("of no use")
"""
LINES = {"both": 9, "no choice": 11, "elsewhere": 13, "small": 18, "never": 21}
OPTIONS = Options(
    "1.0",
    (
        Option(("--page-size",), "page_size", default=1, type="int"),
        Option(("--kind",), "kind", choices=("a", "b", "c"), default="a", type="str"),
        Option(("--deep",), "deep", nargs="0", default=False, type="bool"),
    ),
)


class SmallRunner(Runner):
    """Runs the source above in this process."""

    def __init__(self, folder: Path, goals: Mapping[str, Sequence[int]]) -> None:
        self.folder, self.goals = folder, {path: list(lines) for path, lines in goals.items()}
        self.count = 0
        spec = importlib.util.spec_from_file_location("small_start_up", folder / PATH)
        assert spec is not None and spec.loader is not None
        self.module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)

    async def run(self, launches: Iterable[Launch]) -> list[Result]:
        return [self.started(launch) for launch in launches]

    def started(self, launch: Launch) -> Result:
        self.count += 1
        arguments = self.module.ServerArgs()
        for option in OPTIONS:
            setattr(arguments, option.dest, option.default)
        words = shlex.split(launch.command.replace("=", " "))
        for i, word in enumerate(words):
            if (option_ := OPTIONS.named(word)) is not None and word.startswith("--") and option_.names == (word,):
                value: Any = True if option_.nargs == "0" else words[i + 1]
                setattr(arguments, option_.dest, int(value) if option_.type == "int" else value)
        watch = Watch(self.folder, self.goals)
        place: dict[str, Any] = {}
        before = sys.gettrace()
        sys.settrace(watch.call)
        try:
            arguments.check()
        except Exception as error:
            trace = error.__traceback__
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            assert trace is not None
            place = {"path": PATH, "line": trace.tb_lineno, "explicit": True, "exception": type(error).__name__}
        finally:
            sys.settrace(before)
        seen = {(path, entry): Seen(last, tests) for path, entry, last, tests in watch.seen()}
        return Result(launch, "fail" if place else "pass", "arguments", **place, seen=seen)


@pytest.fixture
def search(tmp_path: Path) -> Search:
    file = tmp_path / PATH
    file.parent.mkdir(parents=True)
    file.write_text(SOURCE)
    sites = [Site(f"{line:016x}", PATH, line, line, "check", "ValueError", text) for text, line in LINES.items()]
    proposer = Proposer(Release(tmp_path), OPTIONS, catalogue(), profiles())
    return Search(
        lambda goals: SmallRunner(tmp_path, goals), proposer, sites,
        opened=lambda site: True, seed=1, say=lambda text: None,
    )  # fmt: skip


async def hunted(search: Search) -> set[int]:
    await search.run([search.proposer.start(FIRST)])
    await search.hunt(400, lambda site: True, lambda path: True)
    return {line for _, line in search.reached}


def lines(search: Search) -> set[int]:
    import asyncio

    return asyncio.run(hunted(search))


def test_conditions_are_turned_one_after_the_other_and_functions_are_opened(search: Search) -> None:
    assert lines(search) == {LINES["both"], LINES["small"]}

    command, _ = search.reached[PATH, LINES["both"]]
    assert int((command.option("--page-size") or ("",))[0]) % 48 == 0
    assert command.option("--kind") == ("b",)


def test_two_searches_with_one_seed_are_one_search(search: Search, tmp_path: Path) -> None:
    lines(search)
    sites = list({site.place: site for site in search.sites.values()}.values())
    again = Search(
        lambda goals: SmallRunner(tmp_path, goals), search.proposer, sites,
        opened=lambda site: True, seed=1, say=lambda text: None,
    )  # fmt: skip

    lines(again)

    assert {p: str(c) for p, (c, _) in again.reached.items()} == {p: str(c) for p, (c, _) in search.reached.items()}


def test_what_code_can_show_to_be_out_of_reach_is_told_from_what_was_not_found(search: Search) -> None:
    lines(search)

    told = {
        text: reason(search, search.hunts[PATH, line])[0]
        for text, line in LINES.items()
        if (PATH, line) not in search.reached
    }

    assert told == {"no choice": "every choice passes", "elsewhere": "same on every machine", "never": "no caller"}
