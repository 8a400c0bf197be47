"""The tables of the first release: a new database gets those of `tables.py` and this revision."""

revision = "0005"  # the earlier ones were never released
down_revision = None


def upgrade() -> None:
    """Change nothing: no database is older."""
