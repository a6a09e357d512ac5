"""The commands of the store: output, JSON and exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from app.records.load import load
from tests.cli.conftest import SOURCE, Command


def first_id(errata: Command, words: str) -> str:
    items = json.loads(errata("search", words, "--format", "json").out)["items"]
    return str(items[0]["id"])


def test_ingest_tells_what_it_found(errata: Command, home: Path) -> None:
    result = errata("ingest", "demo==1.0", "--from", str(home / "source"))

    assert result.code == 0
    assert "demo: 2 records from 2 sites" in result.err
    assert re.search(r"demo +1\.0 +2 +7 +0 +2 +2 +1 +100\.0%", result.out)


def test_ingesting_again_is_nothing_to_do(ingested: Command, home: Path) -> None:
    result = ingested("ingest", "demo==1.0", "--from", str(home / "source"))

    assert "demo: nothing to do" in result.err
    assert "mining" not in result.err


def test_a_changed_source_is_mined_again(ingested: Command, home: Path) -> None:
    (home / "source" / "demo" / "more.py").write_text("raise SystemExit('no more')\n")

    result = ingested("ingest", "demo==1.0", "--from", str(home / "source"))

    assert "demo: 3 records" in result.err


def test_a_second_release_joins_the_first(ingested: Command, home: Path) -> None:
    (home / "source" / "demo" / "pool.py").write_text(
        "\n\n" + SOURCE.replace("size must be positive", "size > 0 wanted")
    )

    ingested("ingest", "demo==1.1", "--from", str(home / "source"))
    document = json.loads(ingested("show", first_id(ingested, "recurrent"), "--format", "json").out)

    assert [r["version"] for r in document["history"]["releases"]] == ["1.0", "1.1"]
    assert document["history"]["changes"][0]["what"] == "moved"


def test_releases_as_json(ingested: Command) -> None:
    (found,) = json.loads(ingested("releases", "--format", "json").out)["releases"]

    assert (found["package"], found["version"], found["sites"], found["share"], found["failed"]) == (
        "demo",
        "1.0",
        2,
        1.0,
        [],
    )


def test_show_prints_the_facts(ingested: Command) -> None:
    shown = ingested("show", first_id(ingested, "recurrent"))

    assert shown.code == 0
    assert "ValueError: unified memory is not supported for {model.name}" in shown.out
    assert "demo/pool.py:6 in Pool.check (v1.0)" in shown.out
    assert "since 1.0 or earlier; still in 1.0" in shown.out


@pytest.mark.parametrize("wrong", ["0" * 16, "nonsense"])
def test_show_of_an_unknown_id_is_a_finding(ingested: Command, wrong: str) -> None:
    result = ingested("show", wrong)

    assert (result.code, result.out) == (1, "")
    assert "no record has the id" in result.err


def test_search_prints_records_and_their_number(ingested: Command) -> None:
    found = ingested("search", "recur", "unified")

    assert found.code == 0
    assert "1 records" in found.out
    assert ingested("search", "zyzzyva").code == 1


def test_search_takes_options_after_two_dashes(ingested: Command) -> None:
    assert ingested("search", "--", "--unified-memory").code == 0


def test_a_new_record_is_written_once_and_waits_for_its_text(ingested: Command, home: Path) -> None:
    record = first_id(ingested, "recurrent")

    written = ingested("new-record", record)
    path = Path(written.out.strip())

    assert path.parent == home / "data" / "errors" / "demo"
    assert "TODO" in path.read_text()
    assert ingested("new-record", record).code == 2
    assert ingested("lint").code == 1
    path.write_text(path.read_text().replace("TODO", "done:"))
    assert ingested("lint").code == 0
    assert load(path).front.id == record
    assert ingested("ingest", "demo==1.0", "--from", str(home / "source")).code == 0
    assert json.loads(ingested("show", record, "--format", "json").out)["status"] == "reviewed"


def test_lint_tells_which_mined_record_an_id_stands_for(ingested: Command, home: Path) -> None:
    record = first_id(ingested, "recurrent")
    text = ingested("new-record", record, "--stdout").out.replace("TODO", "done:")
    folder = home / "data" / "errors" / "demo"
    (folder / "00000000000000aa-x.md").write_text(text.replace(record, "00000000000000aa"))
    (folder / "00000000000000bb-y.md").write_text(
        text.replace(record, "00000000000000bb").replace("recurrent layer", "other layer")
    )

    result = ingested("lint", "--format", "json")
    report = json.loads(result.out)

    assert result.code == 1
    assert report["records"] == 2
    assert report["notes"] == [f"demo/00000000000000aa-x.md: its site is the mined record {record}"]
    assert len(report["problems"]) == 1
    assert report["problems"][0].startswith("demo/00000000000000bb-y.md: message: no ingested release has")


def test_doctor_tells_what_is_missing(errata: Command, home: Path) -> None:
    result = errata("doctor", "--format", "json")

    states = {finding["name"]: finding["state"] for finding in json.loads(result.out)["findings"]}
    assert result.code == 3
    assert states["database"] == "missing"
    assert states["data"] == "fine"
    assert not (home / "errata.db").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["ingest", "demo"], 2, "expected PACKAGE==VERSION"),
        (["ingest", "--from", "."], 2, "name the release that the folder holds"),
        (["ingest", "demo==1.0", "--from", "/nowhere"], 1, "there is no such directory"),
        (["ingest"], 1, "no release is pinned"),
        (["show", "0" * 16], 3, "run `errata ingest` first"),
        (["releases"], 3, "run `errata ingest` first"),
        (["nonsense"], 2, "No such command"),
        (["search", "x", "--limit", "0"], 2, "limit"),
    ],
)
def test_bad_usage_is_told_in_a_line(errata: Command, arguments: list[str], code: int, complaint: str) -> None:
    result = errata(*arguments)

    assert result.code == code
    assert complaint in result.err
    assert "Traceback" not in result.err


def test_a_misspelt_setting_stops_every_command(errata: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ERRATA_DATABASE", "x")

    result = errata("releases")

    assert result.code == 2
    assert "did you mean ERRATA_DATABASE_URL?" in result.err
