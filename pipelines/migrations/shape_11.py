"""What is reserved for other users of an actor is kept with its request budget."""

import sqlalchemy as sa
from alembic import op

revision = "11"
down_revision = "10"


def upgrade() -> None:
    """Add the columns; nothing is reserved until an answer shows somebody else."""
    kinds = {"reserve": sa.Integer, "reserve_at": sa.Float, "peak": sa.Integer, "peak_at": sa.Float}
    for name, kind in kinds.items():
        op.add_column("budgets", sa.Column(name, kind, nullable=False, server_default="0"))
