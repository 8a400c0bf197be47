"""The shape of a ledger: made in an empty database, told in any other, brought up to ours.

Not here: opening the database (database), the steps themselves (migrations).
"""

import importlib

from sqlalchemy import Column, Connection, Integer, MetaData, Table, inspect

from pipelines.errors import ConfigurationError
from pipelines.state import judgements, tables
from pipelines.state.tables import SHAPE

FIRST = 8  # the oldest shape that is taken over
OWN = MetaData()
VERSION = Table("ledger_version", OWN, Column("shape", Integer, primary_key=True))


def prepare(ledger: Connection, place: str) -> None:
    """Make what is not there, in the caller's transaction, where nobody else does the same.

    Raises ConfigurationError for a ledger that is newer than this program or too old for it, and
    for a database that holds something else.
    """
    there = inspect(ledger).get_table_names()
    if not there:
        for each in (tables.METADATA, judgements.METADATA, OWN):
            each.create_all(ledger)
        _note(ledger)
    found = _found(ledger, there) if there else SHAPE
    if found is None:
        raise ConfigurationError(
            f"{place} holds the tables of something else. Nothing was changed: give partner-sync "
            "a database of its own"
        )
    if FIRST <= found < SHAPE:
        steps = importlib.import_module("pipelines.state.upgrade")  # it loads Alembic: 0.2 s
        steps.upgrade(ledger, found, SHAPE)
        OWN.create_all(ledger)
        _note(ledger)
    elif found != SHAPE:
        raise ConfigurationError(
            f"{place} was written by another version of partner-sync (ledger {found}, this version "
            f"reads {FIRST} to {SHAPE}); use that version, or another PARTNER_SYNC_HOME"
        )


def _found(ledger: Connection, there: list[str]) -> int | None:
    """Return the shape of what is there, None where it is no ledger."""
    if ledger.dialect.name == "sqlite":
        return int(ledger.exec_driver_sql("PRAGMA user_version").scalar_one())
    if VERSION.name not in there:
        return None
    return int(ledger.execute(VERSION.select()).scalar_one())


def _note(ledger: Connection) -> None:
    """Write down that the shape is ours; in a file also where earlier versions look for it."""
    ledger.execute(VERSION.delete())
    ledger.execute(VERSION.insert().values(shape=SHAPE))
    if ledger.dialect.name == "sqlite":
        ledger.exec_driver_sql(f"PRAGMA user_version = {SHAPE}")
