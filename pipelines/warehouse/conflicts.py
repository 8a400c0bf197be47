"""Conflicts: records of one list that have the same key and other values, at the same time.

Only two records are one: those that one page shows, and those that the scan proved to be repeats
(Manifest.repeated). Of them the one that is loaded already stays, otherwise the later in the list;
the others go to quarantine. Values that differ between two answers are otherwise a change.
"""

from dataclasses import dataclass
from datetime import datetime

import duckdb
import numpy as np
import pyarrow as pa

from pipelines.api.problem import cleaned
from pipelines.state.decisions import Kind
from pipelines.warehouse.archive import Manifest
from pipelines.warehouse.awaiting import Awaited
from pipelines.warehouse.compare import Texts
from pipelines.warehouse.database import append, exists, quoted, scalar
from pipelines.warehouse.quarantine import SCHEMA
from pipelines.warehouse.survey import ROW, Survey, staged

ONE_IN = 50  # keys may be in conflict, and one in any case
REASON = "another record has the same key and other values"
REMEDY = "the service has to give each record a key of its own; each sync reads it again"
# Keys in conflict, and the newest page that shows it: what was read before it may be out of date.
# A repeat that no page shows as a whole has page 0: then every reading of it counts.
SHOWN = """
CREATE OR REPLACE TEMP TABLE fold_shown AS
SELECT key, max(page) AS page FROM (
    SELECT key, reading >> 32 AS page FROM fold_read WHERE NOT flawed
    GROUP BY ALL HAVING min(digest) <> max(digest)
    UNION ALL
    SELECT key, 0 FROM fold_read
    WHERE NOT flawed AND reading IN (SELECT reading FROM fold_repeated)
) WHERE key IN (SELECT key FROM fold_newest WHERE NOT aside) GROUP BY key
"""
# Copies that were on one page have their order there; else a copy's place is where it stood last.
COPIES = """
CREATE OR REPLACE TEMP TABLE fold_copies AS
WITH copies AS (
    SELECT r.key, max(r.reading) AS reading, NOT bool_and(r.staged) AS loaded,
           arg_max(p.first + (r.reading & 4294967295),
                   r.reading + if((r.reading >> 32) = s.page, {first}, 0)) AS place
    FROM fold_read r JOIN fold_shown s ON s.key = r.key
    JOIN fold_pages p ON p.page = (r.reading >> 32)
    WHERE NOT r.flawed
    GROUP BY r.key, r.digest, s.page HAVING max(r.reading >> 32) >= s.page
)
SELECT key, reading, row_number() OVER (
    PARTITION BY key ORDER BY loaded DESC, place DESC, reading DESC
) = 1 AS wins FROM copies
"""
CONFLICTS = """
CREATE OR REPLACE TEMP TABLE fold_conflicts AS
SELECT CAST(s.{key} AS VARCHAR) AS key, s._page AS page, s._row AS row
FROM {staged} s JOIN fold_copies c ON c.reading = s._at WHERE NOT c.wins
"""
# Each copy that is not loaded, and the one that is: where their bytes are.
PAIRS = """
WITH places AS (
    SELECT t._at AS reading, t._page AS page, t._row AS row FROM {staged} t
    UNION ALL
    SELECT f.reading, t._page, t._row FROM fold_seen f JOIN {current} t ON t.rowid = f.id
)
SELECT c.reading, p.page, p.row, w.page, w.row
FROM fold_copies c JOIN places p ON p.reading = c.reading
JOIN fold_copies v ON v.key = c.key AND v.wins JOIN places w ON w.reading = v.reading
WHERE NOT c.wins ORDER BY p.page, p.row
"""
KEYS = "SELECT count(DISTINCT key) FROM fold_copies WHERE NOT wins"
FIRST = "SELECT min(reading) FROM fold_copies WHERE NOT wins"
STORE = """
INSERT INTO {table} BY NAME
SELECT $connection AS _connection, c.key AS _key, c.page AS _page, c.row AS _row, $run AS _run,
       $path AS path, 'a key of one record' AS expected, 'the key of several records' AS got,
       $reason AS reason, $remedy AS remedy, $now::TIMESTAMPTZ AS quarantined_at
FROM fold_conflicts c
"""
AT_ONCE = 10_000  # pairs of copies compared together
NEWEST_PAGE = 1 << 62  # more than any reading


def listed(
    database: duckdb.DuckDBPyConnection, connection: str, stream: str
) -> list[tuple[str, int]]:
    """Return where the records in conflict lie that are not loaded: the page, and the row in it."""
    if not exists(database, SCHEMA, stream):
        return []
    query = f"SELECT _page, _row FROM {quoted(SCHEMA, stream)} WHERE _connection = ? AND reason = ?"
    return database.execute(query, [connection, REASON]).fetchall()


def most(keys: int) -> int:
    """Return how many of so many keys may be in conflict: 2 %, and one of a shorter list."""
    return max(1, keys // ONE_IN)


@dataclass(frozen=True)
class Conflicts:
    """The conflicts of one survey, in `fold_read`; `key` is the column that identifies a row."""

    survey: Survey
    key: str

    def find(self) -> int:
        """Make `fold_copies` and `fold_conflicts`; return how many records are set aside.

        Where no field identifies a record there are none: records with equal keys are equal.
        """
        database, survey, manifest = self._database, self.survey, self._manifest
        database.execute("CREATE OR REPLACE TEMP TABLE fold_pages (page BIGINT, first BIGINT)")
        database.execute("CREATE OR REPLACE TEMP TABLE fold_repeated (reading BIGINT)")
        if manifest.key is not None:
            offsets = survey.offsets()
            pages = {"page": np.arange(len(offsets)), "first": offsets}
            append(database, "fold_pages", pa.table(pages))
            append(database, "fold_repeated", pa.table({"reading": survey.repeated()}))
        database.execute(SHOWN)
        database.execute(COPIES.format(first=NEWEST_PAGE))
        self._drop_equal()
        names = {"key": quoted(self.key), "staged": staged(manifest.stream)}
        database.execute(CONFLICTS.format(**names))
        return scalar(database, "SELECT count(*) FROM fold_conflicts")

    def _drop_equal(self) -> None:
        """Leave out copies that say the same in another spelling: they are one record."""
        stream, texts = self._manifest.stream, Texts(self.survey.pages.archive)
        query = PAIRS.format(staged=staged(stream), current=quoted("current", stream))
        pairs, equal = self._database.execute(query), list[int]()
        while some := pairs.fetchmany(AT_ONCE):
            mine = texts.of([(page, row) for _, page, row, _, _ in some])
            theirs = texts.of([(page, row) for *_, page, row in some])
            same = zip(some, mine, theirs, strict=True)
            equal += [reading for (reading, *_), own, other in same if own == other]
        self._database.execute("CREATE OR REPLACE TEMP TABLE fold_equal (reading BIGINT)")
        append(self._database, "fold_equal", pa.table({"reading": pa.array(equal, pa.int64())}))
        gone = "NOT wins AND reading IN (SELECT reading FROM fold_equal)"
        self._database.execute(f"DELETE FROM fold_copies WHERE {gone}")

    def judge(self, keys: int) -> None:
        """Raise Awaited where too many of the keys are in conflict; `keys` is how many there are.

        A person may let as many records be set aside as were found.
        """
        database, manifest, page = self._database, self._manifest, self.survey.page
        wrong = scalar(database, KEYS)
        rows = scalar(database, "SELECT count(*) FROM fold_conflicts")
        if not wrong or wrong <= most(keys) or rows <= self.survey.ward.accepted:
            return
        reading = scalar(database, FIRST)
        raise Awaited(
            Kind.QUARANTINE,
            manifest,
            rows,
            f"{wrong:,} of {keys:,} keys ({cleaned(str(manifest.key))}) are shared by records with "
            f"different values, more than {1 / ONE_IN:.0%}: {rows:,} rows would be set aside. The "
            f"first is row {reading & ROW} of the page at offset {page(reading).offset}. If the "
            "field no longer identifies the records, set key in "
            f"[streams.{manifest.stream}].",
        )

    def store(self, now: datetime) -> None:
        """Add the records that are set aside to the stream's quarantine."""
        manifest = self._manifest
        self._database.execute(
            STORE.format(table=quoted(SCHEMA, manifest.stream)),
            {
                "connection": manifest.connection,
                "run": manifest.run,
                "path": cleaned(str(manifest.key)),
                "reason": REASON,
                "remedy": REMEDY,
                "now": now,
            },
        )

    @property
    def _database(self) -> duckdb.DuckDBPyConnection:
        return self.survey.database

    @property
    def _manifest(self) -> Manifest:
        return self.survey.pages.manifest
