"""What an ingest writes, and that it is one transaction whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from app.errors import Unavailable
from app.lineage.identity import site_ids
from app.records.load import RecordError
from app.records.model import CuratedRecord
from app.store import queries, stored
from app.store.engine import Store
from app.store.ingest import stored_package
from app.store.lock import only_one
from tests.store.conftest import GONE, ORIGIN, POOL, put, release, releases, site

ROOT = Path(__file__).parents[2]


def document(store: Store, title: str) -> dict[str, object]:
    """Return the document of the one record whose title begins so."""
    with store.reading() as connection:
        items = queries.records(connection, queries.Filters(), limit=200).items
        (found,) = (item for item in items if item.title.startswith(title))
        body = queries.document(connection, found.id).body
    loaded: dict[str, object] = orjson.loads(body)
    return loaded


def test_stored_releases_read_back_as_mined(filled: Store) -> None:
    with filled.reading() as connection:
        for mined in releases():
            assert stored.mined_release(connection, "demo", mined.version) == mined


def test_an_ingest_replaces_the_package_and_leaves_others(filled: Store) -> None:
    other = replace(releases()[0], package="other")
    put(filled, [other], origin=replace(ORIGIN, package="other", repository="acme/other"))
    put(filled, releases()[:2])

    with filled.reading() as connection:
        size = queries.counts(connection)
        every = queries.records(connection, queries.Filters(q="page size"), limit=200)
    assert (size.packages, size.releases, size.records) == (2, 3, 10)
    assert sorted(item.package for item in every.items) == ["demo", "other"]


def test_keys_stay_dense_however_often_a_package_is_replaced(filled: Store) -> None:
    other = replace(releases()[0], package="other")
    for _ in range(4):
        put(filled, [other], origin=replace(ORIGIN, package="other", repository="acme/other"))
        put(filled, releases())

    with filled.reading() as connection:
        highest = connection.exec_driver_sql("SELECT MAX(key) FROM record").scalar_one()
    assert highest <= 2 * 11


def test_the_generation_changes_with_what_was_ingested(filled: Store) -> None:
    def generation() -> str:
        with filled.reading() as connection:
            return queries.generation(connection)

    first = generation()
    put(filled, releases())
    same = generation()
    put(filled, releases()[:2])

    assert first == same != generation()


def test_what_a_package_was_made_from_is_kept(filled: Store) -> None:
    with filled.reading() as connection:
        found = stored_package(connection, "demo")
        assert stored_package(connection, "absent") is None

    assert found is not None
    assert found.release_keys == {"1.0": "key 1.0", "1.1": "key 1.1", "1.2": "key 1.2"}


def test_text_that_no_column_can_hold_is_escaped(store: Store) -> None:
    put(store, [release("1.0", site("half a pair \ud800 and a zero \x00 here"))])

    assert document(store, "half a pair")["message"] == "half a pair \\ud800 and a zero \x00 here"


def test_a_curated_record_adds_its_analysis_and_pins_id_and_place(
    store: Store, curated: Callable[..., CuratedRecord]
) -> None:
    put(store, releases(), curated=(curated(),), strict=True)

    found = document(store, "Unified memory needs")
    mined_id = site_ids(ORIGIN.repository, [site(POOL)])[0]

    assert found["id"] == "00000000000000aa"
    assert mined_id in found["aliases"]  # type: ignore[operator]
    assert found["status"] == "reviewed"
    assert found["slug"] == "unified-memory"
    assert found["meaning"] == "The unified pool holds recurrent state, and this model has none."
    assert [s["text"] for s in found["solutions"]] == [  # type: ignore[attr-defined]
        "Drop `--unified-memory`.",
        "Choose a hybrid model, such as the small one.",
    ]
    source = found["source"]
    assert isinstance(source, dict)
    assert (source["path"], source["line"], source["ref"]) == ("python/demo/core/pool.py", 24, "abc1234567")
    assert source["url"] == "https://git.example/acme/demo/blob/abc1234567/python/demo/core/pool.py#L24"
    assert source["excerpt"]["ref"] == "v1.1"
    assert found["provenance"] == {
        "analysis": "AI-assisted",
        "source": "acme/demo@abc1234567",
        "report_url": "https://git.example/report",
    }


def test_a_reviewed_record_comes_first(store: Store, curated: Callable[..., CuratedRecord]) -> None:
    put(store, releases(), curated=(curated(),))

    with store.reading() as connection:
        assert queries.records(connection, queries.Filters()).items[0].id == "00000000000000aa"
        assert queries.counts(connection).reviewed == 1


def test_a_curated_record_without_a_site_fails_the_whole_ingest(
    filled: Store, curated: Callable[..., CuratedRecord]
) -> None:
    lost = curated(message="no such text")

    with pytest.raises(RecordError, match=r"demo/00000000000000aa-unified-memory\.md: message: no site"):
        put(filled, releases()[:1], curated=(lost,), strict=True)

    with filled.reading() as connection:
        assert queries.counts(connection).releases == 3


def test_with_some_releases_only_it_is_left_out_and_told(store: Store, curated: Callable[..., CuratedRecord]) -> None:
    outcome = put(store, releases()[2:], curated=(curated(),))

    assert list(outcome.unmatched) == ["00000000000000aa"]


def test_a_related_id_must_exist(store: Store, curated: Callable[..., CuratedRecord]) -> None:
    lost = curated(related='\n[[related]]\nid = "00000000000000ff"\nwhy = "x"\n')

    with pytest.raises(RecordError, match=r"unified-memory\.md: related: no record has the id 00000000000000ff"):
        put(store, releases(), curated=(lost,), strict=True)


def test_the_life_of_a_record_is_told(filled: Store) -> None:
    reworded, gone, moved = (document(filled, t) for t in ("--unified-memory", "Speculative", "page size"))

    history = reworded["history"]
    assert isinstance(history, dict)
    assert [(c["version"], c["what"], c["detail"]) for c in history["changes"]] == [
        ("1.1", "moved", "line"),
        ("1.2", "reworded", None),
    ]
    assert (history["first"], history["first_is_bound"], history["gone_since"]) == ("1.0", True, None)
    assert POOL in history["changes"][1]["old"]
    assert gone["history"]["gone_since"] == "1.2"  # type: ignore[index]
    assert gone["solutions"] == [
        {
            "text": "Upgrade demo to 1.2 or later: this error is gone since 1.2.",
            "derived": True,
            "verified": [],
        }
    ]
    assert moved["history"]["changes"] == [  # type: ignore[index]
        {
            "version": "1.1",
            "what": "moved",
            "detail": "file",
            "old": "python/demo/args.py, check_args",
            "new": "python/demo/hooks/args.py, check_args",
        }
    ]


def test_an_error_that_comes_back_is_told(store: Store) -> None:
    put(store, [release("1.0", site(GONE)), release("1.1"), release("1.2", site(GONE))])

    changes = document(store, "Speculative")["history"]["changes"]  # type: ignore[index]

    assert [(c["version"], c["what"]) for c in changes] == [("1.1", "gone"), ("1.2", "back")]


def test_a_text_that_callers_hand_over_stands_for_the_record(filled: Store) -> None:
    found = document(filled, "Out of memory")

    assert found["message"] == "Out of memory: {n} tokens wanted"
    assert found["variants"] == [
        {
            "message": "Out of memory: {n} tokens wanted",
            "parts": ["Out of memory: ", "n", " tokens wanted"],
            "path": "demo/core/pool.py",
            "function": "Pool.alloc",
        }
    ]


def test_only_one_ingest_runs_at_a_time(filled: Store) -> None:
    with only_one(filled.url), pytest.raises(Unavailable, match="another ingest"), only_one(filled.url):
        pass
    with only_one(filled.url):
        pass


VICTIM = """
import sys, time
from app.store import sqlite
from app.store.engine import Store
from tests.store.conftest import put, releases

finish = sqlite.finish_bulk

def pause(connection):
    finish(connection)
    print("written, not committed", flush=True)
    time.sleep(600)

sqlite.finish_bulk = pause
put(Store(sys.argv[1]), releases()[:1])
"""


def test_a_killed_ingest_leaves_the_former_database_serving(filled: Store) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", VICTIM, filled.url], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as victim:
        assert victim.stdout is not None
        assert victim.stdout.readline() == "written, not committed\n"
        with filled.reading() as connection:
            while_writing = queries.counts(connection)
        os.kill(victim.pid, signal.SIGKILL)
    with filled.reading() as connection:
        after = queries.counts(connection)
        words = queries.records(connection, queries.Filters(q="page size")).total

    assert while_writing == after
    assert (after.releases, words) == (3, 1)

    put(filled, releases()[:1])
    with filled.reading() as connection:
        assert queries.counts(connection).releases == 1
