"""The words that search scores a record by."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply it. The next ingest fills the column, since the code that makes it has changed."""
    with op.batch_alter_table("record") as batch_op:
        batch_op.add_column(sa.Column("words", sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    """Take it back."""
    with op.batch_alter_table("record") as batch_op:
        batch_op.drop_column("words")
