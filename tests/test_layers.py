"""Imports point one way: docs/architecture.md draws the arrows, this test holds them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
APP = ROOT / "app"

# What a layer may import of `app`, beside itself. A new arrow is a decision: change it in its own commit.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "processes": set(),
    "settings": {"errors"},
    "mine": {"errors", "processes"},
    "lineage": {"errors", "mine"},
    "records": {"errors"},
    "store": {"errors", "mine", "lineage", "records"},
    "match": {"errors", "mine", "store"},
    "check": {"errors", "processes"},
    "triggers": {"errors", "check"},
    "web": {"errors", "processes", "store", "match", "check", "records", "triggers"},
    "cli": {"errors", "settings", "mine", "lineage", "records", "store", "match", "check", "triggers", "web"},
}
ONLY_IN = {
    "sqlalchemy": {"store"},
    "sqlite3": {"store"},
    "alembic": {"store"},
    "fastapi": {"web"},
    "starlette": {"web"},
    "jinja2": {"web"},
    "typer": {"cli"},
    "rapidfuzz": {"lineage", "match", "check"},
    "sglang": {"check"},
}


def modules() -> list[Path]:
    return sorted(path for path in APP.rglob("*.py") if path.parent != APP or path.stem != "__init__")


def layer(path: Path) -> str:
    return path.relative_to(APP).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[str]:
    """Yield the dotted names that a module imports, also within functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            if node.module == "app":
                yield from (f"app.{alias.name}" for alias in node.names)
            else:
                yield node.module


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(APP)))
def test_a_module_imports_only_what_its_layer_may(path: Path) -> None:
    own = layer(path)
    allowed = MAY_IMPORT[own] | {own}

    reached = {name.split(".")[1] for name in imported(path) if name.startswith("app.")}

    assert reached <= allowed


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(APP)))
def test_a_library_stays_in_its_layer(path: Path) -> None:
    strays = {
        top for name in imported(path) if layer(path) not in ONLY_IN.get(top := name.split(".")[0], {layer(path)})
    }

    assert strays == set()


def test_only_cli_reads_the_settings() -> None:
    readers = {layer(path) for path in modules() if "app.settings" in set(imported(path))}

    assert readers <= {"cli"}


def test_sqlite_is_known_in_one_module() -> None:
    own = re.compile(r"\bPRAGMA\b|\bfts5\b|\bMATCH \?|\bsqlite3\b|wal_checkpoint|json_each")

    knowing = {path.name for path in (APP / "store").glob("*.py") if own.search(path.read_text(encoding="utf-8"))}

    assert knowing == {"sqlite.py"}


def test_the_documented_layers_are_these() -> None:
    drawn = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `app/(\w+)[./`][^|]*\|[^|]*\| ([^|]*) \|", drawn, re.M)

    documented = {
        name: set(re.findall(r"\w+", re.sub(r"\(.*?\)", "", targets))) for name, targets in rows if name != "check"
    }

    expected = {name: targets for name, targets in MAY_IMPORT.items() if name not in ("check", "cli")}
    assert {name: targets for name, targets in documented.items() if name != "cli"} == expected
