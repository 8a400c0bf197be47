"""Messages that were sent, and when a finding was in one."""

import sqlalchemy as sa
from alembic import op

from pipelines.metadata.tables import Notification, UtcTime

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add a column and a table."""
    op.add_column("findings", sa.Column("notified_at", UtcTime()))
    Notification.metadata.tables["notifications"].create(op.get_bind())
