"""Control totals: what tells in a few numbers whether two databases hold the same values.

Here: of each table of records its rows, the sum of every whole or decimal column and one digest of
all records. Not here: whom they are compared with (publish, verify).
"""

import re
from collections.abc import Mapping
from decimal import Decimal

import duckdb

from pipelines.errors import PublicationFailed
from pipelines.state.versions import Version
from pipelines.warehouse.database import quoted, scalar, tables

SCHEMAS = ("current", "past")
DIGEST = "_digest"
WIDEST = 28  # digits: 10^10 rows of it fit into the 38 of a sum
Totals = Mapping[str, Mapping[str, str]]


def of(database: duckdb.DuckDBPyConnection) -> dict[str, dict[str, str]]:
    """Return the totals of every table of records, by `schema.table`."""
    return {
        f"{schema}.{name}": _table(database, quoted(schema, name), kinds)[1]
        for (schema, name), kinds in tables(database).items()
        if schema in SCHEMAS
    }


def counted(
    database: duckdb.DuckDBPyConnection,
) -> tuple[dict[str, int], dict[str, dict[str, str]]]:
    """Return the rows of every table, and the totals of those of records, by `schema.table`.

    Each table is read once.
    """
    rows, found = dict[str, int](), dict[str, dict[str, str]]()
    for (schema, name), kinds in tables(database).items():
        title, table = f"{schema}.{name}", quoted(schema, name)
        if schema in SCHEMAS:
            rows[title], found[title] = _table(database, table, kinds)
        else:
            rows[title] = scalar(database, f"SELECT count(*) FROM {table}")
    return rows, found


def _table(
    database: duckdb.DuckDBPyConnection, table: str, kinds: Mapping[str, str]
) -> tuple[int, dict[str, str]]:
    """Return the rows and the totals of a table; a field called `rows` takes its place in these."""
    summed = [name for name, kind in kinds.items() if name[0] != "_" and _is_summed(kind)]
    wanted = {"rows": "count(*)"} | {name: f"sum({quoted(name)})" for name in summed}
    if DIGEST in kinds:
        wanted["digest"] = f"bit_xor({quoted(DIGEST)}::BIT)::VARCHAR"
    asked = ", ".join(("count(*)", *wanted.values()))
    rows, *found = database.execute(f"SELECT {asked} FROM {table}").fetchall()[0]
    return rows, {name: _plain(value) for name, value in zip(wanted, found, strict=True)}


def _is_summed(kind: str) -> bool:
    decimal = re.fullmatch(r"DECIMAL\((\d+),\d+\)", kind)
    return kind in {"BIGINT", "INTEGER"} or (decimal is not None and int(decimal[1]) <= WIDEST)


def _plain(value: object) -> str:
    """Return a total as text; a wider column has more zeros and the same sum."""
    if isinstance(value, Decimal):
        return f"{value.normalize():f}" if value else "0"
    return "" if value is None else str(value)


def difference(found: Totals, expected: Totals) -> str:
    """Say in words where totals differ first; empty where they do not."""
    for table in sorted(found.keys() | expected.keys()):
        here, there = found.get(table, {}), expected.get(table, {})
        for name in {**here, **there}:
            if here.get(name) != there.get(name):
                what = {"rows": "rows", "digest": "records"}.get(name, f"the sum of {name}")
                return (
                    f"{table}: {what} {here.get(name, 'not there')}, "
                    f"expected {there.get(name, 'not there')}"
                )
    return ""


def agreed(reader: duckdb.DuckDBPyConnection, version: Version, fault: str = "") -> None:
    """Raise PublicationFailed unless a copy holds what a version says, or where it has a fault."""
    rows, found = counted(reader)
    said = fault or difference(found, version.totals)
    if said or rows != version.counts:
        raise PublicationFailed(
            f"the copy holds {rows}, the ledger says {version.counts}; {said}; the last "
            "published file stays"
        )
