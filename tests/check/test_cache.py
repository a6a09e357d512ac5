"""Outcomes that are kept."""

from __future__ import annotations

import asyncio

import pytest

from app.check.cache import OutcomeCache, key
from app.check.protocol import Hardware, Lost, Outcome, Request
from app.errors import TooMany


def outcome(text: str) -> Outcome:
    return Outcome("pass", text, ())


def test_the_least_recently_used_goes_first() -> None:
    cache = OutcomeCache(entries=2)
    cache.put(b"a", outcome("a"))
    cache.put(b"b", outcome("b"))
    cache.get(b"a")

    cache.put(b"c", outcome("c"))

    assert [cache.get(k) is not None for k in (b"a", b"b", b"c")] == [True, False, True]


def test_the_size_is_bounded() -> None:
    cache = OutcomeCache(size_bytes=20_000)

    for number in range(100):
        cache.put(b"%d" % number, outcome("x" * 1000))
    cache.put(b"large", outcome("x" * 10_000))

    assert cache.state()["bytes"] <= 20_000
    assert cache.get(b"large") is None
    assert cache.get(b"99") is not None


def test_equal_requests_at_once_are_run_once() -> None:
    runs = []

    async def run() -> Outcome:
        runs.append(1)
        await asyncio.sleep(0.01)
        return outcome("x")

    async def ask() -> list[tuple[Outcome | Lost, bool]]:
        cache = OutcomeCache()
        return await asyncio.gather(*(cache.get_or_run(b"k", run) for _ in range(5)))

    answers = asyncio.run(ask())

    assert len(runs) == 1
    assert [known for _, known in answers] == [False, True, True, True, True]


def test_losses_and_errors_are_not_kept() -> None:
    cache = OutcomeCache()

    async def lose() -> Lost:
        return Lost("died")

    async def fail() -> Outcome:
        raise TooMany("no")

    async def ask() -> None:
        assert await cache.get_or_run(b"k", lose) == (Lost("died"), False)
        with pytest.raises(TooMany):
            await cache.get_or_run(b"k", fail)
        assert cache.get(b"k") is None

    asyncio.run(ask())


def test_who_waits_runs_himself_when_the_first_goes_away() -> None:
    runs = []

    async def run() -> Outcome:
        runs.append(1)
        await asyncio.sleep(0.05)
        return outcome("x")

    async def ask() -> tuple[Outcome | Lost, bool]:
        cache = OutcomeCache()
        first = asyncio.create_task(cache.get_or_run(b"k", run))
        await asyncio.sleep(0)
        second = asyncio.create_task(cache.get_or_run(b"k", run))
        await asyncio.sleep(0.01)
        first.cancel()
        return await second

    assert asyncio.run(ask()) == (outcome("x"), False)
    assert len(runs) == 2


def test_a_key_is_of_everything_that_is_sent() -> None:
    request = Request(("--x",), Hardware("h", "cpu"))
    keys = {
        key("1", "a", request),
        key("2", "a", request),
        key("1", "b", request),
        key("1", "a", Request(("--y",), Hardware("h", "cpu"))),
        key("1", "a", Request(("--x",), Hardware("h", "cpu"), environment={"A": "1"})),
    }

    assert len(keys) == 5
    assert key("1", "a", request) in keys
