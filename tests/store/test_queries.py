"""Reads: right, in few statements, and never upset by what a reader types."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from app.errors import BadInput, NotFound
from app.store import migrate, queries
from app.store.document import Document
from app.store.engine import Store
from app.store.queries import Filters
from tests.store.conftest import ORIGIN, put, release, releases, site


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A filled database that no test of this module changes."""
    store = Store(f"sqlite:///{tmp_path_factory.mktemp('shelf') / 'test.db'}")
    migrate.upgrade(store)
    put(store, releases())
    yield store
    store.close()


@pytest.fixture
def connection(shelf: Store) -> Iterator[Connection]:
    with shelf.reading() as lent:
        yield lent


@contextmanager
def statements(connection: Connection) -> Iterator[list[str]]:
    """Record every statement that the driver runs."""
    seen: list[str] = []
    # What the search index asks of its own tables is traced as a comment.
    driver: Any = connection.connection.dbapi_connection
    driver.set_trace_callback(seen.append)
    yield seen
    driver.set_trace_callback(None)
    seen[:] = [statement for statement in seen if not statement.startswith("--")]


NEWEST = "--unified-memory is not supported for …: the model has no recurrent layer"


def titles(connection: Connection, **filters: str) -> list[str]:
    return [item.title for item in queries.records(connection, Filters(**filters)).items]


def the_id(connection: Connection, words: str) -> str:
    return queries.records(connection, Filters(q=words)).items[0].id


def test_a_document_is_one_statement_and_answers_to_its_aliases(connection: Connection) -> None:
    own = the_id(connection, "recurrent layer")
    document = Document.model_validate_json(queries.document(connection, own).body)

    with statements(connection) as seen:
        queries.document(connection, own)

    assert len(seen) == 1
    assert len(document.aliases) == 1
    assert queries.document(connection, document.aliases[0]) == queries.document(connection, own)
    assert queries.canonical(connection, document.aliases[0]) == own


@pytest.mark.parametrize("wrong", ["", "0" * 16, "x" * 16, "0" * 17, "'; DROP TABLE record; --", "\x00"])
def test_an_unknown_id_is_not_found(connection: Connection, wrong: str) -> None:
    assert queries.canonical(connection, wrong) is None
    with pytest.raises(NotFound):
        queries.document(connection, wrong)


@pytest.mark.parametrize("filters", [{}, {"exception": "ValueError"}, {"flag": "--unified-memory", "release": "1.0"}])
def test_a_list_with_facets_is_few_statements(connection: Connection, filters: dict[str, str]) -> None:
    queries.records(connection, Filters(**filters))

    with statements(connection) as seen:
        queries.records(connection, Filters(**filters))

    assert len(seen) <= 2


def test_a_search_is_few_statements(connection: Connection) -> None:
    queries.records(connection, Filters(q="page size"))

    with statements(connection) as seen:
        queries.records(connection, Filters(q="page size"))

    assert len(seen) <= 4


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"exception": "RuntimeError"}, ["Out of memory: … tokens wanted"]),
        ({"kind": "message"}, ["unknown dtype …"]),
        ({"kind": "assert", "release": "1.1"}, ["Assertion failed: size > 0"]),
        ({"release": "1.2", "flag": "--unified-memory"}, [NEWEST]),
        ({"module": "demo/hooks"}, ["page size … does not divide …"]),
        ({"module": "demo/hooks/"}, ["page size … does not divide …"]),
        ({"module": "python/demo/hooks/args.py"}, ["page size … does not divide …"]),
        ({"module": "demo/ho"}, ["page size … does not divide …"]),
        ({"module": "demo/none"}, []),
        ({"package": "other"}, []),
        ({"exception": "nonsense"}, []),
        ({"q": "unifi recur"}, [NEWEST]),
        ({"q": "--unified-memory recur"}, [NEWEST]),
        ({"q": "size", "kind": "raise"}, ["page size … does not divide …"]),
        ({"q": '"size > 0"'}, ["Assertion failed: size > 0"]),
        ({"q": "!!!"}, []),
    ],
)  # fmt: skip
def test_filters_and_words_narrow(connection: Connection, filters: dict[str, str], expected: list[str]) -> None:
    page = queries.records(connection, Filters(**filters))

    assert [item.title for item in page.items] == expected
    assert page.total == len(expected)


def test_facets_count_under_the_other_filters(connection: Connection) -> None:
    facets = queries.records(connection, Filters(flag="--unified-memory", exception="ValueError")).facets

    assert facets["exception"] == {"ValueError": 2}
    assert facets["flag"] == {"--unified-memory": 2}
    assert facets["release"] == {"1.0": 2, "1.1": 2, "1.2": 1}
    assert set(facets) == set(queries.FACETS)


def test_every_facet_value_leads_to_as_many_records(connection: Connection) -> None:
    for dimension, values in queries.records(connection, Filters()).facets.items():
        for value, count in values.items():
            assert queries.records(connection, Filters(**{dimension: value})).total == count


def test_words_that_no_record_has_together_find_those_with_some(connection: Connection) -> None:
    page = queries.records(connection, Filters(q="tokens zyzzyva"))

    assert page.loose
    assert [item.title for item in page.items] == ["Out of memory: … tokens wanted"]


def test_hits_mark_the_words(connection: Connection) -> None:
    (item,) = queries.records(connection, Filters(q="divi pag")).items

    assert [item.message[start:end] for start, end in item.hits] == ["pag", "divi"]


@pytest.mark.parametrize("filters", [Filters(), Filters(q="e"), Filters(q="size page wanted")])
def test_pages_follow_one_another_without_gap_or_repeat(connection: Connection, filters: Filters) -> None:
    whole = queries.records(connection, filters, limit=200)
    found, cursor = [], ""
    while True:
        page = queries.records(connection, filters, cursor=cursor, limit=2)
        found += [item.id for item in page.items]
        if page.next is None:
            break
        cursor = page.next

    assert found == [item.id for item in whole.items]
    assert whole.total == len(found)


@pytest.mark.parametrize("cursor", ["x", "WzFd", "bnVsbA", "é", "W10", "WyJrIiwtMV0", "WyJrIix0cnVlXQ", "A" * 5000])
def test_a_made_up_cursor_is_bad_input(connection: Connection, cursor: str) -> None:
    with pytest.raises(BadInput, match="cursor"):
        queries.records(connection, Filters(), cursor=cursor)


@pytest.mark.parametrize("limit", [0, -1, 201])
def test_a_limit_out_of_range_is_bad_input(connection: Connection, limit: int) -> None:
    with pytest.raises(BadInput, match="limit"):
        queries.records(connection, Filters(), limit=limit)


anything = st.text(max_size=40) | st.text("\"'()*-+:^{}AND ORNEAT unified\x00", max_size=40)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(anything, anything)
def test_no_text_upsets_search_or_filters(connection: Connection, words: str, other: str) -> None:
    page = queries.records(connection, Filters(q=words, module=other, flag=other, exception=other))
    for item in page.items:
        assert all(0 <= start < end <= len(item.message) for start, end in item.hits)
    queries.records(connection, Filters(q=words))
    queries.suggestions(connection, words)
    with pytest.raises(NotFound):
        queries.site_history(connection, words, other)


def test_suggestions_name_options_releases_and_records(connection: Connection) -> None:
    first = queries.suggestions(connection, "--uni")[0]
    assert (first.kind, first.text, first.url) == ("flag", "--unified-memory", "/flags/unified-memory")
    assert ("release", "1.2") in [(s.kind, s.text) for s in queries.suggestions(connection, "1.2")]
    assert [s.kind for s in queries.suggestions(connection, "dtype")] == ["record"]
    assert queries.suggestions(connection, "  ") == ()


def test_a_release_tells_what_it_changed(connection: Connection) -> None:
    middle, newest = queries.release(connection, "1.1"), queries.release(connection, "1.2")

    assert middle.counts == {"new": 0, "moved": 1, "reworded": 0, "removed": 0}
    assert newest.counts == {"new": 1, "moved": 0, "reworded": 1, "removed": 1}
    assert (middle.before, middle.after, newest.after) == ("1.0", "1.2", "")
    assert [item.title for item in newest.removed] == ["Speculative decoding needs --unified-memory off, found draft …"]
    with pytest.raises(NotFound):
        queries.release(connection, "9.9")


def test_releases_carry_their_counts(connection: Connection) -> None:
    first, second, third = queries.releases(connection, package="demo")

    assert [one.version for one in (first, second, third)] == ["1.0", "1.1", "1.2"]
    assert (first.sites, first.records, first.raises, first.templated, first.share) == (5, 5, 4, 4, 1.0)
    assert second.failed == (("demo/broken.py", "line 3: invalid syntax"),)


def test_an_option_is_found_with_or_without_dashes(connection: Connection) -> None:
    found = queries.flag(connection, "unified-memory")

    assert (found.flag, found.spellings, found.field, found.total) == (
        "--unified-memory",
        ("--um",),
        "unified_memory",
        2,
    )
    assert queries.flag(connection, "--unified-memory") == found
    assert queries.flags(connection) == {"--unified-memory": 2}
    with pytest.raises(NotFound):
        queries.flag(connection, "--nothing")


def test_a_package_is_found_by_its_repository(connection: Connection) -> None:
    found = queries.package(connection, "acme", "demo")

    assert (found.name, found.records, found.license) == ("demo", 6, ORIGIN.license)
    assert [one.version for one in found.releases] == ["1.2", "1.1", "1.0"]
    with pytest.raises(NotFound):
        queries.package(connection, "acme", "other")


def test_the_place_in_one_release_is_told(connection: Connection) -> None:
    own = the_id(connection, "recurrent layer")

    place = queries.site_history(connection, own, "1.0")

    assert (place.path, place.line, place.version) == ("python/demo/core/pool.py", 20, "1.0")
    assert "it has no recurrent layer" in place.message
    assert place.excerpt is not None
    assert (place.excerpt.ref, place.excerpt.start_line) == ("v1.0", 19)
    assert place.url.endswith("/blob/v1.0/python/demo/core/pool.py#L20")
    with pytest.raises(NotFound):
        queries.site_history(connection, own, "9.9")


def test_signatures_hold_every_text_and_place(connection: Connection) -> None:
    with statements(connection) as seen:
        found = {one.title: one for one in queries.signatures(connection)}

    assert len(seen) == 2
    assert len(found) == 6
    pool = found[NEWEST]
    assert [("".join(parts[0::2])) for parts in pool.texts] == [
        "--unified-memory is not supported for : the model has no recurrent layer.",
        "--unified-memory is not supported for : it has no recurrent layer.",
    ]
    assert [(s.versions, s.lines) for s in pool.seen] == [(("1.0", "1.1", "1.2"), (20, 25, 25))]
    moved = found["page size … does not divide …"]
    assert [(s.versions, s.path) for s in moved.seen] == [
        (("1.0",), "demo/args.py"),
        (("1.1", "1.2"), "demo/hooks/args.py"),
    ]
    assert found["Assertion failed: size > 0"].texts == ()
    assert found["Out of memory: … tokens wanted"].texts == (
        ("Out of memory: ", "n", " tokens wanted"),
        ("", "message", ""),
    )


def test_document_has_exactly_the_documented_keys(connection: Connection) -> None:
    body = orjson.loads(queries.document(connection, the_id(connection, "recurrent layer")).body)

    documented = {
        "id", "url", "aliases", "package", "kind", "exception", "title", "message", "status", "meaning", "trigger",
        "situations", "source", "guards", "flags", "solutions", "example", "defence", "history", "related",
        "provenance",
    }  # fmt: skip
    assert documented | {"slug", "parts", "variants", "condition", "module", "not_verified"} == set(body)
    assert body["related"] == [
        {
            "id": body["related"][0]["id"],
            "title": "Speculative decoding needs --unified-memory off, found draft …",
            "exception": "ValueError",
            "why": "same function",
        }
    ]


def test_a_reader_keeps_its_state_while_an_ingest_commits(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'two.db'}")
    migrate.upgrade(store)
    put(store, releases())

    with store.reading() as reader:
        before = queries.counts(reader)
        put(store, [release("1.0", site("one only"))])
        assert queries.counts(reader) == before
    with store.reading() as reader:
        assert queries.counts(reader).records == 1
        assert titles(reader) == ["one only"]
    store.close()
