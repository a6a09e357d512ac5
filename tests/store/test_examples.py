"""What a record shows as verified comes from stored runs of its present example, and lint asks for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson
import pytest

from app.records.model import CuratedRecord
from app.records.runs import Run, Runs, digest
from app.store import queries
from app.store.engine import Store
from app.store.examples import Life, Runner, life, problems
from tests.store.conftest import put, releases

RECORD = "00000000000000aa"
RUNNER = Runner(("1.0", "1.1", "1.2"), lambda text: text.startswith("demo"))


@pytest.fixture
def record(curated: Callable[..., CuratedRecord]) -> CuratedRecord:
    """The curated record, whose `after` carries out the first solution."""
    return with_example(curated(), solution=1)


def with_example(record: CuratedRecord, **changes: Any) -> CuratedRecord:
    front = record.front.model_copy(update={"example": record.front.example.model_copy(update=changes)})
    return record.model_copy(update={"front": front})


def explained(record: CuratedRecord) -> CuratedRecord:
    return record.model_copy(update={"body": record.body.model_copy(update={"not_verified": "No such device."})})


def made(record: CuratedRecord, *engines: str, **changes: str) -> Runs:
    """Return good runs of the record's example on these releases, or others."""
    values = {"before": "this error", "after": "pass", "hardware": "h100", "date": "2026-12-01"} | changes
    example = digest(record.front.example)
    return {
        (record.front.id, engine): Run(record=record.front.id, engine=engine, example=example, **values)
        for engine in engines
    }


def shown(store: Store, record: CuratedRecord, runs: Runs) -> tuple[list[str], list[list[str]]]:
    """Return the engines that the example and each solution name as verified."""
    put(store, releases(), curated=(record,), runs=runs)
    with store.reading() as connection:
        body = orjson.loads(queries.document(connection, RECORD).body)
    solutions = [[one["engine"] for one in solution["verified"]] for solution in body["solutions"]]
    return [one["engine"] for one in body["example"]["verified"]], solutions


def test_good_runs_are_shown_with_their_date_and_machine(store: Store, record: CuratedRecord) -> None:
    put(store, releases(), curated=(record,), runs=made(record, "1.1"))

    with store.reading() as connection:
        body = orjson.loads(queries.document(connection, RECORD).body)

    assert body["example"]["verified"] == [
        {"engine": "1.1", "before": "this error", "after": "pass", "date": "2026-12-01", "hardware": "h100"}
    ]
    assert body["solutions"][0]["verified"] == [
        {"engine": "1.1", "run": "pass", "date": "2026-12-01", "hardware": "h100"}
    ]


def test_only_the_solution_that_the_example_carries_out_is_verified(store: Store, record: CuratedRecord) -> None:
    assert shown(store, record, made(record, "1.0", "1.1")) == (["1.0", "1.1"], [["1.0", "1.1"], []])
    other = with_example(record, solution=2)
    assert shown(store, other, made(other, "1.0")) == (["1.0"], [[], ["1.0"]])
    none = with_example(record, solution=None)
    assert shown(store, none, made(none, "1.0")) == (["1.0"], [[], []])


@pytest.mark.parametrize(
    "changes",
    [{"before": "pass"}, {"after": "this error"}, {"after": "not decided: x"}, {"before": "another error: X: y"}],
)
def test_a_run_that_shows_something_else_verifies_nothing(
    store: Store, record: CuratedRecord, changes: dict[str, str]
) -> None:
    assert shown(store, record, made(record, "1.0", **changes)) == ([], [[], []])


def test_a_stale_run_verifies_nothing(store: Store, record: CuratedRecord) -> None:
    changed = with_example(record, after="demo serve --other")

    assert shown(store, changed, made(record, "1.0")) == ([], [[], []])


def test_a_run_on_a_release_without_the_error_verifies_nothing(store: Store, record: CuratedRecord) -> None:
    assert shown(store, record, made(record, "0.9", "1.0")) == (["1.0"], [["1.0"], []])


def test_an_upgrade_is_verified_where_the_command_starts_on_the_first_release_without_the_error(
    store: Store, curated: Callable[..., CuratedRecord]
) -> None:
    record = curated(message="Speculative decoding needs --unified-memory off, found draft {draft!r}")
    body = record.body.model_copy(update={"solutions": ["Drop it.", "Upgrade to 1.2 or later.", "Wait for 1.2."]})
    record = record.model_copy(update={"body": body})

    assert shown(store, record, made(record, "1.0", "1.1")) == (["1.0", "1.1"], [[], [], []])
    runs = {**made(record, "1.0"), **made(record, "1.2", before="pass")}
    assert shown(store, record, runs) == (["1.0"], [[], ["1.2"], []])
    runs = {**made(record, "1.0"), **made(record, "1.2", before="another error: X: y")}
    assert shown(store, record, runs) == (["1.0"], [[], [], []])


def test_the_derived_upgrade_is_verified_too(store: Store, curated: Callable[..., CuratedRecord]) -> None:
    record = curated(message="Speculative decoding needs --unified-memory off, found draft {draft!r}")

    assert shown(store, record, made(record, "1.2", before="pass")) == ([], [[], [], ["1.2"]])


def test_no_upgrade_is_derived_where_a_run_met_another_error_there(
    store: Store, curated: Callable[..., CuratedRecord]
) -> None:
    record = curated(message="Speculative decoding needs --unified-memory off, found draft {draft!r}")

    assert shown(store, record, {}) == ([], [[], [], []])
    assert shown(store, record, made(record, "1.2", before="another error: X: y")) == ([], [[], []])


def test_life_is_the_releases_that_have_the_error(filled: Store, store: Store) -> None:
    with filled.reading() as connection:
        gone = queries.records(connection, queries.Filters(q="speculative draft")).items[0].id

        assert life(connection, gone) == Life(("1.0", "1.1"), "1.2")
        assert life(connection, "f" * 16) == Life()


def found(record: CuratedRecord, runs: Runs, runner: Runner = RUNNER) -> list[str]:
    said = problems([record], {RECORD: Life(("1.0", "1.1", "1.2"))}, runs, runner)
    return [problem.removeprefix(f"{record.file}: ") for problem in said]


def test_every_release_with_an_engine_needs_a_fresh_run(record: CuratedRecord) -> None:
    complaint = f"example: not run on 1.2: `errata verify {RECORD}` runs it"

    assert found(record, made(record, "1.0", "1.1")) == [complaint]
    assert found(record, made(record, "1.0", "1.1"), replace(RUNNER, engines=("1.0",))) == []
    assert len(found(with_example(record, after="demo x"), made(record, "1.0", "1.1", "1.2"))) == 1
    assert found(explained(record), made(record, "1.0", "1.1")) == [complaint]


def test_a_run_that_shows_something_else_needs_a_word(record: CuratedRecord) -> None:
    runs = {**made(record, "1.0", "1.1"), **made(record, "1.2", before="pass")}

    assert found(record, runs) == ["example: on 1.2 before: pass; after: pass"]
    assert found(explained(record), runs) == []


def test_a_word_that_nothing_was_run_must_be_true(record: CuratedRecord) -> None:
    complaint = "'## Not verified' stands there, but the example was run on every release"

    assert found(explained(record), made(record, "1.0", "1.1", "1.2")) == [complaint]


def test_code_is_not_run_and_needs_a_word(record: CuratedRecord) -> None:
    code = with_example(record, before="import demo")

    assert found(code, {}) == ["example: it is no launch, so a heading '## Not verified' has to say so"]
    assert found(explained(code), {}) == []
