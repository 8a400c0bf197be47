"""The history of a stream: one table with every version of every row, views and a macro over it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pipelines.core.text import quote_identifier
from pipelines.load.delta import Delta
from pipelines.load.schema import Place, Types
from pipelines.load.target import Target, defect

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
WIDEN_COLUMN = "ALTER TABLE {history} ALTER COLUMN {column} SET DATA TYPE {type}"
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
SELECT added.*, $connection AS _connection, $time AS _valid_from
FROM added
"""
# Every version of this load begins at $time, every other one before it.
COUNT_VALUES = """
SELECT {counts}
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
SHOWN = ("_valid_from", "_scan_id", "_page", "_row", "_extra")  # of our columns, in current


@dataclass
class History:
    """The tables of one stream, for one load at `time`. `types` are those of the data."""

    target: Target
    tables: Sequence[Place]
    types: Types
    time: datetime

    def prepare(self, known: Types) -> None:
        """Create tables, columns and views; widen columns whose `known` type is another."""
        for table in self.tables:
            indexes = ", ".join(f"{name} BIGINT" for name in table.indexes)
            self._run(CREATE_CHILDREN if table.path else CREATE_ROWS, table, indexes=indexes)
            columns = self._columns(table)
            changed = [name for name in columns if known.get((table.table, name)) != columns[name]]
            for name in changed:
                query = WIDEN_COLUMN if (table.table, name) in known else ADD_COLUMN
                self._run(query, table, column=quote_identifier(name), type=columns[name])
            if changed or not columns:
                shown = ("_connection", table.key, *table.indexes, *columns)
                shown += ("_valid_from", "_extra") if table.path else SHOWN
                name, macro = map(quote_identifier, (table.table, f"{table.table}_as_of"))
                self._run(CREATE_VIEW, table, name=name, columns=_listed(shown))
                self._run(CREATE_MACRO, table, macro=macro)

    def insert(self, rows: Iterable[tuple[str, Any]]) -> None:
        """Insert rows by table. Raises LoadFailed if the tables then lack a value."""
        wanted: Counter[tuple[str, str]] = Counter()
        tables = {table.table: table for table in self.tables}
        for name, added in rows:
            wanted[name, "_valid_from"] += added.num_rows
            for column in added.column_names:
                wanted[name, column] += added.num_rows - added[column].null_count
            self._run(INSERT_ROWS, tables[name], added=added)
        for table in self.tables:
            names = ["_valid_from", *self._columns(table)]
            counts = ", ".join(f"count({_qualified(name)})" for name in names)
            found = self._run(COUNT_VALUES, table, counts=counts)[0]
            expected = tuple(wanted[table.table, name] for name in names)
            if found != expected:
                raise defect(f"{table.table} holds {found} values of {names}, not {expected}")

    def end(self, delta: Delta) -> int:
        """End the versions that are replaced or gone; return how many rows have changed.

        Of rows that were sent with other bytes and say the same, only the digest is replaced.
        Raises LoadFailed if another number of versions would end.
        """
        changed = 0
        if delta.resent:
            for table in self.tables:
                columns = _listed((table.key, *table.indexes, *self._columns(table), "_extra"))
                changed += self._run(MARK_CHANGED, table, columns=columns)[0][0]
        if changed < delta.resent:
            for table in self.tables:
                self._run(DELETE_RESENT, table)
            self._run(UPDATE_DIGESTS)
        expected = changed + delta.deleted
        for table in self.tables if expected else ():
            values = "_valid_to = $time" + ("" if table.path else ", _end_reason = delta.change")
            ended = self._run(END_VERSIONS, table, set=values)[0][0]
            if not table.path and ended != expected:
                raise defect(f"{ended:,} rows would end instead of {expected:,}")
        return changed

    def _columns(self, table: Place) -> dict[str, str]:
        return {name: kind for (owner, name), kind in self.types.items() if owner == table.table}

    def _run(self, query: str, table: Place | None = None, **names: Any) -> list[tuple[Any, ...]]:
        table = table or self.tables[0]
        return self.target.run(query, table.table, key=table.key, time=self.time, **names)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(_qualified, names))


def _qualified(name: str) -> str:
    return f"history.{quote_identifier(name)}"
