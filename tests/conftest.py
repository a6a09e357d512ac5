"""What all tests share."""

from __future__ import annotations

from hypothesis import settings

# A test never times: a deadline would fail on a busy machine only.
settings.register_profile("errata", deadline=None)
settings.load_profile("errata")
