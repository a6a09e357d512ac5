"""Links between two neighbouring releases."""

from __future__ import annotations

import pytest

from app.lineage.links import links
from app.mine.model import Site
from tests.lineage.sites import site

LONG = "the number of attention heads must be divisible by the tensor parallel size"


def how(old: Site, new: Site) -> str | None:
    found = links([old], [new])
    return found[0].how if found else None


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (site(LONG, line=3), site(LONG, line=400), "same"),
        (site(LONG), site(LONG, path="demo/b.py"), "moved file"),
        (site(LONG), site(LONG, function="C.check"), "moved function"),
        (site(LONG), site(LONG, function="g", path="demo/b.py"), "moved function"),
        (site(LONG), site(LONG, exception="TypeError"), "other exception"),
        (site(LONG), site(LONG.replace("must be", "has to be")), "reworded"),
        (site(LONG), site(LONG.replace("must be", "has to be"), function="g"), "reworded"),
        (site(LONG), site("no pool is left for new requests", function="g"), None),
        (site("no pool"), site("no pool", path="demo/b.py", function="g"), None),
        (site(condition="x is not None"), site(condition="x is not None", function="g", path="demo/b.py"), None),
        (site(condition="x is not None"), site(condition="x is not None", line=7), "same"),
        (site(condition="a == b", kind="assert"), site(condition="c in d.values()", kind="assert"), None),
    ],
)
def test_a_site_is_followed(old: Site, new: Site, expected: str | None) -> None:
    assert how(old, new) == expected


def test_stronger_links_come_first() -> None:
    old = [site(LONG), site(LONG, function="g")]
    new = [site(LONG, function="g", line=2), site(LONG, function="h", line=9)]

    found = {(link.older, link.newer): link.how for link in links(old, new)}

    assert found == {(1, 0): "same", (0, 1): "moved function"}


def test_equal_guards_speak_for_a_rewording() -> None:
    old = site("cannot start now", guards=("self.busy",))
    news = [
        site("cannot begin yet", line=1, guards=("self.empty",)),
        site("cannot begin yet", line=2, guards=("self.busy",)),
    ]

    assert [(link.older, link.newer) for link in links([old], news)] == [(0, 1)]


def test_a_site_has_one_link_at_most() -> None:
    found = links([site(LONG, line=1), site(LONG, line=2)], [site(LONG, line=5)])

    assert [(link.older, link.newer) for link in found] == [(0, 0)]
