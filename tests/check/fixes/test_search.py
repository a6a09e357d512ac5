"""The search runs what it shows, finds the smallest edits, and stops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest

from app.check.fixes.arguments import given
from app.check.fixes.changes import Change, Drop, Put, Release, Variant, text
from app.check.fixes.proposals import Failure, Proposal
from app.check.fixes.search import USUAL, Attempt, Budget, Found, Search, Tried
from app.check.protocol import Error
from app.errors import TooMany
from tests.check.fixes.table import NEXT, OPTIONS, table, variant

Rule = Callable[[Variant], str]
"""What a made-up server says of a variant: the error it meets, "" when it starts."""


def error(what: str) -> Error:
    return Error("ValueError", what, f"sglang/{what}.py", 1, "f", "f", "raise", explicit=True)


@dataclass
class Server:
    """Runs variants by a rule and remembers them."""

    rule: Rule
    delay_s: float = 0.0
    ran: list[str] = field(default_factory=list)

    async def run(self, asked: Variant) -> Tried:
        self.ran.append(" ".join(asked.arguments))
        await asyncio.sleep(self.delay_s)
        what = self.rule(asked)
        return Tried("fail", what, Failure(asked, error(what), "pools")) if what else Tried("pass")


def drops(failure: Failure) -> list[Proposal]:
    """Propose to drop each option, in the order of the command."""
    present = given(failure.variant.arguments, OPTIONS)
    return [Proposal((Drop(one.key, one.name),), 0.1 * place) for place, one in enumerate(present)]


def found(
    rule: Rule, line: str, propose: Callable[[Failure], Sequence[Proposal]] = drops, budget: Budget = USUAL
) -> tuple[Found, Server]:
    server = Server(rule)
    start = variant(line)
    search = Search(server.run, propose, table, budget)
    return asyncio.run(search.find(Failure(start, error(rule(start)), "arguments"))), server


def texts(attempts: Sequence[Attempt]) -> list[str]:
    return [text(attempt.edit) for attempt in attempts]


def test_one_change_is_enough() -> None:
    result, server = found(lambda v: "bad" if "--tp" in v.arguments else "", "--page-size 1 --tp 2")

    assert texts(result.fixes) == ["drop --tp"]
    assert result.ended == "enough"
    assert len(server.ran) == len(set(server.ran))


def test_another_error_is_gone_after() -> None:
    def rule(asked: Variant) -> str:
        return "first" if "--tp" in asked.arguments else "second" if "--page-size" in asked.arguments else ""

    result, _ = found(rule, "--tp 2 --page-size 1 --served-name x")

    assert texts(result.fixes) == ["drop --tp and drop --page-size"]


def test_an_error_of_two_settings_is_gone_after_in_both() -> None:
    """The place stays, the text says that half of it is done."""
    edits: list[Change] = [
        Put("--attention-backend", ("triton",), "attention_backend", ("fa3",)),
        Put("--served-name", ("x",), "served_name", ("y",)),
    ]  # fmt: skip

    def failure(asked: Variant) -> Failure | None:
        bad = [word for word in ("fa3", "y") if word in asked.arguments]
        return Failure(asked, replace(error("same"), message=f"bad: {bad}"), "pools") if bad else None

    async def run(asked: Variant) -> Tried:
        refused = failure(asked)
        return Tried("pass") if refused is None else Tried("fail", "", refused)

    first = failure(variant("--attention-backend fa3 --served-name y"))
    assert first is not None
    result = asyncio.run(Search(run, lambda f: [Proposal((one,), 0.0) for one in edits], table).find(first))

    assert texts(result.fixes) == ["change --attention-backend fa3 to triton and change --served-name y to x"]


def test_a_part_that_is_enough_replaces_the_whole() -> None:
    """Dropping --tp only moves the error to the one that dropping --page-size alone would have avoided."""

    def rule(asked: Variant) -> str:
        if "--page-size" not in asked.arguments:
            return ""
        return "first" if "--tp" in asked.arguments else "second"

    def propose(failure: Failure) -> list[Proposal]:
        key, name = ("tp_size", "--tp") if failure.error.message == "first" else ("page_size", "--page-size")
        return [Proposal((Drop(key, name),), 0.0)]

    result, server = found(rule, "--tp 2 --page-size 1", propose)

    assert texts(result.fixes) == ["drop --page-size"]
    assert "--tp 2" in server.ran


@pytest.mark.parametrize("size", [2, 3])
def test_an_edit_of_several_changes_is_smallest(size: int) -> None:
    options = [("tp_size", "--tp"), ("page_size", "--page-size"), ("served_name", "--served-name")][:size]
    whole = Proposal(tuple(Drop(key, name) for key, name in options), 0.0)
    line = "--tp 2 --page-size 1 --served-name x"

    needed, _ = found(lambda v: "bad" if any(n in v.arguments for _, n in options) else "", line, lambda f: [whole])
    not_needed, _ = found(lambda v: "bad" if "--tp" in v.arguments else "", line, lambda f: [whole])

    assert [len(fix.edit) for fix in needed.fixes] == [size]
    assert texts(not_needed.fixes) == ["drop --tp"]


def test_the_edit_that_loses_least_comes_first() -> None:
    edits: list[Change] = [
        Drop("tp_size", "--tp"), Put("--tp", ("1",), "tp_size", ("2",)), Release(NEXT, loss=0.5),
    ]  # fmt: skip

    result, _ = found(
        lambda v: "bad" if "2" in v.arguments and v.engine != NEXT else "", "--tp 2",
        lambda f: [Proposal((change,), 0.0) for change in edits],
    )  # fmt: skip

    assert texts(result.fixes) == ["upgrade to SGLang 1.1", "change --tp 2 to 1", "drop --tp"]


def test_what_helps_nothing_ends_with_what_was_tried() -> None:
    result, server = found(lambda v: "bad", "--tp 2 --page-size 1")

    assert (result.fixes, result.ended) == ((), "nothing left")
    assert len(result.attempts) == len(server.ran) == 2


def test_a_search_is_bounded() -> None:
    endless = [Proposal((Put("--page-size", (str(n),), "page_size"),), 0.0) for n in range(2, 100)]

    result, server = found(lambda v: "bad", "--tp 2", lambda f: endless, Budget(checks=5))

    assert (len(server.ran), result.ended) == (5, "checks")


def test_a_search_that_takes_too_long_stops() -> None:
    server = Server(lambda v: "bad", delay_s=30)
    start = variant("--tp 2 --page-size 1")
    search = Search(server.run, drops, table, Budget(seconds=0.05, grace_s=0.05))

    result = asyncio.run(asyncio.wait_for(search.find(Failure(start, error("bad"), "arguments")), 10))

    assert (result.fixes, result.ended) == ((), "time")


def test_a_slow_machine_runs_the_least() -> None:
    server = Server(lambda v: "bad" if "--served-name" in v.arguments else "", delay_s=0.05)
    start = variant("--tp 2 --page-size 1 --graph-bs 1 --served-name x")
    search = Search(server.run, drops, table, Budget(seconds=0.0, at_once=1))

    result = asyncio.run(search.find(Failure(start, error("bad"), "arguments")))

    assert texts(result.fixes) == ["drop --served-name"]


def test_a_busy_server_is_not_pressed() -> None:
    calls = 0

    async def busy(asked: Variant) -> Tried:
        nonlocal calls
        calls += 1
        raise TooMany("busy")

    start = variant("--tp 2 --page-size 1 --served-name x")
    search = Search(busy, drops, table, Budget(at_once=1))

    result = asyncio.run(search.find(Failure(start, error("bad"), "arguments")))

    assert (calls, result.ended, result.attempts[0].tried.verdict) == (1, "busy", "unknown")


def test_a_cancelled_search_cancels_its_checks() -> None:
    ended: list[str] = []

    async def slow(asked: Variant) -> Tried:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return Tried("pass")

    async def leave() -> None:
        search = Search(slow, drops, table, Budget(at_once=2))
        task = asyncio.create_task(search.find(Failure(variant("--tp 2 --page-size 1"), error("x"), "arguments")))
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(leave())

    assert ended == ["cancelled", "cancelled"]


def test_a_start_that_is_not_decided_is_no_fix() -> None:
    async def undecided(asked: Variant) -> Tried:
        return Tried("unknown", "starts, but")

    start = variant("--tp 2")
    result = asyncio.run(Search(undecided, drops, table).find(Failure(start, error("x"), "arguments")))

    assert result.fixes == ()
    assert replace(result.attempts[0].tried, ms=0.0) == Tried("unknown", "starts, but")


def test_a_second_mistake_that_the_parser_finds_is_gone_after() -> None:
    def refused(asked: Variant) -> Failure | None:
        wrong = [word for word in ("--tp", "--page-size") if word in asked.arguments]
        said = replace(error("parser"), message=f"error: {wrong}", foreign="argparse")
        return Failure(asked, said, "arguments") if wrong else None

    async def run(asked: Variant) -> Tried:
        failure = refused(asked)
        return Tried("fail", "", failure) if failure else Tried("pass")

    start = refused(variant("--tp 2 --page-size 1"))
    assert start is not None

    result = asyncio.run(Search(run, drops, table, USUAL).find(start))

    assert texts(result.fixes) == ["drop --tp and drop --page-size"]
