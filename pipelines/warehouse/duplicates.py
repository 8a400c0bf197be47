"""Of several readings of a record the newest counts: the others leave the stage, and are counted.

Two readings of a record may differ, it changed meanwhile; two records of one page may not. Not
here: which of these are loaded (conflicts).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipelines.warehouse.conflicts import Conflicts
from pipelines.warehouse.database import append, quoted, scalar
from pipelines.warehouse.known import Whole
from pipelines.warehouse.survey import Survey, staged
from pipelines.warehouse.tables import AT

# Known records whose key was read with other content as well.
SEEN = """
SELECT CAST(c.{key} AS VARCHAR) AS key, s.reading, c._digest AS digest, FALSE AS flawed,
       FALSE AS staged
FROM fold_seen s JOIN {current} c ON c.rowid = s.id
"""
READINGS = """
SELECT CAST({key} AS VARCHAR) AS key, _at AS reading, _digest AS digest, FALSE AS flawed,
       TRUE AS staged FROM {staged}
UNION ALL SELECT key, reading, digest, TRUE, FALSE FROM fold_flawed
{seen}
"""
# Every reading of the keys that may have been read twice, and of each key the newest.
READ = """
CREATE OR REPLACE TEMP TABLE fold_read AS
SELECT * FROM ({readings}) WHERE hash(key) IN (SELECT hashed FROM fold_often)
"""
NEWEST = """
CREATE OR REPLACE TEMP TABLE fold_newest AS
SELECT key, max(reading) AS reading, arg_max(flawed, reading) AS aside FROM fold_read GROUP BY key
"""
OLDER = """
CREATE OR REPLACE TEMP TABLE fold_older AS
SELECT r.reading FROM fold_read r JOIN fold_newest n ON n.key = r.key
LEFT JOIN fold_copies c ON c.key = r.key AND c.wins
WHERE r.staged AND (n.aside OR r.reading <> coalesce(c.reading, n.reading))
"""
# Sound readings less those that stay: one of each key that is not set aside.
REPLACED = """
SELECT count(*) FILTER (NOT flawed) - count(DISTINCT key) FILTER (NOT aside)
FROM fold_read JOIN (SELECT key, aside FROM fold_newest) USING (key)
"""
RELEASED = """
SELECT DISTINCT key FROM fold_read JOIN (SELECT key, aside FROM fold_newest) USING (key)
WHERE flawed AND NOT aside
"""
MATCHED = """
CREATE OR REPLACE TEMP TABLE fold_matched AS
SELECT c.rowid AS id, s._at AS reading FROM {staged} s JOIN {current} c ON c.{key} = s.{key}
WHERE c._connection = $connection
"""
ASIDE = """
SELECT rowid FROM {current} WHERE _connection = $connection
AND CAST({key} AS VARCHAR) IN (SELECT key FROM fold_flawed)
"""
FLAWED = pa.schema([("key", pa.string()), ("reading", pa.int64()), ("digest", pa.binary())])


@dataclass(frozen=True)
class Older:
    """How many readings a newer one of their record replaces, in rows.

    `conflicts` are not among them: records under the key of another one with other values.
    """

    count: int
    conflicts: int


@dataclass(frozen=True)
class Readings:
    """The readings of one survey; `key` is the column that identifies a row of `stream`."""

    survey: Survey
    stream: str
    connection: str
    key: str

    def settle(self) -> Older:
        """Leave one reading of each record on the stage; count the others.

        Raises Awaited where too many keys are in conflict.
        """
        self._flawed()
        self._match()
        ids, ats = joined(self.survey.ids), joined(self.survey.ats)
        others = self._others()[ids]
        # Known records whose key was read with no other content need no look at the tables.
        again = len(ids) - others.sum() - len(np.unique(ids[~others]))
        if not self._read(ids[others], ats[others]):
            return Older(int(again), 0)
        conflicts = Conflicts(self.survey, self.key)
        found = conflicts.find()
        database = self.survey.database
        for (key,) in database.execute(RELEASED).fetchall():
            self.survey.ward.release(key)
        replaced = int(again) + scalar(database, REPLACED) - found
        left = self.survey.pages.manifest.rows - replaced - found
        conflicts.judge(left - self.survey.ward.readings)
        self._unstage()
        return Older(replaced, found)

    def absent(self) -> Whole:
        """Return the rowids of the table's rows that were not read, in whatever state."""
        seen = self._others()
        seen[joined(self.survey.ids)] = True
        return self.survey.known.ids[~seen]

    def _others(self) -> npt.NDArray[np.bool_]:
        """Tell of each known row whether its key was read with other content, or is set aside."""
        rowids = np.concatenate([self._rowids("SELECT id FROM fold_matched"), self._aside()])
        return self.survey.known.among(rowids)

    def _read(self, ids: Whole, ats: Whole) -> bool:
        """Make `fold_read` and `fold_newest`; tell whether any key may have been read twice."""
        database = self.survey.database
        table = pa.table({"id": self.survey.known.ids[ids], "reading": ats})
        database.execute("CREATE OR REPLACE TEMP TABLE fold_seen (id BIGINT, reading BIGINT)")
        append(database, "fold_seen", table)
        seen = f"UNION ALL {self._filled(SEEN)}" if table.num_rows else ""
        readings = self._filled(READINGS, seen=seen)
        if not self._often(readings):
            return False
        database.execute(READ.format(readings=readings))
        database.execute(NEWEST)
        return True

    def _often(self, readings: str) -> bool:
        """Make `fold_often`: hashes of the keys that may have been read twice; tell of any.

        Nearly always there is none: sorting a million hashes takes a tenth of grouping the keys.
        """
        database = self.survey.database
        rows = database.execute(f"SELECT hash(key) AS hashed FROM ({readings})").fetchnumpy()
        hashed, counts = np.unique(np.asarray(rows["hashed"], np.uint64), return_counts=True)
        often = pa.table({"hashed": hashed[counts > 1]})
        database.execute("CREATE OR REPLACE TEMP TABLE fold_often (hashed UBIGINT)")
        append(database, "fold_often", often)
        return bool(often.num_rows)

    def _flawed(self) -> None:
        database, flawed = self.survey.database, self.survey.flawed
        database.execute(
            "CREATE OR REPLACE TEMP TABLE fold_flawed (key VARCHAR, reading BIGINT, digest BLOB)"
        )
        rows = [dict(zip(FLAWED.names, each, strict=True)) for each in flawed]
        append(database, "fold_flawed", pa.Table.from_pylist(rows, FLAWED))

    def _match(self) -> None:
        self.survey.database.execute(self._filled(MATCHED), {"connection": self.connection})

    def _aside(self) -> Whole:
        """Return the rowids of rows whose record is set aside, in one of its readings."""
        if not self.survey.flawed:
            return np.array([], np.int64)
        return self._rowids(self._filled(ASIDE), connection=self.connection)

    def _rowids(self, query: str, **values: str) -> Whole:
        rows = self.survey.database.execute(query, values or None).fetchnumpy()
        (found,) = rows.values()
        return np.asarray(found, np.int64)

    def _unstage(self) -> None:
        database = self.survey.database
        database.execute(OLDER)
        older = "(SELECT reading FROM fold_older)"
        for name in self.survey.tables:
            database.execute(f"DELETE FROM {staged(name)} WHERE {AT} IN {older}")
        database.execute(f"DELETE FROM fold_matched WHERE reading IN {older}")

    def _filled(self, query: str, seen: str = "") -> str:
        return query.format(
            key=quoted(self.key),
            staged=staged(self.stream),
            current=quoted("current", self.stream),
            seen=seen,
        )


def joined(parts: list[Whole]) -> Whole:
    """Return some places one after the other."""
    return np.concatenate([np.array([], np.int64), *parts])
