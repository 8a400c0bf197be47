"""Messages that were sent, when a finding was in one, and interface descriptions."""

import sqlalchemy as sa
from alembic import op

from pipelines.metadata.tables import Base, UtcTime

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add a column and two tables."""
    op.add_column("findings", sa.Column("notified_at", UtcTime()))
    for name in ("notifications", "api_specs"):
        Base.metadata.tables[name].create(op.get_bind())
