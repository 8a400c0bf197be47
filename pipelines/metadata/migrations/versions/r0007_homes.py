"""Which home a database of a server belongs to; versions that are published early."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Create one table; add a column."""
    op.create_table(
        "homes",
        sa.Column("home_id", sa.String(36), primary_key=True),
        sa.Column("folder", sa.String(), nullable=False),
        sa.Column("claimed_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.add_column(
        "versions",
        sa.Column("is_early", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
