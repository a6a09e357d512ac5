"""Identity and life on the pinned releases: the facts to hit, taken from the wheels themselves."""

from __future__ import annotations

import random
import re
import zipfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import orjson
import pytest

from app.lineage import ledger as ledgers
from app.lineage.chains import Lineage, extended, lineages
from app.lineage.identity import identity_text
from app.lineage.ledger import Ledger
from app.mine.model import MinedRelease
from app.settings import ROOT, Settings
from app.store import migrate, queries, sources, stored
from app.store.engine import Store

pytestmark = pytest.mark.corpus

REPOSITORY = "sgl-project/sglang"
LEDGER = ROOT / "data" / "lineage" / "sglang.tsv"
Releases = list[MinedRelease]


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    """The database that `make data` fills."""
    made = Store(Settings.from_environment().database_url)
    if not migrate.exists(made):
        pytest.skip("the pinned releases are not ingested: run `make data`")
    yield made
    made.close()


@pytest.fixture(scope="module")
def releases(store: Store) -> Releases:
    """The pinned releases of SGLang, oldest first."""
    pinned = [one.version for one in sources.pinned(ROOT / "data") if one.package == "sglang"]
    with store.reading() as connection:
        there = {one.version for one in queries.releases(connection, package="sglang")}
        if not there.issuperset(pinned):
            pytest.skip(f"not all of {', '.join(pinned)} are ingested: run `make data`")
        return [stored.mined_release(connection, "sglang", version) for version in pinned]


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    return ledgers.load(LEDGER)


def test_the_ledger_is_what_its_command_writes(releases: Releases, ledger: Ledger) -> None:
    made = Ledger()
    for section in ledger.sections:
        known = made.releases.union(section.releases)
        made = extended(made, REPOSITORY, [one for one in releases if one.version in known])

    assert ledger.releases == {one.version for one in releases}
    assert ledgers.text(made) == LEDGER.read_text(encoding="utf-8")


def names(releases: Releases, ledger: Ledger) -> dict[tuple[str, int], str]:
    """Return the record of every site, by release and index."""
    found: tuple[Lineage, ...] = lineages(REPOSITORY, releases, ledger=ledger).records
    return {(releases[r].version, i): one.id for one in found for r, i in one.sites}


def test_any_releases_give_the_same_ids(releases: Releases, ledger: Ledger) -> None:
    whole = names(releases, ledger)
    chance = random.Random(7)

    for count in (1, 2, 4):
        some = sorted(chance.sample(range(len(releases)), count))
        partial = names([releases[i] for i in some], ledger)
        assert partial == {place: whole[place] for place in partial}


def test_unchanged_templates_keep_their_id(releases: Releases, ledger: Ledger) -> None:
    name = names(releases, ledger)

    def by_text(release: MinedRelease) -> dict[tuple[str, str], set[str]]:
        found: dict[tuple[str, str], set[str]] = {}
        for i, site in enumerate(release.sites):
            found.setdefault((site.exception, identity_text(site)), set()).add(name[release.version, i])
        return found

    for older, newer in pairwise(releases):
        before, after = by_text(older), by_text(newer)
        both = before.keys() & after.keys()
        kept = sum(bool(before[text] & after[text]) for text in both)
        print(f"{older.version} -> {newer.version}: {kept} of {len(both)} templates keep their id")
        assert kept >= 0.99 * len(both)


def history(store: Store, record_id: str) -> dict[str, object]:
    with store.reading() as connection:
        found: dict[str, object] = orjson.loads(queries.document(connection, record_id).body)["history"]
    return found


def test_the_life_of_the_first_seed_record(store: Store, releases: Releases) -> None:
    found = history(store, "cb2a458448d957cf")

    assert [place["version"] for place in found["releases"]] == ["0.5.18", "0.5.19"]  # type: ignore[attr-defined]
    assert (found["first"], found["first_is_bound"], found["gone_since"]) == ("0.5.18", False, "0.5.20")


def test_the_life_of_the_second_seed_record(store: Store, releases: Releases) -> None:
    found = history(store, "ce5cbefa16d6fad4")

    places = {place["version"]: place["line"] for place in found["releases"]}  # type: ignore[attr-defined]
    assert list(places.values()) == [371, 420, 466, 477, 522, 597, 637]
    assert (found["first"], found["first_is_bound"], found["gone_since"]) == ("0.5.17", True, None)


# ---- an independent look: plain text search in the wheels, no parser and none of our code ----------

JOINED = re.compile(r"""(["'])\s*(?:#[^\n]*\n\s*)*[rfbRFB]{0,2}(["'])""")
RAISING = re.compile(r"\b(?:raise|assert)\b|set_finish_with_abort|error_msg|msg\b|return\b")


def sources_of(version: str) -> dict[str, str]:
    """Return the text of every Python file of a wheel, string pieces on several lines joined."""
    (wheel,) = Path(Settings.from_environment().cache_dir, "wheels").glob(f"sglang-{version}-*.whl")
    texts = {}
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(".py"):
                texts[name] = JOINED.sub("", archive.read(name).decode("utf-8-sig", "replace"))
    return texts


def says(text: str, literal: str) -> bool:
    """Tell whether a text has a literal close behind a word that raises or hands over."""
    start = text.find(literal)
    while start >= 0:
        if RAISING.search(text, max(0, start - 1200), start):
            return True
        start = text.find(literal, start + 1)
    return False


def sampled(store: Store, count: int) -> list[tuple[str, str, dict[str, str]]]:
    """Return (id, longest literal, path in the wheel by release) of raised records with a text of their own.

    Of a text that is returned and never raised, a text search cannot tell whether it reaches a user.
    """
    with store.reading() as connection:
        signatures = [
            s for s in queries.signatures(connection, package="sglang") if len(s.texts) == 1 and s.kind == "raise"
        ]
    # `{x=}` puts "x=" into the text, which the source has behind a brace: a last word like that is left out.
    literals = {s.record_id: re.sub(r"\S*=$", "", max(s.texts[0][0::2], key=len)).strip() for s in signatures}
    plain = [
        s for s in signatures if len(literals[s.record_id]) >= 30 and not set(literals[s.record_id]) & set("\\\"'\n{}")
    ]
    crowded = "\n".join(literals.values())
    alone = [s for s in plain if crowded.count(literals[s.record_id]) == 1]
    chosen = random.Random(11).sample(alone, count)
    return [
        (s.record_id, literals[s.record_id], {v: seen.path for seen in s.seen for v in seen.versions}) for s in chosen
    ]


def test_a_plain_text_search_agrees_with_two_hundred_records(store: Store, releases: Releases) -> None:
    records = sampled(store, 200)

    wrong = []
    for release in releases:
        texts = sources_of(release.version)
        shipped = {path: text for path, text in texts.items() if "/test" not in path}
        everything = "\n".join(shipped.values())
        for record_id, literal, paths in records:
            if release.version in paths:
                if not says(texts[paths[release.version]], literal):
                    wrong.append(f"{record_id} is not in {release.version}: {literal!r}")
            elif says(everything, literal):
                wrong.append(f"{record_id} is in {release.version} too: {literal!r}")

    assert wrong == []
