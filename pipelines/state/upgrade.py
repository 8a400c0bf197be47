"""The steps that an older ledger takes to become one of this version (migrations), by Alembic.

Loaded where there are steps to take, and only there: Alembic costs every start 0.2 s. Not here:
which shape a ledger has (shape).
"""

from pathlib import Path

from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

STEPS = Path(__file__).parents[1] / "migrations"


def upgrade(ledger: Connection, found: int, wanted: int) -> None:
    """Take every step from one shape to another, in the caller's transaction."""
    script = ScriptDirectory(str(STEPS), version_locations=[str(STEPS)])
    steps = [*script.iterate_revisions(str(wanted), str(found))]
    with Operations.context(MigrationContext.configure(ledger)):
        for step in reversed(steps):
            step.module.upgrade()
