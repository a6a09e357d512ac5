"""The database's schema: bring it to the newest state, or tell whether it is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from app.store import sqlite
from app.store.engine import Store

if TYPE_CHECKING:
    from alembic.config import Config

_ROOT = Path(__file__).resolve().parents[2]
_REVISION = re.compile(r'^revision = "(\w+)"', re.M)
_DOWN_REVISION = re.compile(r'^down_revision = "(\w+)"', re.M)


def config() -> Config:
    """Return Alembic's configuration of this project."""
    from alembic.config import Config

    return Config(str(_ROOT / "alembic.ini"))


def upgrade(store: Store) -> None:
    """Bring the schema to the newest state, in one transaction; nothing is written where it is there already."""
    if is_current(store):
        return
    from alembic import command

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
    with store.reading() as connection:
        return sqlite.schema_version(connection) == head()


def head() -> str:
    """Return the newest revision.

    It is read from the files: Alembic takes a third of a second to import, which every command would pay.
    """
    texts = [path.read_text(encoding="utf-8") for path in (_ROOT / "migrations" / "versions").glob("*.py")]
    revisions = {found[1] for text in texts if (found := _REVISION.search(text))}
    followed = {found[1] for text in texts if (found := _DOWN_REVISION.search(text))}
    (newest,) = revisions - followed
    return newest
