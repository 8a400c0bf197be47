"""The newest run and reading of a connection are found without looking at everybody's."""

from alembic import op

revision = "9"
down_revision = "8"


def upgrade() -> None:
    """Add the two indexes."""
    op.create_index("runs_of", "runs", ["connection", "begun_at"])
    op.create_index("scans_of", "scans", ["connection", "stream", "begun_at"])
