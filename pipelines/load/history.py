"""The history of a stream: one table with every version of every row, views and a macro over it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.archive.records import Digests
from pipelines.core.text import quote_identifier
from pipelines.load.reread import change_types
from pipelines.load.schema import Place, Schema
from pipelines.load.stage import Stage
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
FEWEST_COLUMNS = 50  # of a table that is rewritten; with fewer, a commit takes 26 MB at most
MOST_REWRITTEN = 1_000_000  # values: about 20 MB
SELECT_DIGESTS = """
SELECT history._digest
FROM {history} AS history
WHERE history._valid_to IS NULL AND history._connection = $connection
"""
# Of staged rows with one key, the one with the smallest digest counts, and none if the row that is
# current is seen. The others are copies of it, or in conflict with it. (Few keys are there twice.)
CREATE_DELTA = """
CREATE OR REPLACE TEMP TABLE load_delta AS
WITH chosen AS (
    SELECT
        staged._key, min({{'digest': staged._digest, 'position': staged._position}}) AS best
    FROM load_staged AS staged
    WHERE hash(staged._key) IN (
        SELECT hash(each._key) FROM load_staged AS each GROUP BY ALL HAVING count(*) > 1
    )
    GROUP BY staged._key
), present AS (
    SELECT
        history._key,
        history._digest NOT IN (SELECT unseen._digest FROM load_unseen AS unseen) AS is_seen
    FROM {history} AS history
    WHERE history._valid_to IS NULL AND history._connection = $connection
)
SELECT
    coalesce(staged._key, present._key) AS _key,
    staged._digest, staged._page, staged._row, staged._position,
    CASE
        WHEN staged._key IS NULL THEN 'deleted'
        WHEN present.is_seen OR staged._digest <> chosen.best.digest THEN 'conflict'
        WHEN staged._position <> chosen.best.position THEN 'copy'
        WHEN present._key IS NULL THEN 'new'
        ELSE 'resent'
    END AS change
FROM load_staged AS staged
LEFT JOIN chosen ON chosen._key = staged._key
FULL JOIN present ON present._key = staged._key
WHERE change <> 'new' AND (staged._key IS NOT NULL OR (
    $ends_rows AND NOT present.is_seen
    AND present._key NOT IN (SELECT unnest($aside::VARCHAR[]))
))
"""
SUM_DELTA = """
SELECT
    delta.change, count(*),
    list(delta._position) FILTER (delta.change IN ('copy', 'conflict')),
    list((delta._page, delta._row)) FILTER (delta.change = 'conflict')
FROM load_delta AS delta
GROUP BY delta.change
"""
SHOWN = ("_valid_from", "_scan_id", "_page", "_row", "_extra")  # of our columns, in current


@dataclass(frozen=True)
class Delta:
    """What a load would change. Table load_delta has the keys, but those of new rows.

    `dropped` are positions of staged rows that are copies of others, or in conflict with them.
    `resent` rows are current with other bytes.
    """

    stage: Stage
    dropped: pa.Array
    new: int
    resent: int
    deleted: int


def current_digests(target: Target) -> Digests:
    """Return the sorted digests of the rows that are current."""
    return np.sort(target.execute(SELECT_DIGESTS).to_arrow_table().column(0).to_numpy())


def compare(target: Target, stage: Stage) -> Delta:
    """Create table load_delta; put staged rows in conflict with others in quarantine.

    A complete scan ends the rows that it lacks, unless a record of it has no readable key; one with
    another key ends all rows.
    """
    ends_rows = target.scan.completeness.complete and not stage.keyless
    aside = [each.key for each in stage.quarantined]
    if stage.has_new_key:
        ends_rows, aside = True, []
    target.db.register("load_staged", stage)
    target.db.register("load_unseen", pa.table({"_digest": stage.current[~stage.is_seen]}))
    target.run(CREATE_DELTA, ends_rows=ends_rows, aside=aside)
    counts, dropped, conflicts = Counter[str](), list[int](), set[tuple[int, int]]()
    for change, count, positions, rows in target.run(SUM_DELTA):
        counts[change] = count
        dropped += positions or ()
        conflicts.update(rows or ())
    stage.quarantine_conflicts(conflicts)
    new = stage.rows - len(dropped) - counts["resent"]
    stage.drop_index()
    left_out = pa.array(dropped, pa.int64())
    return Delta(stage, left_out, new, counts["resent"], counts["deleted"])


@dataclass(frozen=True)
class History:
    """The tables of one stream, for one load at `time`."""

    target: Target
    schema: Schema
    time: datetime

    @cached_property
    def tables(self) -> list[Place]:
        """The table of the records, and those of the lists in them."""
        return [place for place in self.schema.places.values() if place.is_table]

    def prepare(self) -> None:
        """Create tables, columns and views; widen columns that have another type now."""
        types, known = self.schema.types, self.schema.known
        for table in self.tables:
            indexes = ", ".join(f"{name} BIGINT" for name in table.indexes)
            self._run(CREATE_CHILDREN if table.path else CREATE_ROWS, table, indexes=indexes)
            columns = self._columns(table)
            changed = [at for at in self.schema.new_types if at[0] == table.table]
            for at in changed:
                if at not in known:
                    self._run(ADD_COLUMN, table, column=quote_identifier(at[1]), type=types[at])
            wider = [at for at in changed if at in known]
            changes = [(self.schema.column(at), known[at], types[at]) for at in wider]
            change_types(self.target.db, table.table, changes)
            if changed or not columns:
                create_views(self.target.db, self.schema, table)

    def write(self, delta: Delta) -> int:
        """Insert staged rows, end those that are replaced or gone; return how many have changed.

        Of rows that were sent with other bytes and say the same, only the digest is replaced.
        Raises ValueError if a value would be lost, or another number of rows begin or end.
        """
        begun, ended, changed = self._insert(delta), 0, 0
        if delta.resent:
            for table in self.tables:
                columns = _listed((table.key, *table.indexes, *self._columns(table), "_extra"))
                changed += self._run(MARK_CHANGED, table, columns=columns)
        if changed < delta.resent:
            for table in self.tables:
                self._run(DELETE_RESENT, table)
            self._run(UPDATE_DIGESTS, self.tables[0])
        for table in self.tables if changed or delta.deleted else ():
            ends = "_valid_to = $time" + ("" if table.path else ", _end_reason = delta.change")
            count = self._run(END_VERSIONS, table, set=ends)
            ended += 0 if table.path else count
        expected = delta.new + delta.resent, changed + delta.deleted
        if (begun, ended) != expected:
            raise ValueError(f"{begun, ended} rows would begin and end instead of {expected}")
        for table in self.tables:
            self._rewrite(table)
        return changed

    def _rewrite(self, table: Place) -> None:
        """Make a small table of many columns again, so that its commit needs less memory."""
        columns = len(self._columns(table))
        rows = self._run(COUNT_ROWS, table) if columns >= FEWEST_COLUMNS else 0
        if 0 < rows * columns <= MOST_REWRITTEN:
            self._run(REWRITE, table)

    def _insert(self, delta: Delta) -> int:
        """Insert staged rows; return how many records. Raises ValueError if a value is lost."""
        wanted = Counter[tuple[str, str]]()
        for table, staged in delta.stage.tables():
            is_dropped = pc.is_in(staged["_position"], delta.dropped)
            added = staged.filter(pc.invert(is_dropped)) if len(delta.dropped) else staged
            self._run(INSERT_ROWS, table, added=added)
            wanted[table.table, "_valid_from"] += added.num_rows
            for name in added.column_names:
                wanted[table.table, name] += added.num_rows - added[name].null_count
        for table in self.tables:
            names = ("_valid_from", *self._columns(table))
            counts = ", ".join(f"count(history.{quote_identifier(name)})" for name in names)
            terms = {"counts": counts, "time": self.time}
            ((found,),) = self.target.run(COUNT_VALUES, table.table, **terms)
            expected = [wanted[table.table, name] for name in names]
            if found != expected:
                raise ValueError(f"{table.table} holds {found} values of {names}, not {expected}")
        return wanted[self.tables[0].table, "_valid_from"]

    def _columns(self, table: Place) -> list[str]:
        return [name for owner, name in self.schema.types if owner == table.table]

    def _run(self, query: str, table: Place, **names: Any) -> int:
        """Run a statement on a table; return what it counts."""
        found = self.target.run(query, table.table, key=table.key, time=self.time, **names)
        return int(found[0][0]) if found else 0


def create_views(db: duckdb.DuckDBPyConnection, schema: Schema, table: Place) -> None:
    """Create the view of the current rows of a table, and the macro of those at a moment."""
    columns = [name for owner, name in schema.types if owner == table.table]
    shown = ("_connection", table.key, *table.indexes, *columns)
    shown += ("_valid_from", "_extra") if table.path else SHOWN
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
