"""A connection's portion of the lake: taken into a scratch database, brought back as differences.

Folding needs what a lake cannot do (types that grow, rows by their place), so it is done beside the
lake, on plain tables. Then the two are compared row by row, and what differs is written in one
transaction: one snapshot. Here: the SQL of both ways. Not here: who may, and when (lake).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import duckdb

from pipelines.errors import LandingFailed
from pipelines.warehouse.database import exists, literal, quoted, scalar, together, transaction

LAKE, SCRATCH = "lake", "scratch"  # the names under which the two are attached
RECORDS = ("current", "past", "quarantine")
FOLDING = ("awaiting", "folds", "registry", "schema_changes")  # of meta: what folds leave behind
TABLES = """
SELECT schema_name, table_name, list(column_name ORDER BY column_index),
       list(data_type ORDER BY column_index)
FROM duckdb_columns() c ANTI JOIN duckdb_views() v
ON (v.database_name, v.schema_name, v.view_name) = (c.database_name, c.schema_name, c.table_name)
WHERE database_name = $database AND (
    list_contains($records, schema_name)
    OR schema_name = 'meta' AND list_contains($folding, table_name)
) GROUP BY ALL ORDER BY ALL
"""
VIEWS = """
SELECT replace(sql, 'CREATE VIEW', 'CREATE OR REPLACE VIEW') FROM duckdb_views()
WHERE database_name = ? AND NOT internal ORDER BY schema_name DESC, view_name
"""
MACROS = """
SELECT schema_name, function_name, parameters, macro_definition FROM duckdb_functions()
WHERE database_name = ? AND function_type = 'table_macro' AND NOT internal ORDER BY ALL
"""
COMMENTS = """
WITH said AS (
    SELECT database_name, schema_name, table_name, column_name, comment FROM duckdb_columns()
    UNION ALL SELECT database_name, schema_name, table_name, NULL, comment FROM duckdb_tables()
)
SELECT schema_name, table_name, column_name, mine.comment FROM said mine
ANTI JOIN said theirs ON theirs.database_name = $2 AND theirs.comment = mine.comment
AND (theirs.schema_name, theirs.table_name) = (mine.schema_name, mine.table_name)
AND theirs.column_name IS NOT DISTINCT FROM mine.column_name
WHERE mine.database_name = $1 AND mine.comment IS NOT NULL AND schema_name = 'current' ORDER BY ALL
"""
MARKS = "SELECT stream, max(number) FROM {registry} GROUP BY ALL ORDER BY ALL"
REGISTRY = ("meta", "registry")
Columns = Mapping[str, str]  # the types by the names
Tables = Mapping[tuple[str, str], Columns]


@dataclass(frozen=True)
class Portion:
    """The rows of one connection, of every connection where it is None; both are attached."""

    database: duckdb.DuckDBPyConnection
    connection: str | None

    def take(self) -> None:
        """Fill the empty scratch database: the connection's rows, and what all of them share."""
        self.database.execute(f"USE {SCRATCH}")
        for (schema, name), columns in self._tables(LAKE).items():
            wanted = _of(columns, self.connection) if _named(columns) else "true"
            source, table = quoted(LAKE, schema, name), quoted(schema, name)
            together(
                self.database,
                (
                    f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}",
                    f"CREATE TABLE {table} AS FROM {source} WHERE {wanted}",
                ),
            )

    def marks(self) -> list[tuple[str, int]]:
        """Return what tells whether somebody registered other columns meanwhile."""
        if not exists(self.database, LAKE, *REGISTRY):
            return []
        return self.database.execute(MARKS.format(registry=quoted(LAKE, *REGISTRY))).fetchall()

    def bring(self) -> None:
        """Let the lake have what the scratch database has, in one transaction.

        Raises LandingFailed, and changes nothing, where a table does not hold as many rows then.
        """
        mine, theirs = self._tables(SCRATCH), self._tables(LAKE)
        self.database.execute(f"USE {LAKE}")
        with transaction(self.database):
            for (schema, name), columns in mine.items():
                self.database.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}")
                brought = _Brought(self.database, (schema, name), columns, self.connection)
                brought.apply(theirs.get((schema, name)))
            for table in theirs.keys() - mine.keys() if self.connection is None else ():
                self.database.execute(f"DROP TABLE {quoted(*table)}")
            if mine != theirs:
                together(self.database, self._shown())
            self._comment()

    def _tables(self, within: str) -> dict[tuple[str, str], dict[str, str]]:
        asked = {"database": within, "records": [*RECORDS], "folding": [*FOLDING]}
        found = self.database.execute(TABLES, asked).fetchall()
        return {
            (schema, name): dict(zip(columns, types, strict=True))
            for schema, name, columns, types in found
        }

    def _comment(self) -> None:
        """Let the lake's tables and columns say what the fold said of them."""
        found = self.database.execute(COMMENTS, [SCRATCH, LAKE]).fetchall()
        for schema, name, column, text in found:
            kind, what = ("COLUMN", (schema, name, column)) if column else ("TABLE", (schema, name))
            self.database.execute(f"COMMENT ON {kind} {quoted(*what)} IS {literal(text)}")

    def _shown(self) -> Iterator[str]:
        """Yield what creates the scratch database's views and macros in the lake."""
        yield "CREATE SCHEMA IF NOT EXISTS history"
        for (statement,) in self.database.execute(VIEWS, [SCRATCH]).fetchall():
            yield statement.rstrip("; \n")
        for schema, name, given, sql in self.database.execute(MACROS, [SCRATCH]).fetchall():
            macro = f"{quoted(schema, name)}({', '.join(given)})"
            yield f"CREATE OR REPLACE MACRO {macro} AS TABLE {sql}"


@dataclass(frozen=True)
class _Brought:
    """One table on its way from the scratch database into the lake."""

    database: duckdb.DuckDBPyConnection
    name: tuple[str, str]
    columns: Columns
    connection: str | None

    def apply(self, there: Columns | None) -> None:
        """Write what differs; `there` are the lake's columns, None where it has no such table."""
        if self.connection is None:
            self._anew(there or {})
            return
        if there is None:
            self.database.execute(f"CREATE TABLE {self._table} AS FROM {self._mine} LIMIT 0")
        elif there != self.columns:
            self._widen(there)
        self.database.execute(
            "CREATE OR REPLACE TEMP TABLE portion_there AS "
            f"SELECT rowid AS _place, * FROM {self._table} WHERE {self._own}"
        )
        gone = self._count(
            f"FROM portion_there t ANTI JOIN {self._mine} m ON {self._same}", "t._place"
        )
        if gone:
            place = "rowid IN (FROM portion_kept)"
            self.database.execute(f"DELETE FROM {self._table} WHERE {self._own} AND {place}")
        new = self._count(
            f"FROM (FROM {self._mine} WHERE {self._own}) m "
            f"ANTI JOIN portion_there t ON {self._same}",
            "m.*",
        )
        if new:
            self.database.execute(f"INSERT INTO {self._table} BY NAME FROM portion_kept")
        self._verify(new - gone)

    def _anew(self, there: Columns) -> None:
        """Write the whole table: neither its files nor their extremes say then what went."""
        kept = [name for name in there if name in self.columns]  # in the order that readers know
        named = ", ".join(map(quoted, dict.fromkeys((*kept, *self.columns))))
        self.database.execute(
            f"CREATE OR REPLACE TABLE {self._table} AS SELECT {named} FROM {self._mine}"
        )

    def _count(self, query: str, columns: str) -> int:
        kept = f"CREATE OR REPLACE TEMP TABLE portion_kept AS SELECT {columns} {query}"
        self.database.execute(kept)
        return scalar(self.database, "SELECT count(*) FROM portion_kept")

    def _widen(self, there: Columns) -> None:
        """Give the lake's table the columns and types that it lacks.

        A type is never changed in place: DuckLake 1.0 of DuckDB 1.5.5 then skips files by extremes
        of the old type, and rows are not found.
        """
        columns = {**there, **self.columns}  # other connections' columns stay
        if there.items() <= columns.items():
            for name in (each for each in columns if each not in there):
                self.database.execute(
                    f"ALTER TABLE {self._table} ADD COLUMN {quoted(name)} {columns[name]}"
                )
            return
        wanted = ", ".join(
            f"{quoted(name) if name in there else 'NULL'}::{kind} AS {quoted(name)}"
            for name, kind in columns.items()
        )
        self.database.execute(
            f"CREATE OR REPLACE TABLE {self._table} AS SELECT {wanted} FROM {self._table}"
        )

    def _verify(self, more: int) -> None:
        there = scalar(self.database, "SELECT count(*) FROM portion_there") + more
        mine = scalar(self.database, f"SELECT count(*) FROM {self._mine} WHERE {self._own}")
        if there != mine:
            raise LandingFailed(
                f"{'.'.join(self.name)} would hold {there:,} rows of {self.connection or 'all'} in "
                f"the lake, but {mine:,} were folded: rows that say the same stand twice. The lake "
                "is as it was."
            )

    @property
    def _same(self) -> str:
        return " AND ".join(
            f"t.{quoted(name)} IS NOT DISTINCT FROM m.{quoted(name)}" for name in self.columns
        )

    @property
    def _own(self) -> str:
        return _of(self.columns, self.connection)

    @property
    def _table(self) -> str:
        return quoted(*self.name)

    @property
    def _mine(self) -> str:
        return quoted(SCRATCH, *self.name)


def _named(columns: Columns) -> bool:
    """Tell whether rows say of which connection they are, so that others' rows are not needed."""
    return not columns.keys().isdisjoint({"_connection", "connection"})


def _of(columns: Columns, connection: str | None) -> str:
    """Return the condition that a row is the connection's: it says so, or its manifest does."""
    if connection is None:
        return "true"
    if "manifest" in columns and not _named(columns):
        return f"starts_with(manifest, {literal(f'{connection}/')})"
    name = "_connection" if "_connection" in columns else "connection"
    return f"{quoted(name)} = {literal(connection)}"
