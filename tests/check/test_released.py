"""What a release changed in its options follows from the committed tables, and those are the parsers' own."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from app.check import released
from app.check.install import Engines, recipes
from app.check.options import read as read_table
from app.check.released import Changed, Released
from app.errors import Broken
from app.settings import Settings


def option(name: str, **values: object) -> Released:
    dest = name.strip("-").replace("-", "_")
    return Released(**({"names": (name,), "dest": dest} | values))  # type: ignore[arg-type]


OLD = (
    option("--kept", default=1, choices=("a", "b")),
    option("--old-name", dest="named"),
    option("--pointed", deprecated=True, instead="--kept=a"),
    option("--alias", dest="fresh"),
    option("--fresh"),
    option("--lost"),
    option("--tired"),
)
NEW = (
    option("--kept", default=2, choices=("b", "c")),
    option("--new-name", dest="named"),
    option("--fresh"),
    option("--tired", deprecated=True, instead="--kept"),
    Released(("--added", "--also"), "added"),
)


def test_every_kind_of_change_is_told_apart() -> None:
    found = released.changes(OLD, NEW)

    assert [o.names for o in found.added] == [("--added", "--also")]
    assert found.renamed == (Changed("--old-name", "--old-name", "--new-name"),)
    assert found.removed == (
        Changed("--alias", "--alias", "--fresh"),
        Changed("--lost", "--lost", ""),
        Changed("--pointed", "--pointed", "--kept=a"),
    )
    assert found.deprecated == (Changed("--tired", "--tired", "--kept"),)
    assert found.defaults == (Changed("--kept", "1", "2"),)
    assert found.choices == (Changed("--kept", "a", "c"),)


def test_a_release_changes_nothing_against_itself() -> None:
    nothing = released.changes(NEW, NEW)

    assert all(getattr(nothing, part) == () for part in nothing.__slots__)


def test_another_name_for_an_option_is_no_new_option() -> None:
    assert released.changes((option("--a"),), (Released(("--b", "--a"), "a"),)).added == ()


def test_facts_survive_the_file(tmp_path: Path) -> None:
    released.write("1.0", NEW, tmp_path)

    assert released.read("1.0", tmp_path) == NEW
    assert released.read("1.1", tmp_path) is None
    assert released.read("../1.0", tmp_path) is None


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "2.0.json").write_text('[{"name": "--x"}]')

    with pytest.raises(Broken):
        released.read("2.0", tmp_path)


def test_every_engine_has_its_options_committed() -> None:
    known = {version: released.read(version) for version in recipes()}

    assert [version for version, options in known.items() if not options] == []
    for older, newer in itertools.pairwise(known.values()):
        assert older and newer and released.changes(older, newer).added


@pytest.mark.engine
def test_committed_options_are_those_of_the_parsers() -> None:
    settings = Settings.from_environment({})
    tables = [
        table
        for engine in Engines(settings.cache_dir / "engines", settings.check_engine).installed()
        if (table := read_table(engine)) is not None
    ]
    if not tables:
        pytest.skip("needs an installed engine (make engines)")

    assert {t.version: released.kept(t) == released.read(t.version) for t in tables} == {
        t.version: True for t in tables
    }
