"""Leaves out rows of other connections, where one ledger has those of several.

Values of the role `connection` are compared in any case. One that no source knows is not
understood, and neither is a blank one: such a row would count nowhere.
"""

from collections.abc import Collection
from typing import Final

import duckdb

from pipelines.core.text import quote_text
from pipelines.finance.mapping import Mapping
from pipelines.finance.own_mapping import OwnRoles, OwnSource
from pipelines.warehouse.duckdb_file import Row, fetch_rows

OTHER: Final = "if(lower(typed.connection) IN {values}, NULL, coalesce(typed.connection, ''))"
CREATE: Final = """
CREATE OR REPLACE TEMP TABLE {table}_left_out AS
SELECT lower(rows.connection_text) AS value, count(*) AS rows
FROM {table}_read AS rows
WHERE lower(rows.connection_text) IN {values}
GROUP BY ALL
"""
DELETE: Final = "DELETE FROM {table}_read AS rows WHERE lower(rows.connection_text) IN {values}"
LEFT_OUT: Final = "SELECT others.value, others.rows FROM {table}_left_out AS others ORDER BY ALL"


def text_of_other(roles: OwnRoles) -> str:
    """Return the expression of what a row says if it is not of the connection; else NULL."""
    if not roles.connection:
        return "NULL"
    return OTHER.format(values=_listed(roles.connection_values))


def others_of(mapping: Mapping, source: OwnSource) -> list[str]:
    """Return the values that a source leaves out: those it names, and those of other sources.

    One ledger is a source for each connection, and each needs to know what the others compare.
    """
    roles = source.roles
    others = set(roles.other_values)
    for each in mapping.own.values():
        is_same = (each.place, each.against) == (source.place, source.against)
        if is_same and each.roles.connection == roles.connection:
            others |= set(each.roles.connection_values)
    return sorted(others - set(roles.connection_values))


def leave_out(db: duckdb.DuckDBPyConnection, table: str, others: Collection[str]) -> list[Row]:
    """Remove rows of other connections; return how many each `value` has (`rows`)."""
    if not others:
        return []
    gaps = {"table": table, "values": _listed(others)}
    db.execute(CREATE.format(**gaps))
    db.execute(DELETE.format(**gaps))
    return fetch_rows(db, LEFT_OUT.format(**gaps))


def _listed(values: Collection[str]) -> str:
    """Return texts as a list of SQL, in lower case as DuckDB knows it."""
    return f"({', '.join(f'lower({quote_text(value)})' for value in values)})"
