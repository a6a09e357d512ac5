"""Site ids within one release."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.lineage.identity import site_ids
from app.mine.model import Site, Template
from tests.lineage.sites import site

texts = st.sampled_from(["", "no pool", "size is not a multiple", "x is not None"])
sites = st.lists(
    st.builds(
        site,
        texts,
        exception=st.sampled_from(["ValueError", "AssertionError"]),
        path=st.sampled_from(["demo/a.py", "demo/b.py"]),
        function=st.sampled_from(["f", "C.f"]),
        guards=st.sampled_from([(), ("a",), ("a", "b")]),
        line=st.integers(1, 9),
    ),
    max_size=12,
)


def the_id(one: Site) -> str:
    return site_ids("acme/demo", [one])[0]


@given(sites)
def test_ids_of_one_release_are_distinct_hex(drawn: list[Site]) -> None:
    ids = site_ids("acme/demo", drawn)

    assert len(set(ids)) == len(drawn)
    assert all(re.fullmatch(r"[0-9a-f]{16}", one) for one in ids)


@given(sites, st.randoms(use_true_random=False))
def test_ids_do_not_hang_on_the_order_of_sites(drawn: list[Site], random: object) -> None:
    drawn = [replace(one, line=line) for line, one in enumerate(drawn)]
    shuffled = list(drawn)
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    assert dict(zip(drawn, site_ids("r", drawn), strict=True)) == dict(
        zip(shuffled, site_ids("r", shuffled), strict=True)
    )


@pytest.mark.parametrize(
    "change", [{"line": 99}, {"path": "demo/other.py"}, {"guards": ("x",)}, {"statement": "raise"}]
)
def test_a_single_site_keeps_its_id_through(change: dict[str, object]) -> None:
    one = site("no pool", guards=("a",))

    assert the_id(replace(one, **change)) == the_id(one)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change", [{"exception": "KeyError"}, {"function": "g"}, {"template": Template(("no pools",))}]
)
def test_what_a_site_is_decides_its_id(change: dict[str, object]) -> None:
    one = site("no pool")

    assert the_id(replace(one, **change)) != the_id(one)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (site(parts=("no ", 'm["name"]', " here")), site(parts=("no ", "m[ 'name' ]", " here"))),
        (site("two\n   lines"), site("two lines")),
        (site(condition="a==b", exception="AssertionError"), site(condition="a == b", exception="AssertionError")),
    ],
)
def test_formatting_is_no_difference(left: Site, right: Site) -> None:
    assert the_id(left) == the_id(right)


def test_literal_text_and_hole_are_not_the_same() -> None:
    assert the_id(site("no name here")) != the_id(site(parts=("no ", "name", " here")))


def test_equal_sites_are_told_apart_by_path_then_guard_then_order() -> None:
    plain = site("no pool")
    elsewhere = site("no pool", path="demo/b.py")
    guarded = site("no pool", guards=("a",), line=2)
    again = site("no pool", guards=("a",), line=3)

    alone = site_ids("r", [plain, elsewhere])
    crowded = site_ids("r", [plain, elsewhere, guarded, again])

    assert alone[1] == crowded[1]
    assert len({*alone, *crowded}) == 5
