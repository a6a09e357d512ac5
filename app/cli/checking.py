"""How the check service is put together from the settings."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.check.model_config import Given
    from app.check.pool import Bounds
    from app.settings import Settings
    from app.store.engine import Store
    from app.web.checks import Checks

_UNCONFINED = (
    "errata: WARNING: ERRATA_UNSAFE_NO_SANDBOX is set. Checks run unconfined, with the rights of this process: "
    "whoever submits a command can read, write and connect as you can."
)


def bounds(chosen: Settings) -> Bounds:
    """Return the bounds of the pool. Says loudly when confinement is off."""
    from app.check.pool import Bounds

    usual = Bounds()
    if chosen.unsafe_no_sandbox:
        print(_UNCONFINED, file=sys.stderr, flush=True)
    return replace(
        usual,
        workers=chosen.check_workers or usual.workers,
        waiting=chosen.check_waiting,
        engines=chosen.check_engines,
        limits=replace(
            usual.limits,
            wall_s=chosen.check_timeout_s,
            cpu_s=max(1, round(chosen.check_timeout_s)),
            memory_bytes=chosen.check_memory_mib << 20,
        ),
        confined=not chosen.unsafe_no_sandbox,
    )


def checks(chosen: Settings, store: Store, *, warm: bool, linked: bool = True) -> Checks:
    """Return the checks of one process."""
    from app.check.install import Engines
    from app.cli.engine import folder
    from app.web.checks import Checks

    return Checks(
        store,
        Engines(folder(chosen), chosen.check_engine),
        bounds(chosen),
        warm=warm,
        linked=linked,
        fetch=fetcher(chosen),
    )


def fetcher(chosen: Settings) -> Callable[[str], Awaitable[Given]] | None:
    """Return what fetches a configuration from the model hub; None where no hub is set."""
    if not chosen.check_hub:
        return None
    from app.check.model_config import Hub

    hub = Hub(chosen.check_hub)

    async def fetch(name: str) -> Given:
        return await asyncio.to_thread(hub.config, name)

    return fetch
