"""The database's schema: bring it to the newest state, or tell whether it is there."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from app.store import sqlite
from app.store.engine import Store

_ROOT = Path(__file__).resolve().parents[2]


def config() -> Config:
    """Return Alembic's configuration of this project."""
    return Config(str(_ROOT / "alembic.ini"))


def upgrade(store: Store) -> None:
    """Bring the schema to the newest state, in one transaction; nothing is written where it is there already."""
    if is_current(store):
        return
    alembic = config()
    with store.writing() as connection:
        alembic.attributes["connection"] = connection
        command.upgrade(alembic, "head")


def exists(store: Store) -> bool:
    """Tell whether there is a database at all, without making one."""
    file = sqlite.path(store.url)
    return file is None or file.exists()


def is_current(store: Store) -> bool:
    """Tell whether the schema is the newest one. It only reads: an ingest that runs is not waited for."""
    if not exists(store):
        return False
    head = ScriptDirectory.from_config(config()).get_current_head()
    with store.reading() as connection:
        return MigrationContext.configure(connection).get_current_revision() == head
