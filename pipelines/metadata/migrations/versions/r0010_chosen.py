"""For which connections a month is closed."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add a column; NULL: all, as in earlier closes."""
    op.add_column("closes", sa.Column("chosen_connections", sa.String()))
