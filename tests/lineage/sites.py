"""Sites with plain values, for tests of identity."""

from __future__ import annotations

from typing import Any

from app.mine.model import MinedRelease, Site, Template


def site(text: str = "", **values: Any) -> Site:
    """Return a site whose template is literal text, or has the given `parts`."""
    parts = values.pop("parts", (text,))
    line = values.pop("line", 1)
    defaults: dict[str, Any] = {
        "kind": "raise",
        "exception": "ValueError",
        "path": "demo/a.py",
        "function": "check",
        "statement": "raise ValueError(",
    }
    return Site(**(defaults | values), template=Template(parts), line=line, end_line=line)


def release(version: str, *sites: Site) -> MinedRelease:
    """Return a release of these sites, in the order that mining gives them."""
    ordered = tuple(sorted(sites, key=lambda one: (one.path, one.line)))
    return MinedRelease("demo", version, version.rjust(64, "0"), 1, 1, (), {}, ordered)
