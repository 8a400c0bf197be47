"""What sources of own books had, also where the books that say so are gone."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Add a table; the next books fill it."""
    op.create_table(
        "own_sources",
        sa.Column("source", sa.String(), primary_key=True),
        sa.Column("rows", sa.Integer()),
        sa.Column("fewest_rows", sa.Integer()),
        sa.Column("begins", sa.Date()),
    )
