"""What finance remembers: breaks, posted corrections, files of books.

Until 0.2.0 a version of the warehouse remembered breaks and corrections; `finance.remembered` takes
them over from there.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Create three tables."""
    op.create_table(
        "breaks",
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("undone_at", TIME),
        sa.Column("break_id", sa.String(), nullable=False),
        sa.Column("rule", sa.String(), nullable=False),
        sa.Column("connection", sa.String(), nullable=False),
        sa.Column("subject", sa.String()),
        sa.Column("partner", sa.String()),
        sa.Column("month", sa.Date()),
        sa.Column("currency", sa.String()),
        sa.Column("cause", sa.String()),
        sa.Column("used_amount", sa.String()),
        sa.Column("billed_amount", sa.String()),
        sa.Column("difference", sa.String()),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("first_seen", TIME, nullable=False),
        sa.Column("last_seen", TIME, nullable=False),
        sa.Column("gone_at", TIME),
        sa.Column("returned_at", TIME),
        sqlite_autoincrement=True,
    )
    op.create_index("breaks_by_break", "breaks", ["break_id", "number"])
    op.create_table(
        "corrections",
        sa.Column("number_of_row", sa.Integer(), primary_key=True, autoincrement=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("undone_at", TIME),
        sa.Column("month", sa.Date(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("side", sa.String(), nullable=False),
        sa.Column("connection", sa.String(), nullable=False),
        sa.Column("id", sa.String()),
        sa.Column("partner", sa.String()),
        sa.Column("currency", sa.String()),
        sa.Column("amount_before", sa.String()),
        sa.Column("amount_now", sa.String()),
        sa.Column("difference", sa.String()),
        sa.Column("posted_to", sa.Date(), nullable=False),
        sa.Column("seen_at", TIME, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "books",
        sa.Column("version", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("made_at", TIME, nullable=False),
        sa.Column("as_of", TIME),
    )
