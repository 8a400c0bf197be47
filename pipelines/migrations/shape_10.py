"""What a publication holds is found by the names of manifests without looking at all of them."""

from alembic import op

revision = "10"
down_revision = "9"


def upgrade() -> None:
    """Add the index."""
    op.create_index("manifests_named", "manifests", ["file"])
