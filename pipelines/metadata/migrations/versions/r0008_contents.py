"""What a version holds: the number of its format, and its scans."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add a column; NULL: not recorded."""
    op.add_column("versions", sa.Column("content", sa.JSON()))
