"""The first shape that is taken over: a ledger as it was before there were steps."""

revision = "8"
down_revision = None


def upgrade() -> None:
    """Nothing: it is where the steps begin."""
