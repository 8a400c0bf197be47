"""The stage into the tables: new versions into `current`, those that ended into `past`.

Here: the statements, in the one order in which they are right. Not here: which records changed
(compare), which are gone for good (disappeared).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

import duckdb
import pyarrow as pa

from pipelines.warehouse.database import append, exists, quoted, scalar
from pipelines.warehouse.history import PAST
from pipelines.warehouse.known import Whole
from pipelines.warehouse.survey import before, staged

# A second reading of another day in which a row is missing ends its version.
GONE = """
INSERT INTO fold_ended
SELECT a.id, NULL, c.missing_since, 'missing' FROM fold_absent a
JOIN {current} c ON c.rowid = a.id JOIN meta.folds f ON f.ended_at = c.missing_since
AND f.connection = $connection AND f.stream = $stream WHERE f.day <> $day
"""
# What changed was taken out of the table for the comparison; a pass over it costs 0.2 s a million.
ENDED = """
INSERT INTO {past} BY NAME
SELECT c.* EXCLUDE (_at), c.changed_at AS valid_from, e.valid_to, e.why
FROM {before} c JOIN fold_ended e ON e.reading = c._at
"""
ENDED_MISSING = """
INSERT INTO {past} BY NAME
SELECT c.*, c.changed_at AS valid_from, e.valid_to, e.why
FROM {current} c JOIN fold_ended e ON c.rowid = e.id WHERE e.reading IS NULL
"""
ENDED_CHILDREN = """
INSERT INTO {past} BY NAME
SELECT t.*, e.valid_from, e.valid_to
FROM {table} t JOIN fold_gone e ON t.{key} = e.key WHERE t._connection = $connection
"""
# A record that comes back, or changed, keeps the moment when it was seen first.
FIRST = """
CREATE OR REPLACE TEMP TABLE fold_first AS
SELECT reading, min(first_seen) AS first_seen FROM (
    SELECT e.reading, c.first_seen FROM fold_ended e JOIN {current} c ON c.rowid = e.id
    WHERE e.reading IS NOT NULL
    UNION ALL
    SELECT s._at, p.first_seen FROM {staged} s JOIN {past} p ON p.{key} = s.{key}
    WHERE p._connection = $connection
) GROUP BY ALL
"""
ADDED = """
INSERT INTO {current} BY NAME
SELECT s.* EXCLUDE (_at), coalesce(f.first_seen, $moment::TIMESTAMPTZ) AS first_seen,
       $moment::TIMESTAMPTZ AS changed_at
FROM {staged} s ANTI JOIN fold_same m ON m.reading = s._at
LEFT JOIN fold_first f ON f.reading = s._at
"""
ADDED_CHILDREN = """
INSERT INTO {table} BY NAME
SELECT t.* EXCLUDE (_at) FROM {staged} t ANTI JOIN fold_same m ON m.reading = t._at
"""
MISSED = """
UPDATE {current} SET missing_since = $moment::TIMESTAMPTZ
WHERE missing_since IS NULL AND rowid IN (SELECT id FROM fold_absent)
"""
FOUND = """
UPDATE {current} SET missing_since = NULL WHERE missing_since IS NOT NULL
AND _connection = $connection AND rowid NOT IN (SELECT id FROM fold_absent)
"""
RESPELLED = """
UPDATE {current} SET _digest = s._digest
FROM fold_same m JOIN {staged} s ON s._at = m.reading WHERE {current}.rowid = m.id
AND {current}._digest <> s._digest
"""


@dataclass(frozen=True)
class Merged:
    """How many versions began and ended; of those that are in `current`, how many are missing."""

    added: int
    changed: int
    restated: int
    gone: int
    missing: int


@dataclass(frozen=True)
class Merge:
    """One stream of one connection; `children` are all of its tables that ever were."""

    database: duckdb.DuckDBPyConnection
    stream: str
    connection: str
    key: str
    children: Sequence[str]
    current: Sequence[str]

    def apply(self, moment: datetime, day: date, absent: Whole, *, counts_missing: bool) -> Merged:
        """Bring the tables to a moment; `absent` are the rows that were not read."""
        given = {"connection": self.connection}
        self._prepare(absent)
        if counts_missing and len(absent):
            self._run(GONE, given | {"stream": self.stream, "day": day})
        self._run(RESPELLED)
        self._run(
            "INSERT INTO fold_ended "
            "SELECT id, reading, $moment::TIMESTAMPTZ, why FROM fold_changed",
            {"moment": moment},
        )
        self._run(FIRST, given)
        counts = dict(self._rows("SELECT why, count(*) FROM fold_ended GROUP BY ALL"))
        ended = counts.get("changed", 0) + counts.get("restated", 0)
        self._end(ended, counts.get("missing", 0))
        self._run(ADDED, {"moment": moment})
        for table in self.current:
            self._run(ADDED_CHILDREN, table=table)
        if counts_missing:
            self._run(MISSED, {"moment": moment})
        self._run(FOUND, given)
        same = self._count("SELECT count(*) FROM fold_same")
        added = self._count("SELECT count(*) FROM {staged}") - same - ended
        missing = self._count(
            "SELECT count(*) FROM {current} WHERE missing_since IS NOT NULL AND _connection = "
            "$connection"
        )
        return Merged(
            added,
            counts.get("changed", 0),
            counts.get("restated", 0),
            counts.get("missing", 0),
            missing,
        )

    def _prepare(self, absent: Whole) -> None:
        self._run("CREATE OR REPLACE TEMP TABLE fold_absent (id BIGINT)")
        append(self.database, "fold_absent", pa.table({"id": absent}))
        self._run(
            "CREATE OR REPLACE TEMP TABLE fold_ended "
            "(id BIGINT, reading BIGINT, valid_to TIMESTAMPTZ, why VARCHAR)"
        )
        self._run(
            "CREATE OR REPLACE TEMP TABLE fold_same AS SELECT * FROM fold_matched "
            "WHERE reading NOT IN (SELECT reading FROM fold_changed)"
        )

    def _end(self, changed: int, missing: int) -> None:
        """Move the versions that ended, and their children, into the past."""
        if not changed and not missing:
            return
        self._run(
            "CREATE OR REPLACE TEMP TABLE fold_gone AS SELECT c.{key} AS key, "
            "c.changed_at AS valid_from, e.valid_to FROM fold_ended e "
            "JOIN {current} c ON c.rowid = e.id"
        )
        if changed:
            self._run(ENDED)
        if missing:
            self._run(ENDED_MISSING)
        given = {"connection": self.connection}
        for table in self.children:
            if exists(self.database, "current", table):
                self._run(ENDED_CHILDREN, given, table)
                self._run(
                    "DELETE FROM {table} WHERE _connection = $connection "
                    "AND {key} IN (SELECT key FROM fold_gone)",
                    given,
                    table,
                )
        self._run("DELETE FROM {current} WHERE rowid IN (SELECT id FROM fold_ended)")

    def _run(self, query: str, values: Mapping[str, object] | None = None, table: str = "") -> None:
        self.database.execute(self._filled(query, table), dict(values) if values else None)

    def _rows(self, query: str) -> list[tuple[str, int]]:
        values = {"connection": self.connection} if "$connection" in query else None
        return self.database.execute(self._filled(query), values).fetchall()

    def _count(self, query: str) -> int:
        values = {"connection": self.connection} if "$connection" in query else None
        return scalar(self.database, self._filled(query), values)

    def _filled(self, query: str, table: str = "") -> str:
        return query.format(
            key=quoted(self.key),
            current=quoted("current", self.stream),
            staged=staged(table or self.stream),
            before=before(self.stream),
            past=quoted(PAST, table or self.stream),
            table=quoted("current", table),
        )
