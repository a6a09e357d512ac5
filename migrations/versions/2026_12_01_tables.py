"""The tables and the search index."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from app.store import sqlite

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply it."""
    op.create_table(
        "excerpt",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_excerpt")),
    )
    op.create_table(
        "facet",
        sa.Column("dimension", sa.String(length=20), nullable=False),
        sa.Column("value", sa.String(length=400), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("bits", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("dimension", "value", name=op.f("pk_facet")),
    )
    op.create_table(
        "meta",
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_meta")),
    )
    op.create_table(
        "package",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("repository", sa.String(length=200), nullable=False),
        sa.Column("host", sa.String(length=200), nullable=False),
        sa.Column("source_root", sa.String(length=200), nullable=False),
        sa.Column("tag", sa.String(length=200), nullable=False),
        sa.Column("license", sa.String(length=200), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_package")),
        sa.UniqueConstraint("name", name=op.f("uq_package_name")),
    )
    with op.batch_alter_table("package", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_package_repository"), ["repository"], unique=False)

    op.create_table(
        "page",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", "kind", name=op.f("pk_page")),
    )
    op.create_table(
        "wording",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_wording")),
    )
    op.create_table(
        "record",
        sa.Column("key", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("package_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("exception", sa.String(length=200), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("parts", sa.Text(), nullable=False),
        sa.Column("status", sa.String(length=10), nullable=False),
        sa.Column("module", sa.Text(), nullable=False),
        sa.Column("function", sa.Text(), nullable=False),
        sa.Column("flags", sa.Text(), nullable=False),
        sa.Column("first", sa.String(length=100), nullable=False),
        sa.Column("last", sa.String(length=100), nullable=False),
        sa.Column("gone_since", sa.String(length=100), nullable=False),
        sa.ForeignKeyConstraint(["package_id"], ["package.id"], name=op.f("fk_record_package_id_package")),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_record")),
        sa.UniqueConstraint("id", name=op.f("uq_record_id")),
    )
    with op.batch_alter_table("record", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_record_module_key"), ["module", "key"], unique=False)
        batch_op.create_index(batch_op.f("ix_record_package_id"), ["package_id"], unique=False)

    op.create_table(
        "release",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("package_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("version", sa.String(length=100), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("files", sa.Integer(), nullable=False),
        sa.Column("lines", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Text(), nullable=False),
        sa.Column("options", sa.Text(), nullable=False),
        sa.Column("omitted", sa.Text(), nullable=False),
        sa.Column("sites", sa.Integer(), nullable=False),
        sa.Column("records", sa.Integer(), nullable=False),
        sa.Column("raises", sa.Integer(), nullable=False),
        sa.Column("templated", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["package_id"], ["package.id"], name=op.f("fk_release_package_id_package")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_release")),
        sa.UniqueConstraint("package_id", "version", name=op.f("uq_release_package_id_version")),
    )
    with op.batch_alter_table("release", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_release_version"), ["version"], unique=False)

    op.create_table(
        "alias",
        sa.Column("alias", sa.String(length=16), nullable=False),
        sa.Column("record_key", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["record_key"], ["record.key"], name=op.f("fk_alias_record_key_record")),
        sa.PrimaryKeyConstraint("alias", name=op.f("pk_alias")),
    )
    with op.batch_alter_table("alias", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_alias_record_key"), ["record_key"], unique=False)

    op.create_table(
        "change",
        sa.Column("release_id", sa.Integer(), nullable=False),
        sa.Column("what", sa.String(length=20), nullable=False),
        sa.Column("record_key", sa.Integer(), nullable=False),
        sa.Column("detail", sa.String(length=10), nullable=False),
        sa.ForeignKeyConstraint(["record_key"], ["record.key"], name=op.f("fk_change_record_key_record")),
        sa.ForeignKeyConstraint(["release_id"], ["release.id"], name=op.f("fk_change_release_id_release")),
        sa.PrimaryKeyConstraint("release_id", "what", "record_key", name=op.f("pk_change")),
    )
    with op.batch_alter_table("change", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_change_record_key"), ["record_key"], unique=False)

    op.create_table(
        "document",
        sa.Column("record_key", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("etag", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["record_key"], ["record.key"], name=op.f("fk_document_record_key_record")),
        sa.PrimaryKeyConstraint("record_key", name=op.f("pk_document")),
    )
    op.create_table(
        "record_flag",
        sa.Column("flag", sa.String(length=200), nullable=False),
        sa.Column("record_key", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["record_key"], ["record.key"], name=op.f("fk_record_flag_record_key_record")),
        sa.PrimaryKeyConstraint("flag", "record_key", name=op.f("pk_record_flag")),
    )
    with op.batch_alter_table("record_flag", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_record_flag_record_key"), ["record_key"], unique=False)

    op.create_table(
        "site",
        sa.Column("record_key", sa.Integer(), nullable=False),
        sa.Column("release_id", sa.Integer(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("line", sa.Integer(), nullable=False),
        sa.Column("end_line", sa.Integer(), nullable=False),
        sa.Column("function", sa.Text(), nullable=False),
        sa.Column("wording_id", sa.Integer(), nullable=False),
        sa.Column("excerpt_id", sa.Integer(), nullable=False),
        sa.Column("excerpt_line", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["excerpt_id"], ["excerpt.id"], name=op.f("fk_site_excerpt_id_excerpt")),
        sa.ForeignKeyConstraint(["record_key"], ["record.key"], name=op.f("fk_site_record_key_record")),
        sa.ForeignKeyConstraint(["release_id"], ["release.id"], name=op.f("fk_site_release_id_release")),
        sa.ForeignKeyConstraint(["wording_id"], ["wording.id"], name=op.f("fk_site_wording_id_wording")),
        sa.PrimaryKeyConstraint("record_key", "release_id", name=op.f("pk_site")),
    )
    with op.batch_alter_table("site", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_site_excerpt_id"), ["excerpt_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_site_release_id"), ["release_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_site_wording_id"), ["wording_id"], unique=False)
    sqlite.create_search(op.execute)


def downgrade() -> None:
    """Take it back."""
    sqlite.drop_search(op.execute)
    with op.batch_alter_table("site", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_site_wording_id"))
        batch_op.drop_index(batch_op.f("ix_site_release_id"))
        batch_op.drop_index(batch_op.f("ix_site_excerpt_id"))

    op.drop_table("site")
    with op.batch_alter_table("record_flag", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_record_flag_record_key"))

    op.drop_table("record_flag")
    op.drop_table("document")
    with op.batch_alter_table("change", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_change_record_key"))

    op.drop_table("change")
    with op.batch_alter_table("alias", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_alias_record_key"))

    op.drop_table("alias")
    with op.batch_alter_table("release", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_release_version"))

    op.drop_table("release")
    with op.batch_alter_table("record", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_record_package_id"))
        batch_op.drop_index(batch_op.f("ix_record_module_key"))

    op.drop_table("record")
    op.drop_table("wording")
    op.drop_table("page")
    with op.batch_alter_table("package", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_package_repository"))

    op.drop_table("package")
    op.drop_table("meta")
    op.drop_table("facet")
    op.drop_table("excerpt")
