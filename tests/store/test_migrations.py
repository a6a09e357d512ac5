"""The migrations make exactly the tables that the models describe."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.script import ScriptDirectory

from app.store import migrate, queries
from app.store.engine import Store


def test_after_an_upgrade_there_is_nothing_to_migrate(store: Store) -> None:
    config = migrate.config()

    with store.writing() as connection:
        config.attributes["connection"] = connection
        command.check(config)

    assert migrate.is_current(store)


def test_the_newest_revision_is_alembics_head() -> None:
    assert migrate.head() == ScriptDirectory.from_config(migrate.config()).get_current_head()


def test_the_tables_can_be_taken_back(store: Store) -> None:
    config = migrate.config()

    with store.writing() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "base")

    with store.engine.connect() as connection:
        left = (
            connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite%'").scalars().all()
        )
    assert {name.removesuffix("_pkc") for name in left} == {"alembic_version"}


def test_an_upgrade_of_a_current_database_writes_nothing(store: Store) -> None:
    with store.writing():
        migrate.upgrade(store)  # would wait for the writer, were there anything to write


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'none.db'}")

    assert not migrate.exists(store)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_database_answers(store: Store) -> None:
    with store.reading() as connection:
        page = queries.records(connection, queries.Filters(q="anything"))
        assert queries.generation(connection) == ""
        assert queries.counts(connection).records == 0
    assert (page.items, page.next, page.total) == ((), None, 0)
