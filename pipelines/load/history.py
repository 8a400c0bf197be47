"""The history of a stream: one table with every version of every row, views and a macro over it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.core.errors import LoadFailed
from pipelines.core.text import quote_identifier
from pipelines.load.columns import Table
from pipelines.load.delta import history_name

ADD_COLUMN = "ALTER TABLE {history} ADD COLUMN {column} {type}"
WIDEN_COLUMN = "ALTER TABLE {history} ALTER COLUMN {column} SET DATA TYPE {type}"
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
SELECT_SAME = """
SELECT part._key
FROM load_part AS part
JOIN load_delta AS delta ON delta._key = part._key
JOIN {history} AS history ON history._key = part._key
WHERE delta.change = 'changed'
    AND history._connection = $connection AND history._valid_to IS NULL
    AND {equal}
"""
# A row is another one too if a row of a child table is only in one of the two versions.
SELECT_OTHER_CHILDREN = """
WITH new AS (
    SELECT {part} FROM load_children AS part
    WHERE part._parent_key IN (SELECT same._key FROM load_same AS same)
), old AS (
    SELECT {old} FROM {history} AS history
    WHERE history._connection = $connection AND history._valid_to IS NULL
        AND history._parent_key IN (SELECT same._key FROM load_same AS same)
)
SELECT other._parent_key FROM (
    (SELECT new.* FROM new EXCEPT SELECT old.* FROM old)
    UNION ALL (SELECT old.* FROM old EXCEPT SELECT new.* FROM new)
) AS other
"""
UPDATE_DIGESTS = """
UPDATE {history} AS history
SET _digest = part._digest
FROM load_part AS part
WHERE history._key = part._key
    AND part._key IN (SELECT same._key FROM load_same AS same)
    AND history._connection = $connection AND history._valid_to IS NULL
"""
CREATE_ENDED_BY_PART = """
CREATE OR REPLACE TEMP TABLE load_ended AS
SELECT delta._key, delta.change
FROM load_delta AS delta
JOIN load_part AS part ON part._key = delta._key
WHERE delta.change = 'changed'
    AND delta._key NOT IN (SELECT same._key FROM load_same AS same)
"""
CREATE_ENDED_BY_ABSENCE = """
CREATE OR REPLACE TEMP TABLE load_ended AS
SELECT delta._key, delta.change FROM load_delta AS delta WHERE delta.change = 'deleted'
"""
END_ROWS = """
UPDATE {history} AS history
SET _valid_to = $time, _end_reason = ended.change
FROM load_ended AS ended
WHERE history._key = ended._key
    AND history._connection = $connection AND history._valid_to IS NULL
"""
END_CHILDREN = """
UPDATE {history} AS history
SET _valid_to = $time
FROM load_ended AS ended
WHERE history._parent_key = ended._key
    AND history._connection = $connection AND history._valid_to IS NULL
"""
INSERT_ROWS = """
INSERT INTO {history} BY NAME
SELECT added.*, $connection AS _connection, $time AS _valid_from
FROM load_insert AS added
"""
COUNT_VALUES = """
SELECT count(*), {counts}
FROM {history} AS history
WHERE history._connection = $connection AND history._valid_from = $time
"""
SHOWN = ("_valid_from", "_scan_id", "_page", "_row", "_extra")  # of our columns, in current


@dataclass
class History:
    """The tables of one stream, for the rows of one connection and one load at `time`."""

    db: duckdb.DuckDBPyConnection
    tables: Sequence[Table]
    connection: str
    time: datetime
    inserted: dict[str, Counter[str]] = field(default_factory=dict)

    def prepare(self, new_types: dict[tuple[str, str], str], known: set[tuple[str, str]]) -> None:
        """Create tables and columns, widen columns, and create the views anew.

        `new_types` are by table and column; those that are `known` exist with another type.
        """
        for table in self.tables:
            indexes = ", ".join(f"{name} BIGINT" for name in table.index_names)
            self._run(CREATE_CHILDREN if table.depth else CREATE_ROWS, table, indexes=indexes)
        for (name, column), kind in new_types.items():
            table = next(each for each in self.tables if each.name == name)
            query = WIDEN_COLUMN if (name, column) in known else ADD_COLUMN
            self._run(query, table, column=quote_identifier(column), type=kind)
        for table in self.tables:
            self._create_view(table)

    def _create_view(self, table: Table) -> None:
        identity = ("_parent_key", *table.index_names) if table.depth else ("_key",)
        shown = ("_valid_from", "_extra") if table.depth else SHOWN
        columns = _listed("history", ("_connection", *identity, *table.data, *shown))
        current = f"current.{quote_identifier(table.name)}"
        macro = f"history.{quote_identifier(table.name + '_as_of')}"
        self._run(CREATE_VIEW, table, current=current, columns=columns)
        self._run(CREATE_MACRO, table, macro=macro)

    def write(self, flat: dict[str, Any], *, has_changed: bool) -> int:
        """Write the staged rows of one part; return how many are the same as the current ones.

        `flat` has an Arrow table for each table. Of changed rows the current version ends first,
        unless no column differs: then only the digest is replaced.
        """
        same = self._find_same(flat) if has_changed else []
        if has_changed:
            self._run(UPDATE_DIGESTS)
            self._run(CREATE_ENDED_BY_PART)
            self._end()
        for table in self.tables:
            self._insert(table, flat[table.name], same)
        return len(same)

    def end_absent(self, expected: int) -> None:
        """End the rows that the scan lacks."""
        self._run(CREATE_ENDED_BY_ABSENCE)
        if self._end() != expected:
            raise _defect("another number of rows ended than the scan lacks")

    def _end(self) -> int:
        own, *children = self.tables
        ended: int = self._run(END_ROWS, own)[0][0]
        for table in children if ended else ():
            self._run(END_CHILDREN, table)
        return ended

    def _find_same(self, flat: dict[str, Any]) -> list[str]:
        """Return the keys of changed rows that say the same as before, and register them."""
        own, *children = self.tables
        self.db.register("load_part", flat[own.name])
        columns = [quote_identifier(name) for name in (*own.data, "_extra")]
        equal = " AND ".join(f"part.{name} IS NOT DISTINCT FROM history.{name}" for name in columns)
        same = {key for (key,) in self._run(SELECT_SAME, own, equal=equal)}
        for table in children:
            self._register_keys(same)
            self.db.register("load_children", flat[table.name])
            names = ("_parent_key", *table.index_names, *table.data, "_extra")
            lists = {"part": _listed("part", names), "old": _listed("history", names)}
            same -= {key for (key,) in self._run(SELECT_OTHER_CHILDREN, table, **lists)}
        self._register_keys(same)
        return sorted(same)

    def _register_keys(self, keys: set[str]) -> None:
        self.db.register("load_same", pa.table({"_key": pa.array(sorted(keys), pa.string())}))

    def _insert(self, table: Table, rows: Any, same: Sequence[str]) -> None:
        if same:
            keys = rows.column("_parent_key" if table.depth else "_key")
            rows = rows.filter(pc.invert(pc.is_in(keys, pa.array(same, pa.string()))))
        counts = self.inserted.setdefault(table.name, Counter())
        counts[""] += rows.num_rows
        for name in table.data:
            counts[name] += rows.num_rows - rows.column(name).null_count
        if rows.num_rows:
            self.db.register("load_insert", rows)
            self._run(INSERT_ROWS, table)

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

    def _run(self, query: str, table: Table | None = None, **names: str) -> list[Any]:
        history = history_name((table or self.tables[0]).name)
        query = query.format(history=history, **names)
        values = {"connection": self.connection, "time": self.time}
        bound = {name: value for name, value in values.items() if f"${name}" in query}
        return self.db.execute(query, bound or None).fetchall()


def _listed(source: str, names: Sequence[str]) -> str:
    return ", ".join(f"{source}.{quote_identifier(name)}" for name in names)


def _defect(reason: str) -> LoadFailed:
    return LoadFailed(
        f"The load would lose data: {reason}. Nothing of this scan is loaded; the scan file keeps "
        "every record.",
        "Report this defect of partner-sync with the scan file.",
    )
