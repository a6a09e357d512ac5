"""`errata engine`: what is there, and what can be asked for."""

from __future__ import annotations

import json

from tests.cli.conftest import Command


def test_what_can_be_installed_is_listed(errata: Command) -> None:
    result = errata("engine", "list")

    assert result.code == 3
    assert "0.5.18     not installed" in result.out


def test_the_list_is_json_too(errata: Command) -> None:
    rows = json.loads(errata("engine", "list", "--format", "json").out)["engines"]

    assert {row["version"] for row in rows} >= {"0.5.17", "0.5.18", "0.5.23"}
    assert [row["version"] for row in rows if row["default"]] == ["0.5.18"]


def test_an_unknown_release_is_named_with_the_known_ones(errata: Command) -> None:
    result = errata("engine", "install", "0.0.1")

    assert result.code == 1
    assert "0.0.1" in result.err and "0.5.18" in result.err
