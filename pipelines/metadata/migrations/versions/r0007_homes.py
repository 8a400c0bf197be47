"""Which home a database of a server belongs to."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Create one table."""
    op.create_table(
        "homes",
        sa.Column("home_id", sa.String(36), primary_key=True),
        sa.Column("folder", sa.String(), nullable=False),
        sa.Column("claimed_at", sa.DateTime(timezone=True), nullable=False),
    )
