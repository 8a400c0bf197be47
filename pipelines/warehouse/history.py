"""History: the versions that ended, in `past.<stream>`; with the open ones, in `history.<stream>`.

Open versions are stored once, in `current`: `history.<stream>` and its children are views, SCD type
2, `history.<stream>_as_of(moment)` the rows as they were known then, `current.<stream>_seen` the
rows with the moment when they were seen last. Not here: when a version ends (merge).
"""

from collections.abc import Iterable

import duckdb

from pipelines.state.proof import Grade
from pipelines.warehouse.database import literal, quoted, scalar

PAST = "past"
STARTED = "valid_from TIMESTAMPTZ, valid_to TIMESTAMPTZ"
TIMES = "first_seen TIMESTAMPTZ, changed_at TIMESTAMPTZ, missing_since TIMESTAMPTZ"
COUNTING = ", ".join(f"'{grade.value}'" for grade in Grade if grade.counts_missing)
OPEN = "NULL::TIMESTAMPTZ AS valid_to"
HISTORY = """
CREATE OR REPLACE VIEW {history} AS
SELECT * FROM {past} UNION ALL BY NAME
SELECT *, changed_at AS valid_from, {open}, NULL::VARCHAR AS why FROM {current}
"""
CHILDREN = """
CREATE OR REPLACE VIEW {history} AS
SELECT * FROM {past} UNION ALL BY NAME
SELECT c.*, p.changed_at AS valid_from, {open} FROM {current} c
JOIN {parent} p ON p._connection = c._connection AND p.{key} = c.{key}
"""
AS_OF = """
CREATE OR REPLACE MACRO {as_of}(moment) AS TABLE
SELECT * FROM {history} WHERE valid_from <= moment AND (valid_to IS NULL OR moment < valid_to)
"""
# Readings that count missing rows are those that every row without `missing_since` is in.
SEEN = """
CREATE OR REPLACE VIEW {seen} AS
SELECT c.*, greatest(c.changed_at, (
    SELECT max(f.ended_at) FROM meta.folds f
    WHERE f.connection = c._connection AND f.stream = {stream} AND f.grade IN ({counting})
    AND (c.missing_since IS NULL OR f.ended_at < c.missing_since)
)) AS last_seen FROM {current} c
"""
# Not its views: these are made anew.
TABLES = "SELECT count(*) FROM duckdb_tables() WHERE schema_name = ? AND table_name = ?"


def prepare(database: duckdb.DuckDBPyConnection, stream: str, children: Iterable[str]) -> None:
    """Give `current.<stream>` its times, and `past` what `current` has."""
    database.execute(f"CREATE SCHEMA IF NOT EXISTS {PAST}")
    for time in TIMES.split(", "):
        table = quoted("current", stream)
        database.execute(f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {time}")
    _mirror(database, stream, f"{STARTED}, why VARCHAR")
    for child in children:
        _mirror(database, child, STARTED)


def _mirror(database: duckdb.DuckDBPyConnection, name: str, others: str) -> None:
    """Create the table of ended versions, or give it the columns and types that it lacks."""
    table = quoted(PAST, name)
    current = _columns(database, quoted("current", name))
    own = ", ".join(f"{quoted(column)} {kind}" for column, kind in current.items())
    database.execute(f"CREATE TABLE IF NOT EXISTS {table} ({own}, {others})")
    there = _columns(database, table)
    for column, kind in current.items():
        if column not in there:
            database.execute(f"ALTER TABLE {table} ADD COLUMN {quoted(column)} {kind}")
        elif there[column] != kind:
            database.execute(f"ALTER TABLE {table} ALTER {quoted(column)} SET DATA TYPE {kind}")


def _columns(database: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
    return {name: kind for name, kind, *_ in database.execute(f"DESCRIBE {table}").fetchall()}


def show(
    database: duckdb.DuckDBPyConnection, stream: str, children: Iterable[str], key: str
) -> None:
    """Create the views and macros of a stream anew: a view keeps the columns that it began with."""
    database.execute("CREATE SCHEMA IF NOT EXISTS history")
    names = {"parent": quoted("current", stream), "key": quoted(key), "open": OPEN}
    for name in (stream, *children):
        names |= {each: quoted(each, name) for each in ("past", "current", "history")}
        names["as_of"] = quoted("history", f"{name}_as_of")
        database.execute((HISTORY if name == stream else CHILDREN).format(**names))
        database.execute(AS_OF.format(**names))
    if not scalar(database, TABLES, ["current", f"{stream}_seen"]):  # another stream's own
        names = {"seen": quoted("current", f"{stream}_seen"), "current": quoted("current", stream)}
        own = literal(stream)
        database.execute(SEEN.format(**names, stream=own, counting=COUNTING))
