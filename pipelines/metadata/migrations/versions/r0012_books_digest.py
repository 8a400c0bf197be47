"""The digest of each file of books, so that a damaged one is found without reading its tables."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Add a column; the next books fill it."""
    op.add_column("books", sa.Column("sha256", sa.String()))
