"""Who approved a close, and how it is known."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add columns. In earlier closes, preparer and reviewer are names that somebody typed."""
    op.add_column(
        "closes", sa.Column("state", sa.String(), nullable=False, server_default="closed")
    )
    op.add_column(
        "closes", sa.Column("approval", sa.String(), nullable=False, server_default="declared")
    )
    op.add_column("closes", sa.Column("approved_at", sa.DateTime(timezone=True)))
    op.add_column("closes", sa.Column("accept_open", sa.String()))
