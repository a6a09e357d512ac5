"""`errata identify`: what is found, what is not, and exit codes."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command

TEXT = "ValueError: unified memory is not supported for Tower: it has no recurrent layer\n"


def test_a_file_is_identified(ingested: Command, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(TEXT)

    result = ingested("identify", str(tmp_path / "log"))

    assert result.code == 0
    assert "{model.name} = Tower" in result.out
    assert "the message is the record's text" in result.out


def test_standard_input_and_json(ingested: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))

    result = ingested("identify", "--format", "json")

    (match,) = json.loads(result.out)["matches"]
    assert match["values"] == {"{model.name}": "Tower"}


def test_nothing_known_is_a_finding(ingested: Command, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("KeyError: 'a'\n")

    result = ingested("identify", str(tmp_path / "log"))

    assert result.code == 1
    assert "Python itself" in result.out


def test_a_missing_file_is_bad_usage(ingested: Command, tmp_path: Path) -> None:
    assert ingested("identify", str(tmp_path / "none")).code == 2
