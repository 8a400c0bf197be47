"""A connection's portion of the lake: taken into a scratch database, brought back as differences.

Folding needs what a lake cannot do (types that grow, rows by their place), so it is done beside the
lake, on plain tables. Then what was taken and what there is now are compared row by row, and what
differs is written in one transaction: one snapshot. Here: the SQL of both ways, and of writing the
whole lake anew. Not here: who may, and when (lake).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import duckdb

from pipelines.errors import LandingFailed
from pipelines.warehouse.database import (
    exists,
    literal,
    quoted,
    scalar,
    tables,
    together,
    transaction,
)

LAKE, SCRATCH = "lake", "scratch"  # the names under which the two are attached
FOLDED = "folded"  # the schema of the catalog that has everything
RECORDS = ("current", "past", "quarantine")
FOLDING = ("awaiting", "folds", "registry", "schema_changes")  # of meta: what folds leave behind
# DuckLake asks its catalog for the extremes of each column of an empty table, in each query: of
# 24 columns 150 ms. (It keeps the answer for tables that have any: duckdb/ducklake#1313.)
FILLED = f"""
SELECT DISTINCT schema_name, table_name
FROM __ducklake_metadata_{LAKE}.{FOLDED}.ducklake_data_file AS file
JOIN __ducklake_metadata_{LAKE}.{FOLDED}.ducklake_table AS made USING (table_id)
JOIN __ducklake_metadata_{LAKE}.{FOLDED}.ducklake_schema AS part USING (schema_id)
WHERE coalesce(file.end_snapshot, made.end_snapshot, part.end_snapshot) IS NULL
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
REGISTRY, FOLDS = ("meta", "registry"), ("meta", "folds")
REGISTERED = "SELECT stream, max(number) FROM {} GROUP BY ALL ORDER BY ALL"
FOLDED_BEFORE = "SELECT manifest, folded_at FROM {} WHERE connection = ? ORDER BY ALL"
PLACE = "_place"  # of a row in the lake: its rowid
NAMED = {"_connection", "connection"}  # columns that say of which connection a row is
Name = tuple[str, str]  # of a table: its schema, and its own
Columns = Mapping[str, str]  # the types by the names
Marks = Sequence[tuple[object, ...]]  # columns that are registered, folds of the connection


@dataclass(frozen=True)
class Portion:
    """The rows of one connection; both databases are attached while it is taken and brought."""

    database: duckdb.DuckDBPyConnection
    connection: str

    def take(self) -> Marks:
        """Fill the empty scratch database: the connection's rows, and what all of them share.

        The rows stay beside as they were, each with its place in the lake.
        """
        self.database.execute(f"USE {SCRATCH}")
        with transaction(self.database):
            there = _tables(self.database, LAKE)
            filled = set(self.database.execute(FILLED).fetchall()) if there else set()
            for name, columns in there.items():
                together(self.database, self._taking(name, columns, empty=name not in filled))
            return self._marks(SCRATCH)

    def _taking(self, name: Name, columns: Columns, *, empty: bool) -> Iterator[str]:
        """Yield what takes the connection's rows of a table; all where no row says whose it is."""
        taken, table = quoted(*_taken(name)), quoted(*name)
        own = "" if columns.keys().isdisjoint(NAMED) else f"WHERE {_of(columns, self.connection)}"
        yield f"CREATE SCHEMA IF NOT EXISTS {quoted(name[0])}"
        if empty:
            listed = ", ".join(f"{quoted(each)} {kind}" for each, kind in columns.items())
            yield f"CREATE TABLE {table} ({listed})"
            yield f"CREATE TEMP TABLE {taken} AS SELECT NULL::BIGINT AS {PLACE}, * FROM {table}"
        else:
            rows = f"SELECT rowid AS {PLACE}, * FROM {quoted(LAKE, *name)} {own}"
            yield f"CREATE TEMP TABLE {taken} AS {rows}"
            yield f"CREATE TABLE {table} AS SELECT * EXCLUDE ({PLACE}) FROM {taken}"

    def bring(self, marks: Marks) -> bool:
        """Let the lake have what the scratch database has, in one transaction.

        Tell whether it does: not where somebody registered other columns since it was taken, or
        folded the connection, as can be where PostgreSQL was away and with it whose turn it was.
        Raises LandingFailed, and changes nothing, where a table does not hold as many rows then.
        """
        self.database.execute(f"USE {LAKE}")
        with transaction(self.database):
            if self._marks(LAKE) != marks:
                return False
            mine, theirs = (_tables(self.database, each) for each in (SCRATCH, LAKE))
            for name, columns in mine.items():
                _Brought(self.database, name, columns, self.connection).apply(theirs.get(name))
            if mine != theirs:
                _show(self.database)
            _comment(self.database)
        return True

    def _marks(self, within: str) -> Marks:
        own, marks = [self.connection], list[tuple[object, ...]]()
        for table, query, given in (REGISTRY, REGISTERED, []), (FOLDS, FOLDED_BEFORE, own):
            if exists(self.database, within, *table):
                query_of = query.format(quoted(within, *table))
                marks += self.database.execute(query_of, given).fetchall()
        return marks


def swap(database: duckdb.DuckDBPyConnection) -> None:
    """Let the lake hold what the scratch database holds, and nothing else, in one transaction.

    Every table is written anew: neither its files nor their extremes say then what went.
    """
    mine, theirs = (_tables(database, each) for each in (SCRATCH, LAKE))
    database.execute(f"USE {LAKE}")
    with transaction(database):
        for name, columns in mine.items():
            there = theirs.get(name, {})
            kept = [each for each in there if each in columns]  # in the order that readers know
            listed = ", ".join(map(quoted, dict.fromkeys((*kept, *columns))))
            source, table = quoted(SCRATCH, *name), quoted(*name)
            database.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(name[0])}")
            database.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT {listed} FROM {source}")
        for name in theirs.keys() - mine.keys():
            database.execute(f"DROP TABLE {quoted(*name)}")
        _show(database)
        _comment(database)


def _tables(database: duckdb.DuckDBPyConnection, within: str) -> dict[Name, Columns]:
    """Return the tables of a database that a fold makes."""
    return {
        (schema, name): columns
        for (schema, name), columns in tables(database, within).items()
        if schema in RECORDS or (schema == "meta" and name in FOLDING)
    }


def _comment(database: duckdb.DuckDBPyConnection) -> None:
    """Let the lake's tables and columns say what the fold said of them."""
    for schema, name, column, text in database.execute(COMMENTS, [SCRATCH, LAKE]).fetchall():
        kind, what = ("COLUMN", (schema, name, column)) if column else ("TABLE", (schema, name))
        database.execute(f"COMMENT ON {kind} {quoted(*what)} IS {literal(text)}")


def _show(database: duckdb.DuckDBPyConnection) -> None:
    """Create the scratch database's views and macros in the lake."""
    shown = ["CREATE SCHEMA IF NOT EXISTS history"]
    shown += [sql.rstrip("; \n") for (sql,) in database.execute(VIEWS, [SCRATCH]).fetchall()]
    for schema, name, given, sql in database.execute(MACROS, [SCRATCH]).fetchall():
        macro = f"{quoted(schema, name)}({', '.join(given)})"
        shown.append(f"CREATE OR REPLACE MACRO {macro} AS TABLE {sql}")
    together(database, shown)


@dataclass(frozen=True)
class _Brought:
    """One table's rows of a connection, on their way from the scratch database into the lake."""

    database: duckdb.DuckDBPyConnection
    name: Name
    columns: Columns
    connection: str

    def apply(self, there: Columns | None) -> None:
        """Write what differs; `there` are the lake's columns, None where it has no such table."""
        self._prepare(there)
        gone = self._keep(
            f"SELECT t.{PLACE} FROM (FROM {self._taken} WHERE {self._own}) t "
            f"ANTI JOIN {self._mine} m ON {self._same}"
        )
        if gone:
            place = "rowid IN (FROM portion_kept)"
            out = scalar(self.database, f"DELETE FROM {self._table} WHERE {self._own} AND {place}")
            self._verify_places(gone, out)
        new = self._keep(
            f"SELECT m.* FROM (FROM {self._mine} WHERE {self._own}) m "
            f"ANTI JOIN {self._taken} t ON {self._same}"
        )
        if new:
            self.database.execute(f"INSERT INTO {self._table} BY NAME FROM portion_kept")
        self._verify(new - gone)

    def _prepare(self, there: Columns | None) -> None:
        """Let both have the columns that there are now; places change where types do."""
        if there is None:
            self.database.execute(
                f"CREATE SCHEMA IF NOT EXISTS {quoted(self.name[0])}; "
                f"CREATE TABLE {self._table} AS FROM {self._mine} LIMIT 0"
            )
        elif there != self.columns:
            self._widen(there)
        elif exists(self.database, *_taken(self.name)):
            return
        self.database.execute(
            f"CREATE OR REPLACE TEMP TABLE {self._taken} AS "
            f"SELECT rowid AS {PLACE}, * FROM {self._table} WHERE {self._own}"
        )

    def _keep(self, query: str) -> int:
        """Keep a query's rows beside; return how many there are."""
        self.database.execute(f"CREATE OR REPLACE TEMP TABLE portion_kept AS {query}")
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
        there = (
            scalar(self.database, f"SELECT count(*) FROM {self._taken} WHERE {self._own}") + more
        )
        mine = scalar(self.database, f"SELECT count(*) FROM {self._mine} WHERE {self._own}")
        if there != mine:
            raise LandingFailed(
                f"{'.'.join(self.name)} would hold {there:,} rows of {self.connection} in the "
                f"lake, but {mine:,} were folded: rows that say the same stand twice. The lake is "
                "as it was."
            )

    def _verify_places(self, gone: int, out: int) -> None:
        """Refuse to go on where the lake has not the rows that were taken in their places."""
        if out != gone:
            raise LandingFailed(
                f"of {gone:,} rows of {self.connection} that {'.'.join(self.name)} should lose in "
                f"the lake {out:,} are where they were taken from: somebody else wrote into it. "
                "The lake is as it was; run sync again."
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

    @property
    def _taken(self) -> str:
        return quoted(*_taken(self.name))


def _taken(name: Name) -> tuple[str, str, str]:
    """Return the temporary table of what the lake had, each row with its place there."""
    return "temp", "main", ".".join(name)


def _of(columns: Columns, connection: str) -> str:
    """Return the condition that a row is the connection's: it says so, or its manifest does."""
    if "manifest" in columns and columns.keys().isdisjoint(NAMED):
        return f"starts_with(manifest, {literal(f'{connection}/')})"
    name = "_connection" if "_connection" in columns else "connection"
    return f"{quoted(name)} = {literal(connection)}"
