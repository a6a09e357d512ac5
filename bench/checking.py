"""A check service as the site makes it, for measurements: the installed engines, one worker, no cache of answers."""

from __future__ import annotations

from app.check import hardware
from app.check.cache import OutcomeCache
from app.check.catalogue import catalogue
from app.check.install import Engines
from app.check.pool import Bounds, SandboxPool
from app.check.service import CheckService
from app.settings import Settings

PATIENT = Bounds(workers=1, engines=1, wait_s=300.0, start_s=600.0)


def service(bounds: Bounds = PATIENT) -> CheckService:
    """Return a service over the engines under `var/`; its pool must be closed by the caller."""
    settings = Settings.from_environment()
    engines = Engines(settings.cache_dir / "engines", settings.check_engine)
    return CheckService(SandboxPool(bounds), engines, catalogue(), hardware.profiles(), cache=OutcomeCache())
