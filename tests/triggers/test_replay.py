"""Every stored trigger still raises its error on its release."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from app.check import hardware
from app.check.cache import OutcomeCache
from app.check.catalogue import catalogue
from app.check.pool import CHECK_LIMITS, Bounds, SandboxPool
from app.check.service import CheckService
from app.triggers import model
from app.triggers.model import Trigger
from app.triggers.replay import Difference, replay
from app.triggers.runner import Runner
from tests.check.worker.conversation import ENGINES, installed

pytestmark = pytest.mark.engine
VERSION = "0.5.18"
BOUNDS = Bounds(
    workers=2, waiting=100_000, engines=5, wait_s=3600.0, start_s=300.0, limits=replace(CHECK_LIMITS, wall_s=60.0)
)


def replayed(triggers: list[Trigger]) -> list[Difference]:
    async def go() -> list[Difference]:
        service = CheckService(
            SandboxPool(BOUNDS), ENGINES, catalogue(), hardware.profiles(), cache=OutcomeCache(entries=0)
        )
        try:
            return await replay(Runner.of(service, VERSION), triggers)
        finally:
            await service.pool.close()

    return asyncio.run(go())


@pytest.fixture(scope="module")
def triggers() -> list[Trigger]:
    if installed(VERSION) is None:
        pytest.skip(f"engine {VERSION} is not installed")
    return model.load(model.file(VERSION))


def test_every_trigger_raises_its_site(triggers: list[Trigger]) -> None:
    assert triggers

    assert [(d.trigger.path, d.trigger.line, d.trigger.command, d.now) for d in replayed(triggers)] == []


def test_a_trigger_that_does_something_else_is_found(triggers: list[Trigger]) -> None:
    first, *_, last = [t for t in triggers if t.stage == "arguments"]

    swapped = [replace(first, command=last.command, hardware=last.hardware), last]

    assert [d.trigger for d in replayed(swapped)] == swapped[:1]
