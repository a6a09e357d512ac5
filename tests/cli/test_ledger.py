"""`errata ledger` writes down what lineage found, and only appends."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import SOURCE, Command


def pin(home: Path, *versions: str) -> None:
    entries = (f'[[demo]]\nversion = "{version}"\nfiles = []\n' for version in versions)
    (home / "data" / "releases.toml").write_text("".join(entries))


def reword(home: Path, text: str) -> None:
    (home / "source" / "demo" / "pool.py").write_text(SOURCE.replace("it has no recurrent layer", text))


def test_a_ledger_grows_by_sections(ingested: Command, home: Path) -> None:
    path = home / "data" / "lineage" / "demo.tsv"
    pin(home, "1.0")
    assert ingested("ledger", "demo").code == 0
    first = path.read_text()

    reword(home, "it has not one recurrent layer")
    assert ingested("ingest", "demo==1.1", "--from", str(home / "source")).code == 0
    pin(home, "1.0", "1.1")
    checked = ingested("ledger", "demo", "--check")
    assert (checked.code, path.read_text()) == (1, first)
    ingested("ledger", "demo")

    assert path.read_text().startswith(first)
    assert [line.count("\t") for line in path.read_text().removeprefix(first).splitlines()] == [0, 1]
    assert ingested("ledger", "demo", "--check").code == 0


def test_a_pinned_release_that_is_not_ingested_is_told(ingested: Command, home: Path) -> None:
    pin(home, "1.0", "1.1")

    result = ingested("ledger", "demo")

    assert result.code == 1
    assert "not all ingested: 1.0, 1.1" in result.err


def test_doctor_is_content_when_everything_is_there(ingested: Command, home: Path) -> None:
    pin(home, "1.0")
    ingested("ledger", "demo")

    lines = ingested("doctor").out

    for name in ("database", "search index", "releases", "ledger", "curated records"):
        assert f"fine     {name}" in lines
