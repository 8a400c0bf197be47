"""Two warehouses value by value: every table of both, every column that the service decides.

Here: which rows one has and the other lacks, by DuckDB itself. Left out are the columns that name a
run, a page or a moment, and what reports say of a reading: no two readings share it. Not here: how
they came about.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import duckdb

SCHEMAS = ("current", "history", "past", "quarantine", "reconciliation", "reports")
TOLD = ("reconciliation.", "reports.")
OURS = {
    *("_run", "_page", "_row", "_manifest", "first_seen", "changed_at", "missing_since"),
    *("valid_from", "valid_to", "last_seen"),
}
OF_A_READING = {  # what reports say of it: day and moments, what it took, the same in a sentence
    *("day", "ended_at", "published_at", "hours", "sentence", "says", "requests", "refused"),
    *("seconds_waited", "runs", "runs_published", "duplicates"),
}
# Connections publish one after the other: what one lacked for a minute was a break that is over.
STANDING = {"reconciliation.breaks": " WHERE state <> 'RESOLVED'"}
COLUMNS = """
SELECT table_schema || '.' || table_name, list(column_name ORDER BY ordinal_position)
FROM information_schema.columns
WHERE table_catalog = $catalog AND list_contains($schemas, table_schema) GROUP BY ALL
"""


@dataclass(frozen=True)
class Compared:
    """One table: its rows here, and how many rows either side has that the other lacks."""

    table: str
    rows: int
    only_here: int
    only_there: int
    columns: int

    @property
    def same(self) -> bool:
        """Tell whether every value is the same."""
        return not self.only_here and not self.only_there


def compared(database: duckdb.DuckDBPyConnection, here: str, there: str) -> Iterator[Compared]:
    """Compare two attached catalogs; a table or column that one lacks counts with all its rows."""
    ours, theirs = _columns(database, here), _columns(database, there)
    for table in sorted(ours.keys() | theirs.keys()):
        both = [f'"{name}"' for name in ours.get(table, ()) if name in theirs.get(table, ())]
        told = OF_A_READING if table.startswith(TOLD) else set()
        kept = [name for name in both if name.strip('"') not in OURS | told]
        counts = [_count(database, catalog, table) for catalog in (here, there)]
        if set(ours.get(table, ())) != set(theirs.get(table, ())):
            yield Compared(table, counts[0], counts[0] or 1, counts[1] or 1, len(kept))
            continue
        which = f"{table}{STANDING.get(table, '')}"
        lists = [f"SELECT {', '.join(kept)} FROM {name}.{which}" for name in (here, there)]
        more, less = (
            _rows(database, f"{one} EXCEPT ALL {other}") for one, other in (lists, lists[::-1])
        )
        yield Compared(table, counts[0], more, less, len(kept))


def _columns(database: duckdb.DuckDBPyConnection, catalog: str) -> dict[str, list[str]]:
    asked = {"catalog": catalog, "schemas": list(SCHEMAS)}
    return dict(database.execute(COLUMNS, asked).fetchall())


def _count(database: duckdb.DuckDBPyConnection, catalog: str, table: str) -> int:
    try:
        return _rows(database, f"FROM {catalog}.{table}")
    except duckdb.CatalogException:
        return 0


def _rows(database: duckdb.DuckDBPyConnection, query: str) -> int:
    found = database.execute(f"SELECT count(*) FROM ({query})").fetchone()
    return int(found[0]) if found else 0
