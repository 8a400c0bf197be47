"""INSERT that knows what to do where the row is there: each database has its own.

Not here: which rows those are.
"""

import importlib

from sqlalchemy import Connection, Engine, Table
from sqlalchemy.dialects.sqlite import Insert


def insert(ledger: Engine | Connection, table: Table) -> Insert:
    """Return an INSERT of the ledger's database; both kinds take ON CONFLICT alike.

    PostgreSQL's is found by name: loading it costs 50 ms, which only a shared ledger pays.
    """
    dialect = importlib.import_module(f"sqlalchemy.dialects.{ledger.dialect.name}")
    made: Insert = dialect.insert(table)
    return made
