"""The history of a stream: one table with every version of every row, views and a macro over it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.core.errors import LoadFailed
from pipelines.core.text import quote_identifier
from pipelines.load.columns import Table, Types
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
WIDEN_COLUMN = "ALTER TABLE {history} ALTER COLUMN {column} SET DATA TYPE {type}"
CREATE_VIEW = """
CREATE OR REPLACE VIEW {current} AS
SELECT {columns}
FROM {history} AS history
WHERE history._valid_to IS NULL
"""
CREATE_MACRO = """
CREATE OR REPLACE MACRO {macro}(as_of) AS TABLE
SELECT history.*
FROM {history} AS history
WHERE history._valid_from <= as_of
    AND (history._valid_to IS NULL OR as_of < history._valid_to)
"""
SELECT_CHANGED = """
SELECT delta._key
FROM load_delta AS delta
JOIN load_part AS part ON part._key = delta._key
WHERE delta.change = 'changed'
"""
# Keys whose two versions differ in a row of a table: the stream's own or a child table.
SELECT_DIFFERENT = """
WITH new AS (
    SELECT {new} FROM load_part AS part
    WHERE part.{key} IN (SELECT same._key FROM load_same AS same)
), old AS (
    SELECT {old} FROM {history} AS history
    WHERE history._connection = $connection AND history._valid_to IS NULL
        AND history.{key} IN (SELECT same._key FROM load_same AS same)
)
SELECT coalesce(new.{key}, old.{key})
FROM new
FULL JOIN old ON {identical}
WHERE {different}
"""
INSERT_ROWS = """
INSERT INTO {history} BY NAME
SELECT added.*, $connection AS _connection, $time AS _valid_from
FROM load_insert AS added
"""
UPDATE_DIGESTS = """
UPDATE {history} AS history
SET _digest = delta._digest
FROM load_delta AS delta
WHERE history._key = delta._key
    AND delta._key IN (SELECT same._key FROM load_same AS same)
    AND history._connection = $connection AND history._valid_to IS NULL
"""
# Every version of this load begins at $time, every other one before it.
END_VERSIONS = """
UPDATE {history} AS history
SET {set}
FROM load_delta AS delta
WHERE history.{key} = delta._key
    AND delta.change IN ('changed', 'deleted')
    AND delta._key NOT IN (SELECT same._key FROM load_same AS same)
    AND history._connection = $connection
    AND history._valid_to IS NULL AND history._valid_from < $time
"""
COUNT_VALUES = """
SELECT count(*), {counts}
FROM {history} AS history
WHERE history._connection = $connection AND history._valid_from = $time
"""
SHOWN = ("_valid_from", "_scan_id", "_page", "_row", "_extra")  # of our columns, in current


@dataclass
class History:
    """The tables of one stream, for one load at `time`; `same` are changed rows that look alike."""

    target: Target
    tables: Sequence[Table]
    time: datetime
    same: set[str] = field(default_factory=set)
    inserted: dict[str, Counter[str]] = field(default_factory=dict)

    def prepare(self, known: Types) -> None:
        """Create tables and columns, widen columns whose `known` type is another, create views."""
        for table in self.tables:
            if table.depth:
                indexes = ", ".join(f"{name} BIGINT" for name in table.index_names)
                self._run(CREATE_CHILDREN, table, indexes=indexes)
            for column, kind in table.data.items():
                before = known.get((table.name, column))
                if before != kind:
                    query = ADD_COLUMN if before is None else WIDEN_COLUMN
                    self._run(query, table, column=quote_identifier(column), type=kind)
            self._create_views(table)

    def _create_views(self, table: Table) -> None:
        shown = ("_valid_from", "_extra") if table.depth else SHOWN
        columns = _listed(
            "history", ("_connection", table.key, *table.index_names, *table.data, *shown)
        )
        current = f"current.{quote_identifier(table.name)}"
        macro = f"history.{quote_identifier(table.name + '_as_of')}"
        self._run(CREATE_VIEW, table, current=current, columns=columns)
        self._run(CREATE_MACRO, table, macro=macro)

    def insert(self, flat: dict[str, Any], *, has_changed: bool) -> None:
        """Insert the rows of one part, unless the current version says the same.

        `flat` has an Arrow table for each table.
        """
        same = self._find_same(flat) if has_changed else set()
        self.same |= same
        for table in self.tables:
            rows = flat[table.name]
            if same:
                is_same = pc.is_in(rows.column(table.key), pa.array(list(same), pa.string()))
                rows = rows.filter(pc.invert(is_same))
            counts = self.inserted.setdefault(table.name, Counter())
            counts[""] += rows.num_rows
            for name in table.data:
                counts[name] += rows.num_rows - rows.column(name).null_count
            if rows.num_rows:
                self.target.db.register("load_insert", rows)
                self._run(INSERT_ROWS, table)

    def _find_same(self, flat: dict[str, Any]) -> set[str]:
        """Return the keys of changed rows that differ in no column and in no row of a child."""
        self.target.db.register("load_part", flat[self.tables[0].name])
        same = {key for (key,) in self._run(SELECT_CHANGED)}
        for table in self.tables if same else ():
            self._register_same(same)
            self.target.db.register("load_part", flat[table.name])
            identity = (table.key, *table.index_names)
            names = (*identity, *table.data, "_extra")
            parts = {
                "new": _listed("part", names),
                "old": _listed("history", names),
                "identical": _compared("=", identity, " AND "),
                "different": _compared("IS DISTINCT FROM", names, " OR "),
            }
            same -= {key for (key,) in self._run(SELECT_DIFFERENT, table, **parts)}
        return same

    def _register_same(self, keys: set[str]) -> None:
        rows = pa.table({"_key": pa.array(sorted(keys), pa.string())})
        self.target.db.register("load_same", rows)

    def end(self, expected: int) -> None:
        """End the versions that were replaced and those that the scan lacks.

        Of rows that say the same, only the digest is replaced. Raises LoadFailed if another number
        than `expected` would end.
        """
        self._register_same(self.same)
        if self.same:
            self._run(UPDATE_DIGESTS)
        if not expected:
            return
        for table in self.tables:
            values = "_valid_to = $time" + ("" if table.depth else ", _end_reason = delta.change")
            ended = self._run(END_VERSIONS, table, set=values)[0][0]
            if not table.depth and ended != expected:
                raise _defect(f"{ended:,} rows would end instead of {expected:,}")

    def check(self) -> None:
        """Count every column of what was inserted. Raises LoadFailed if a value got lost."""
        for table in self.tables:
            counts = ", ".join(f"count(history.{quote_identifier(name)})" for name in table.data)
            found = self._run(COUNT_VALUES, table, counts=counts or "0")[0]
            wanted = self.inserted.get(table.name, Counter())
            for name, count in zip(("", *table.data), found, strict=False):
                if count != wanted[name]:
                    where = f"{table.name}.{name}" if name else table.name
                    raise _defect(f"{where} holds {count:,} values instead of {wanted[name]:,}")

    def _run(self, query: str, table: Table | None = None, **names: str) -> list[tuple[Any, ...]]:
        table = table or self.tables[0]
        return self.target.run(query, table.name, key=table.key, time=self.time, **names)


def _listed(source: str, names: Sequence[str]) -> str:
    return ", ".join(f"{source}.{quote_identifier(name)}" for name in names)


def _compared(operator: str, names: Sequence[str], conjunction: str) -> str:
    quoted = map(quote_identifier, names)
    return conjunction.join(f"new.{name} {operator} old.{name}" for name in quoted)


def _defect(reason: str) -> LoadFailed:
    return LoadFailed(
        f"The load would lose data: {reason}. Nothing of this scan is loaded; the scan file keeps "
        "every record.",
        "Report this defect of partner-sync with the scan file.",
    )
