"""The published versions of a lake: snapshots, one of which analysts see.

They attach the catalog's schema `published`: views of the lake's own tables that end with the
snapshot of the version that is opened, and show no other than of versions. So a version appears,
and is stepped back from, by one row, a query that runs meanwhile goes on reading its snapshot, and
who looks back finds whole nights only. Not here: what is published (publish).
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
from sqlalchemy import URL, Connection, text

from pipelines.errors import NothingPublished, PublicationFailed
from pipelines.settings import Home
from pipelines.settings.shared import catalogue
from pipelines.state import postgresql
from pipelines.state.versions import Version
from pipelines.warehouse import lake
from pipelines.warehouse.database import literal, together
from pipelines.warehouse.lake import PUBLISHED, Lake
from pipelines.warehouse.portion import FOLDED, LAKE
from pipelines.warehouse.totals import agreed

VERSIONS = f"{PUBLISHED}.versions"
SHOWN = f"{PUBLISHED}.shown"  # every snapshot that was a version's: who looks back sees no other
# A view that is there stays: to replace it would wait for every query that reads it, and let all
# that come meanwhile wait.
PREPARED = f"""
CREATE SCHEMA IF NOT EXISTS {PUBLISHED};
CREATE TABLE IF NOT EXISTS {VERSIONS} (
    version BIGINT PRIMARY KEY, snapshot BIGINT NOT NULL, opened BOOLEAN NOT NULL
);
CREATE TABLE IF NOT EXISTS {SHOWN} (snapshot BIGINT PRIMARY KEY);
DO $$ DECLARE t text; BEGIN
    FOR t IN
        WITH made AS (
            SELECT table_schema, table_name, array_agg(column_name ORDER BY ordinal_position) names
            FROM information_schema.columns GROUP BY table_schema, table_name
        )
        SELECT table_name FROM made WHERE table_schema = '{FOLDED}' AND (table_name, names)
        NOT IN (SELECT table_name, names FROM made WHERE table_schema = '{PUBLISHED}')
    LOOP
        EXECUTE format('CREATE OR REPLACE VIEW {PUBLISHED}.%I AS SELECT * FROM {FOLDED}.%I', t, t)
        || CASE WHEN t IN ('ducklake_snapshot', 'ducklake_snapshot_changes')
        THEN ' WHERE snapshot_id <= (SELECT snapshot FROM {VERSIONS} WHERE opened)'
            ' AND snapshot_id IN (SELECT snapshot FROM {SHOWN})' ELSE '' END;
    END LOOP;
END $$
"""
THERE = f"SELECT count(*) FROM pg_tables WHERE schemaname = '{PUBLISHED}'"
NEWEST = f"SELECT max(snapshot_id) FROM {FOLDED}.ducklake_snapshot"
PUT = f"""
WITH put AS (
    INSERT INTO {VERSIONS} SELECT {{0}}, ({NEWEST}), false ON CONFLICT DO NOTHING RETURNING snapshot
), shown AS (
    INSERT INTO {SHOWN} SELECT snapshot FROM put ON CONFLICT DO NOTHING
)
SELECT snapshot FROM put
"""
STALE = f"""
SELECT snapshot_id FROM {FOLDED}.ducklake_snapshot
WHERE snapshot_id NOT IN (SELECT snapshot FROM {VERSIONS}) AND snapshot_id < ({NEWEST})
"""
# Who opened an older version did so a day ago: until then its snapshot stays, for who reads it.
LEFT_A_DAY_AGO = f"""
AND snapshot_id < (
    SELECT max(snapshot) FROM {VERSIONS} JOIN {FOLDED}.ducklake_snapshot ON snapshot_id = snapshot
    WHERE snapshot_time < now() - INTERVAL '1 day'
)
"""
# Tables of many files, each of which a query has to open: every fold and publication adds one.
CROWDED = f"""
SELECT schema_name, table_name FROM {FOLDED}.ducklake_data_file
JOIN {FOLDED}.ducklake_table USING (table_id) JOIN {FOLDED}.ducklake_schema USING (schema_id)
WHERE ducklake_data_file.end_snapshot IS NULL AND ducklake_table.end_snapshot IS NULL
GROUP BY schema_name, table_name HAVING count(*) > {{most}} ORDER BY schema_name, table_name
"""
# Unless somebody wrote meanwhile, whose turn it was not: nothing else than merging makes these.
MOVED = f"""
WITH moved AS (
    UPDATE {VERSIONS} SET snapshot = ({NEWEST}) WHERE snapshot = {{0}} AND NOT EXISTS (
        SELECT FROM {FOLDED}.ducklake_snapshot_changes WHERE snapshot_id > {{0}}
        AND changes_made !~ '^((merge_adjacent|rewrite_delete):[0-9]+,?)+$'
    ) RETURNING snapshot
)
INSERT INTO {SHOWN} SELECT snapshot FROM moved ON CONFLICT DO NOTHING
"""
EXPIRED = f"""
DELETE FROM {SHOWN} WHERE snapshot NOT IN (SELECT snapshot_id FROM {FOLDED}.ducklake_snapshot)
"""
SMALL = 16_000_000  # bytes: a file that is larger stays as it is
DELETED = 0.05  # of a file's rows, from which on it is written anew without them
LET_GO = "cleanup_old_files"  # what merging and expiry have no use for
LEFT = "delete_orphaned_files"  # what a killed fold wrote and never committed


def name(number: int) -> str:
    """Return what a version is called."""
    return f"lake.v{number:08}.snapshot"


@dataclass(frozen=True)
class Snapshots:
    """The versions of one lake; for who publishes. A table of more than `most` files is merged."""

    lake: Lake
    most: int = 32

    @property
    def title(self) -> str:
        """What analysts open."""
        return self.lake.title

    @property
    def remedy(self) -> str:
        """What to do where a version cannot be read: its files are the tables' own."""
        return self.lake.remedy

    @property
    def numbers(self) -> list[int]:
        """The versions that can be opened, the oldest first."""
        rows = self._rows(f"SELECT version FROM {VERSIONS} ORDER BY version")
        return [int(number) for (number,) in rows]

    def name(self, number: int) -> str:
        """Return what a version is called."""
        return name(number)

    def put(self, version: Version) -> Version:
        """Let the newest snapshot be a version; return it.

        It is not read again: its rows were counted after the commit, and who publishes is alone.
        Raises PublicationFailed where somebody was not, whose turn PostgreSQL lost.
        """
        self._run(PREPARED)
        if not self._rows(PUT.format(version.version)):
            raise PublicationFailed(
                f"another run published version {version.version} meanwhile: what analysts see "
                "stays as that run left it; run partner-sync publish again"
            )
        return version

    def verify(self, version: Version) -> None:
        """Raise PublicationFailed unless a snapshot holds what was published."""
        with self.reading(version) as reader:
            agreed(reader, version)

    @contextmanager
    def reading(self, version: Version) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a connection that reads a version. Raises PublicationFailed where it is gone."""
        rows = self._rows(f"SELECT snapshot FROM {VERSIONS} WHERE version = {version.version}")
        if not rows:
            raise PublicationFailed(f"{version.file} is not in the lake any more")
        with lake.in_words(), lake.bare(self.lake.home, self.lake.memory_limit) as reader:
            at = f"SNAPSHOT_VERSION {rows[0][0]}"
            lake.attach(reader, self.lake.home, "READ_ONLY", at)
            reader.execute(f"USE {LAKE}")
            yield reader

    def opens(self, version: Version) -> bool:
        """Tell whether a version is what analysts see."""
        opened = f"SELECT count(*) FROM {VERSIONS} WHERE opened AND version = {version.version}"
        return bool(self._rows(opened) == [(1,)])

    def unchanged(self, last: Version, opened: Version) -> bool:
        """Tell that analysts see `opened`, and that the lake's newest snapshot is that of `last`.

        Whoever writes makes a snapshot, and who merges files too, with which that version moves.
        """
        newest = f"SELECT count(*) FROM {VERSIONS} WHERE version = {last.version} AND snapshot ="
        seen = f"SELECT count(*) FROM {VERSIONS} WHERE opened AND version = {opened.version}"
        return self._rows(f"SELECT ({newest} ({NEWEST})), ({seen})") == [(1, 1)]

    def point(self, version: Version) -> None:
        """Let analysts see a version: one row, at once for all."""
        self._run(f"UPDATE {VERSIONS} SET opened = (version = {version.version})")

    def keep_only(self, numbers: Collection[int], *, now: bool = False) -> list[str]:
        """Let go of all other versions; return their names.

        What they read goes a day later, for who has one open still; at once where `now`.
        """
        gone = [number for number in self.numbers if number not in numbers]
        if gone:
            listed = ", ".join(map(str, gone))
            self._run(f"DELETE FROM {VERSIONS} WHERE version IN ({listed})")
        found = self._rows(STALE if now else f"{STALE} {LEFT_A_DAY_AGO}")
        stale = [int(snapshot) for (snapshot,) in found]
        with self.lake.connected() as database:
            if stale:
                database.execute(
                    f"CALL ducklake_expire_snapshots({literal(LAKE)}, versions => {stale})"
                )
                self._run(EXPIRED)
            for what in (LET_GO, LEFT) if now else (LET_GO,):
                _remove(database, what, now=now)
        return [name(number) for number in gone]

    def tidy(self) -> None:
        """Let tables of many small files have few; every version has the rows that it had.

        The newest one reads them in the merged files from then on. What killed folds left goes as
        well: that lists every file of the lake, once a day.
        """
        newest = self._rows(NEWEST)
        crowded = self._rows(CROWDED.format(most=self.most))
        with self.lake.connected() as database:
            for schema, table in crowded:
                which = f"{literal(LAKE)}, {literal(table)}, schema => {literal(schema)}"
                together(
                    database,
                    (
                        f"CALL ducklake_rewrite_data_files({which}, delete_threshold => {DELETED})",
                        f"CALL ducklake_merge_adjacent_files({which}, max_file_size => {SMALL})",
                    ),
                )
            for (before,) in newest:
                self._run(MOVED.format(before))
            _remove(database, LEFT)

    def _run(self, sql: str) -> None:
        with _catalog(self.lake.home) as catalog:
            catalog.execute(text(sql))

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        with _catalog(self.lake.home) as catalog:
            return _rows(catalog, query)


def _remove(database: duckdb.DuckDBPyConnection, what: str, *, now: bool = False) -> None:
    """Remove files that no version has: those of a day ago, where not all `now`."""
    older = "now()" if now else "now() - INTERVAL 1 DAY"
    database.execute(f"CALL ducklake_{what}({literal(LAKE)}, older_than => {older})")


def seen(home: Home) -> tuple[int, int]:
    """Return the number and the snapshot of the version that analysts see.

    Raises NothingPublished where nothing was published yet.
    """
    with _catalog(home) as catalog:
        rows = _rows(catalog, f"SELECT version, snapshot FROM {VERSIONS} WHERE opened")
    if not rows:
        raise NothingPublished(
            "nothing was published to the lake yet: run partner-sync sync, or set "
            "PARTNER_SYNC_WAREHOUSE to the lake whose tables are wanted."
        )
    number, snapshot = rows[0]
    return int(number), int(snapshot)


def opened(home: Home) -> tuple[duckdb.DuckDBPyConnection, int]:
    """Open the version that analysts see, and stay with it; return its number too.

    Raises NothingPublished where nothing was published yet.
    """
    number, snapshot = seen(home)
    reader = lake.bare(home)
    lake.attach(reader, home, "READ_ONLY", f"SNAPSHOT_VERSION {snapshot}", schema=PUBLISHED)
    reader.execute(f"USE {LAKE}")
    return reader, number


@contextmanager
def _catalog(home: Home) -> Iterator[Connection]:
    """Yield a transaction in the lake's PostgreSQL. Raises StorageFailed where it is away."""
    asked = catalogue(home.warehouse)
    url = URL.create("postgresql+psycopg2", database=asked.pop("dbname", None), query=asked)
    with postgresql.engine(url, postgresql.CATALOG).begin() as catalog:
        yield catalog


def _rows(catalog: Connection, query: str) -> list[tuple[Any, ...]]:
    """Return what PostgreSQL answers; nothing before the first publication."""
    if not catalog.execute(text(THERE)).scalar():
        return []
    return [tuple(row) for row in catalog.execute(text(query))]
