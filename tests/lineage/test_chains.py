"""Records as chains of sites: ids for ever, whatever was ingested in whatever order."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.lineage.chains import Lineage, Pin, extended, lineages, version_key
from app.lineage.identity import site_ids
from app.lineage.ledger import Ledger
from app.mine.model import MinedRelease, Site
from tests.lineage.sites import release, site

REPOSITORY = "acme/demo"
WORDS = ("pool", "page", "head", "draft", "dtype", "graph", "token", "layer")


def drifting(seed: int, count: int = 5) -> list[MinedRelease]:
    """Return releases of one package that changes as real ones do: moves, rewordings, departures, returns."""
    chance = random.Random(seed)
    sites = [_any_site(chance) for _ in range(14)]
    attic: list[Site] = []
    releases = []
    for number in range(count):
        releases.append(release(f"1.{number}", *(_at(one, line) for line, one in enumerate(sites, start=1))))
        sites = [_changed(one, chance) for one in sites]
        attic += sites[:1]
        sites = sites[1:] + [_any_site(chance)] + ([attic[0]] if chance.random() < 0.4 else [])
        chance.shuffle(sites)
    return releases


def _any_site(chance: random.Random) -> Site:
    text = " ".join(chance.choices(WORDS, k=chance.choice((1, 2, 6))))
    return site(text, path=chance.choice(("demo/a.py", "demo/b.py")), function=chance.choice(("f", "C.g", "h")))


def _changed(one: Site, chance: random.Random) -> Site:
    match chance.randrange(8):
        case 0:
            return site(one.template.text, path="demo/c.py", function=one.function)
        case 1:
            return site(one.template.text, path=one.path, function="C.moved")
        case 2:
            return site(one.template.text + " " + chance.choice(WORDS), path=one.path, function=one.function)
        case _:
            return one


def _at(one: Site, line: int) -> Site:
    return site(one.template.text, path=one.path, function=one.function, line=line)


def answers(records: Iterable[Lineage]) -> dict[str, str]:
    """Return which record answers to which id."""
    found: dict[str, str] = {}
    for record in records:
        for name in (record.id, *record.aliases):
            assert found.setdefault(name, record.id) == record.id
    return found


def records(releases: Sequence[MinedRelease], ledger: Ledger | None = None) -> tuple[Lineage, ...]:
    ordered = sorted(releases, key=lambda one: version_key(one.version))
    return lineages(REPOSITORY, ordered, ledger=ledger).records


@given(st.integers(0, 10_000))
def test_every_site_id_answers_to_the_record_that_has_it(seed: int) -> None:
    releases = drifting(seed)

    found = records(releases)

    names = answers(found)
    for record in found:
        for r, i in record.sites:
            assert names[site_ids(REPOSITORY, releases[r].sites)[i]] == record.id
    assert sum(len(record.sites) for record in found) == sum(len(one.sites) for one in releases)


@given(st.integers(0, 10_000), st.data())
def test_with_a_ledger_any_releases_in_any_order_give_the_same_ids(seed: int, data: st.DataObject) -> None:
    releases = drifting(seed)
    ledger = extended(Ledger(), REPOSITORY, releases)
    whole = {(releases[r].version, i): record.id for record in records(releases, ledger) for r, i in record.sites}
    some = data.draw(st.permutations(releases).flatmap(lambda p: st.integers(1, len(p)).map(lambda n: p[:n])))

    ordered = sorted(some, key=lambda one: version_key(one.version))
    partial = {(ordered[r].version, i): record.id for record in records(some, ledger) for r, i in record.sites}

    assert partial == {place: name for place, name in whole.items() if place in partial}
    assert len(partial) == sum(len(one.sites) for one in some)


@given(st.integers(0, 10_000), st.integers(1, 4))
def test_a_ledger_grows_without_changing(seed: int, first: int) -> None:
    releases = drifting(seed)
    early = extended(Ledger(), REPOSITORY, releases[:first])

    late = extended(early, REPOSITORY, releases)

    assert late.sections[:1] == early.sections
    before = answers(records(releases[:first], early))
    after = answers(records(releases, late))
    assert all(after[name] == record for name, record in before.items())


@given(st.integers(0, 10_000))
def test_no_record_has_two_sites_of_one_release(seed: int) -> None:
    for record in records(drifting(seed)):
        assert len({r for r, _ in record.sites}) == len(record.sites)


LONG = "the page size must be a multiple of the block size of this backend"


def test_an_error_that_comes_back_is_one_record() -> None:
    found = records([release("1.0", site(LONG)), release("1.1"), release("1.2", site(LONG, line=8))])

    assert [record.sites for record in found] == [((0, 0), (2, 0))]


def test_the_id_is_that_of_the_earliest_release_and_the_others_are_aliases() -> None:
    old, new = release("1.0", site(LONG)), release("1.1", site(LONG + " now"))

    (record,) = records([new, old])

    assert record.id == site_ids(REPOSITORY, old.sites)[0]
    assert record.aliases == tuple(site_ids(REPOSITORY, new.sites))


def test_a_skipped_release_does_not_part_a_record() -> None:
    first, last = release("1.0", site(LONG)), release("1.9", site(LONG + " now", path="demo/b.py"))

    assert len(records([first, last])) == 1


def test_versions_are_ordered_as_versions() -> None:
    assert sorted(["0.5.10", "0.5.9", "0.5.9.post1", "main"], key=version_key) == [
        "main",
        "0.5.9",
        "0.5.9.post1",
        "0.5.10",
    ]


def pinned(*sites: Site, pin: Pin) -> tuple[dict[str, str], list[str]]:
    found = lineages(REPOSITORY, [release("1.0", *sites)], pins=[pin])
    return dict(found.unmatched), [record.id for record in found.records]


def test_a_pin_names_the_record_and_the_mined_id_becomes_an_alias() -> None:
    mined = release("1.0", site(LONG))

    found = lineages(REPOSITORY, [mined], pins=[Pin("a" * 16, "ValueError", LONG, "check")])

    assert [(r.id, r.aliases) for r in found.records] == [("a" * 16, tuple(site_ids(REPOSITORY, mined.sites)))]


@pytest.mark.parametrize(
    "wrong", [{"message": "other"}, {"function": "f"}, {"exception": "KeyError"}, {"path": "x.py"}]
)
def test_a_pin_that_fits_no_site_is_told(wrong: dict[str, str]) -> None:
    values = {"id": "a" * 16, "exception": "ValueError", "message": LONG, "function": "check"}

    unmatched, ids = pinned(site(LONG), pin=Pin(**(values | wrong)))  # type: ignore[arg-type]

    assert "no site" in unmatched["a" * 16]
    assert "a" * 16 not in ids


def test_a_pin_that_fits_several_records_needs_a_path_or_line() -> None:
    two = (site(LONG), site(LONG, path="demo/b.py", line=40))

    assert "2 records fit" in pinned(*two, pin=Pin("a" * 16, "ValueError", LONG, "check"))[0]["a" * 16]
    assert pinned(*two, pin=Pin("a" * 16, "ValueError", LONG, "check", line=39))[0] == {}
    assert pinned(*two, pin=Pin("a" * 16, "ValueError", LONG, "check", path="demo/b.py"))[0] == {}


def test_a_pin_may_name_a_bare_assert_by_its_condition() -> None:
    bare = site(condition="size > 0", exception="AssertionError", kind="assert")

    unmatched, ids = pinned(bare, pin=Pin("a" * 16, "AssertionError", "size > 0", "check"))

    assert (unmatched, ids) == ({}, ["a" * 16])
