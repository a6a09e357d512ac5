"""Alembic's entry: migrates the connection it is handed, or the database of `ERRATA_DATABASE_URL`."""

from __future__ import annotations

from typing import Any

from alembic import context

from app.store import sqlite
from app.store.models import Base


def ours(_object: Any, name: str | None, type_: str, _reflected: bool, _compared: Any) -> bool:
    """Leave the search index out of comparisons: it is no table of the models."""
    return not (type_ == "table" and name is not None and sqlite.is_own_table(name))


def run(connection: Any) -> None:
    """Run the migrations on one connection, inside its transaction."""
    context.configure(connection=connection, target_metadata=Base.metadata, render_as_batch=True, include_object=ours)
    with context.begin_transaction():
        context.run_migrations()


if (lent := context.config.attributes.get("connection")) is not None:
    run(lent)
else:
    from app.settings import Settings
    from app.store.engine import Store

    with Store(Settings.from_environment().database_url).writing() as opened:
        run(opened)
