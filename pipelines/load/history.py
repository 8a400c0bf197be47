"""The history of a stream: one table with every version of every row, views and a macro over it.

Here: how a load writes what it changes. Not here: what it changes (`delta.py`), and how earlier
rows follow a new type (`reread.py`).
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import duckdb
import pyarrow.compute as pc

from pipelines.core.text import quote_identifier
from pipelines.load.delta import Delta
from pipelines.load.place import Place
from pipelines.load.reread import TypeChange, change_types
from pipelines.load.schema import Schema
from pipelines.load.target import Target

CREATE_ROWS = """
CREATE TABLE IF NOT EXISTS {history} (
    _connection VARCHAR, _key VARCHAR, _digest UBIGINT,
    _valid_from TIMESTAMP WITH TIME ZONE, _valid_to TIMESTAMP WITH TIME ZONE, _end_reason VARCHAR,
    _scan_id VARCHAR, _page INTEGER, _row INTEGER, _extra VARCHAR
)
"""
CREATE_CHILDREN = """
CREATE TABLE IF NOT EXISTS {history} (
    _connection VARCHAR, _parent_key VARCHAR, {indexes},
    _valid_from TIMESTAMP WITH TIME ZONE, _valid_to TIMESTAMP WITH TIME ZONE, _extra VARCHAR
)
"""
ADD_COLUMN = "ALTER TABLE {history} ADD COLUMN {column} {type}"
CREATE_VIEW = """
CREATE OR REPLACE VIEW current.{name} AS
SELECT {columns}
FROM {history} AS history
WHERE history._valid_to IS NULL
"""
CREATE_MACRO = """
CREATE OR REPLACE MACRO history.{macro}(as_of) AS TABLE
SELECT history.*
FROM {history} AS history
WHERE history._valid_from <= as_of
    AND (history._valid_to IS NULL OR as_of < history._valid_to)
"""
INSERT_ROWS = """
INSERT INTO {history} BY NAME
SELECT added.* EXCLUDE (_position), $connection AS _connection, $time AS _valid_from
FROM added
"""
# Every version of this load begins at $time, every other one before it.
COUNT_VALUES = """
SELECT [{counts}]
FROM {history} AS history
WHERE history._connection = $connection AND history._valid_from = $time
"""
# Both versions of a row that was sent with other bytes are current now. A row of a table that says
# the same in both is there twice.
MARK_CHANGED = """
UPDATE load_delta AS delta
SET change = 'changed'
WHERE delta.change = 'resent' AND delta._key IN (
    SELECT history.{key}
    FROM {history} AS history
    JOIN load_delta AS resent ON resent._key = history.{key} AND resent.change = 'resent'
    WHERE history._connection = $connection AND history._valid_to IS NULL
    GROUP BY {columns}
    HAVING count(*) = 1
)
"""
DELETE_RESENT = """
DELETE FROM {history} AS history
USING load_delta AS delta
WHERE delta._key = history.{key} AND delta.change = 'resent'
    AND history._connection = $connection AND history._valid_from = $time
"""
UPDATE_DIGESTS = """
UPDATE {history} AS history
SET _digest = delta._digest
FROM load_delta AS delta
WHERE delta._key = history._key AND delta.change = 'resent'
    AND history._connection = $connection AND history._valid_to IS NULL
"""
END_VERSIONS = """
UPDATE {history} AS history
SET {set}
FROM load_delta AS delta
WHERE delta._key = history.{key} AND delta.change IN ('changed', 'deleted')
    AND history._connection = $connection
    AND history._valid_to IS NULL AND history._valid_from < $time
"""
# Rows that are added to a table that has some already take two blocks of 256 KiB for each column
# when they are committed: 254 MB for 480 columns. Those of a new table are committed as they are.
REWRITE = "CREATE OR REPLACE TABLE {history} AS SELECT history.* FROM {history} AS history"
COUNT_ROWS = "SELECT count(*) FROM {history} AS history"
# With fewer columns, a commit takes 26 MB at most, and a table is not rewritten.
FEWEST_COLUMNS = 50
# Values of a table that is rewritten: about 20 MB.
MOST_REWRITTEN = 1_000_000
# Our columns in schema current, behind those of data.
SHOWN_OF_ROWS = ("_valid_from", "_scan_id", "_page", "_row", "_extra")
SHOWN_OF_CHILDREN = ("_valid_from", "_extra")


@dataclass(frozen=True)
class History:
    """The tables of one stream, for one load at `time`."""

    target: Target
    schema: Schema
    time: datetime

    @cached_property
    def tables(self) -> list[Place]:
        """The table of the records, and those of the lists in them."""
        return self.schema.tables

    def prepare(self) -> None:
        """Create tables, columns and views; widen columns that have another type now."""
        for table in self.tables:
            indexes = ", ".join(f"{name} BIGINT" for name in table.indexes)
            self._run(CREATE_CHILDREN if table.path else CREATE_ROWS, table, indexes=indexes)
            is_changed = self._prepare_columns(table)
            has_columns = bool(self.schema.column_names(table.table))
            # A table without columns of data needs its views, too.
            if is_changed or not has_columns:
                create_views(self.target.db, self.schema, table)

    def _prepare_columns(self, table: Place) -> bool:
        """Add the new columns of a table, and widen others; return whether there are any."""
        places = self.schema.columns_of(table.table)
        is_changed = False
        widened = []
        for (owner, name), column_type in self.schema.new_types.items():
            if owner != table.table:
                continue
            is_changed = True
            known_type = self.schema.known.get((owner, name))
            if known_type is None:
                self._run(ADD_COLUMN, table, column=quote_identifier(name), type=column_type)
            else:
                widened.append(TypeChange(places[name], known_type, column_type))
        change_types(self.target.db, table.table, widened)
        return is_changed

    def write(self, delta: Delta) -> int:
        """Insert staged rows, end those that are replaced or gone; return how many have changed.

        Of rows that were sent with other bytes and say the same, only the digest is replaced.
        Raises ValueError if a value would be lost, or another number of rows begin or end.
        """
        begun = self._insert(delta)
        changed = 0
        if delta.resent:
            changed = self._mark_changed()
        if changed < delta.resent:
            self._keep_unchanged()
        ended = 0
        if changed or delta.deleted:
            ended = self._end_versions()
        counts = (begun, ended)
        expected = (delta.new + delta.resent, changed + delta.deleted)
        if counts != expected:
            raise ValueError(f"{counts} rows would begin and end instead of {expected}")
        for table in self.tables:
            self._rewrite(table)
        return changed

    def _mark_changed(self) -> int:
        """Note which rows that were sent with other bytes say something else; return how many."""
        changed = 0
        for table in self.tables:
            columns = self.schema.column_names(table.table)
            compared = _listed((table.key, *table.indexes, *columns, "_extra"))
            # A key that one table has marked is no longer `resent` for the next one.
            changed += self._run(MARK_CHANGED, table, columns=compared)
        return changed

    def _keep_unchanged(self) -> None:
        """Delete the new versions of rows that say the same; the current ones get their digests."""
        for table in self.tables:
            self._run(DELETE_RESENT, table)
        self._run(UPDATE_DIGESTS, self.tables[0])

    def _end_versions(self) -> int:
        """End the versions of rows that are changed or deleted; return how many records."""
        ended = 0
        for table in self.tables:
            if table.path:
                self._run(END_VERSIONS, table, set="_valid_to = $time")
            else:
                set_both = "_valid_to = $time, _end_reason = delta.change"
                ended = self._run(END_VERSIONS, table, set=set_both)
        return ended

    def _rewrite(self, table: Place) -> None:
        """Make a small table of many columns again, so that its commit needs less memory."""
        columns = len(self.schema.column_names(table.table))
        if columns < FEWEST_COLUMNS:
            return
        rows = self._run(COUNT_ROWS, table)
        if 0 < rows * columns <= MOST_REWRITTEN:
            self._run(REWRITE, table)

    def _insert(self, delta: Delta) -> int:
        """Insert staged rows; return how many records. Raises ValueError if a value is lost."""
        inserted = Counter[tuple[str, str]]()  # values, by table and column
        for table, staged in delta.stage.tables():
            added = staged
            if len(delta.dropped):
                is_dropped = pc.is_in(staged["_position"], delta.dropped)
                added = staged.filter(pc.invert(is_dropped))
            self._run(INSERT_ROWS, table, added=added)
            inserted[table.table, "_valid_from"] += added.num_rows
            for name in added.column_names:
                inserted[table.table, name] += added.num_rows - added[name].null_count
        for table in self.tables:
            names = ("_valid_from", *self.schema.column_names(table.table))
            counts = ", ".join(f"count(history.{quote_identifier(name)})" for name in names)
            terms = {"counts": counts, "time": self.time}
            ((held,),) = self.target.run(COUNT_VALUES, table.table, **terms)
            expected = [inserted[table.table, name] for name in names]
            if held != expected:
                raise ValueError(f"{table.table} holds {held} values of {names}, not {expected}")
        return inserted[self.tables[0].table, "_valid_from"]

    def _run(self, query: str, table: Place, **names: Any) -> int:
        """Run a statement on a table; return what it counts."""
        rows = self.target.run(query, table.table, key=table.key, time=self.time, **names)
        return int(rows[0][0]) if rows else 0


def create_views(db: duckdb.DuckDBPyConnection, schema: Schema, table: Place) -> None:
    """Create the view of the current rows of a table, and the macro of those at a moment."""
    shown = ["_connection", table.key, *table.indexes, *schema.column_names(table.table)]
    shown += SHOWN_OF_CHILDREN if table.path else SHOWN_OF_ROWS
    terms = {
        "history": f"history.{quote_identifier(table.table)}",
        "name": quote_identifier(table.table),
        "macro": quote_identifier(f"{table.table}_as_of"),
        "columns": _listed(shown),
    }
    db.execute(CREATE_VIEW.format(**terms))
    db.execute(CREATE_MACRO.format(**terms))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"history.{quote_identifier(name)}" for name in names)
