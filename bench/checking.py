"""A check service as the site makes it, for measurements: the installed engines, one worker, no cache of answers."""

from __future__ import annotations

from dataclasses import replace

from app.check import hardware
from app.check.cache import OutcomeCache
from app.check.catalogue import catalogue
from app.check.install import Engines
from app.check.pool import CHECK_LIMITS, Bounds, SandboxPool
from app.check.service import CheckService
from app.settings import Settings

# A measurement may share its machine: time limits are not what it measures.
PATIENT = Bounds(
    workers=1, engines=1, wait_s=300.0, start_s=600.0, limits=replace(CHECK_LIMITS, wall_s=300.0, cpu_s=120)
)  # fmt: skip


def service(bounds: Bounds = PATIENT) -> CheckService:
    """Return a service over the engines under `var/`; its pool must be closed by the caller."""
    settings = Settings.from_environment()
    engines = Engines(settings.cache_dir / "engines", settings.check_engine)
    return CheckService(SandboxPool(bounds), engines, catalogue(), hardware.profiles(), cache=OutcomeCache())
