"""Months that were closed."""

from alembic import op

from pipelines.metadata.tables import Base

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add a table."""
    Base.metadata.tables["closes"].create(op.get_bind())
