"""Titles of mined records."""

from __future__ import annotations

import pytest

from app.mine.model import Site
from app.store.titles import title
from tests.store.conftest import site


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (site("Page size {p} is wrong. Use a power of two."), "Page size … is wrong"),
        (site("Failed: {error}"), "Failed: …"),
        (site("first line\nsecond line"), "first line"),
        (site("  spaced    out  "), "spaced out"),
        (site("e.g. v0.5.2 is too old"), "e.g. v0.5.2 is too old"),
        (site("{error}"), "ValueError in Pool.check"),
        (site(""), "ValueError in Pool.check"),
        (site("", function="<module>"), "ValueError in pool.py"),
        (site("", kind="assert", exception="AssertionError", condition="a  ==\n b"), "Assertion failed: a == b"),
        (site("word " * 60), ("word " * 19).strip() + "…"),
    ],
)
def test_title(of: Site, expected: str) -> None:
    assert title(of) == expected


def test_a_title_without_spaces_is_cut_too() -> None:
    assert title(site("x" * 300)) == "x" * 96 + "…"
