"""The fold: one manifest's pages into the stream's tables in schema `current`.

Two passes over the archived pages: the first finds the shape and the duplicates, the second loads,
in one transaction. A fold that fails leaves the stream as it was; its pages stay in the archive.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from pipelines.clock import Clock
from pipelines.errors import LandingFailed
from pipelines.state.proof import Grade
from pipelines.warehouse import meta, registry, schema
from pipelines.warehouse.archive import Archive, Manifest
from pipelines.warehouse.database import append, exists, quoted, transaction, widen
from pipelines.warehouse.decode import Decoder
from pipelines.warehouse.meta import Fold
from pipelines.warehouse.pages import Pages, Read
from pipelines.warehouse.quarantine import Ward
from pipelines.warehouse.registry import Registered
from pipelines.warehouse.tables import Batch, Flattener, Names

# Two readings of a record may differ, it changed meanwhile; two records of one page may not.
OLDER = """
WITH twice AS (SELECT key FROM read_keys GROUP BY key HAVING count(*) > 1)
SELECT key, position, row, flawed, first_value(flawed) OVER newest AS aside,
       digest <> first_value(digest) OVER of_page AS differs
FROM read_keys JOIN twice USING (key)
WINDOW newest AS (PARTITION BY key ORDER BY age DESC, row DESC),
       of_page AS (PARTITION BY key, position ORDER BY row DESC)
QUALIFY row_number() OVER newest > 1
"""


@dataclass(frozen=True)
class _Older:
    """The rows that a newer read of their key replaces, by page.

    `conflicts` of them stood in one page with another record of their key and other content.
    """

    rows: Mapping[int, set[int]]
    conflicts: int

    @property
    def count(self) -> int:
        return sum(map(len, self.rows.values()))


@contextmanager
def _in_words(manifest: Manifest) -> Iterator[None]:
    """Let a failure of the engines be this stream's alone."""
    try:
        yield
    except (duckdb.Error, pa.ArrowException) as error:
        raise LandingFailed(
            f"{manifest.stream}: {manifest.file} does not fit its tables: {error}. The stream "
            "keeps its last published rows."
        ) from error


def fold(
    database: duckdb.DuckDBPyConnection,
    archive: Archive,
    manifest: Manifest,
    clock: Clock,
) -> Fold:
    """Make `current.<stream>` what the manifest read; return what that took.

    Raises LandingFailed, with the tables unchanged.
    """
    known = registry.registered(database, manifest.stream)
    before = schema.EMPTY if known is None else schema.from_json(known.shape)
    names = Names({} if known is None else deepcopy(known.names))
    key = manifest.key
    pages = Pages(archive, manifest, Decoder(schema.identified_by(before, key), key))
    ward = Ward(manifest)
    with _in_words(manifest):
        older = _survey(database, pages, ward)
    folded = Fold(
        number=len(meta.folds(database)) + 1,
        run=manifest.run,
        connection=manifest.connection,
        stream=manifest.stream,
        manifest=manifest.file,
        day=manifest.day,
        grade=manifest.proof.grade if manifest.proof else Grade.NOT_PROVEN,
        ended_at=manifest.ended_at,
        read=manifest.rows,
        duplicates=older.count + ward.readings - len(ward.records),
        conflicts=older.conflicts,
        quarantined=len(ward.records),
        rows=manifest.rows - older.count - ward.readings,
        folded_at=clock.now(),
    )
    ward.judge(folded.rows)
    with _in_words(manifest), transaction(database):
        _load(database, pages, older, names)
        ward.store(database, folded.folded_at)
        meta.record(database, folded)
        meta.verify(database, {(folded.connection, folded.stream): folded})
        wider = Registered(schema.to_json(pages.decoder.shape), names.given)
        if wider != known:
            registry.register(database, manifest.stream, wider, manifest.file, manifest.ended_at)
    return folded


def _survey(database: duckdb.DuckDBPyConnection, pages: Pages, ward: Ward) -> _Older:
    """Let the shape grow over all pages; return the rows that newer reads replace.

    What cannot be landed is set aside in the ward.
    """
    _collect(database, pages, ward)
    if not pages.keys_agree:
        ward.clear()
        _collect(database, pages, ward)  # now the shape is wide enough from the first page on
    rows: dict[int, set[int]] = defaultdict(set)
    conflicts = 0
    for key, position, row, flawed, aside, differs in database.execute(OLDER).fetchall():
        if not flawed:
            rows[position].add(row)
            conflicts += differs
        elif not aside:
            ward.release(key)
    database.execute("DROP TABLE read_keys")
    return _Older(rows, conflicts)


def _collect(database: duckdb.DuckDBPyConnection, pages: Pages, ward: Ward) -> None:
    """Write the key of every record read into a table of its own."""
    database.execute(
        "CREATE OR REPLACE TEMP TABLE read_keys "
        "(key VARCHAR, position INTEGER, age INTEGER, row INTEGER, digest BIGINT, flawed BOOLEAN)"
    )
    ages = _ages(pages.manifest)
    for chunk in pages.chunks():
        keys = [_keys(read, ages[read.page.position], ward.admit(read)) for read in chunk]
        append(database, "read_keys", pa.concat_tables(keys))


def _keys(read: Read, age: int, flawed: Mapping[int, str]) -> pa.Table:
    """Return the key of each record of a page, those in quarantine too where it can be read."""
    rows = [*read.decoded.rows, *flawed]
    keys = pa.concat_arrays([read.keys, pa.array(flawed.values(), pa.string())])
    return pa.table(
        {
            "key": keys,
            "position": pa.repeat(read.page.position, len(rows)),
            "age": pa.repeat(age, len(rows)),
            "row": pa.array(rows, pa.int32()),
            "digest": read.digests(rows),
            "flawed": pa.array([row in flawed for row in rows], pa.bool_()),
        }
    )


def _ages(manifest: Manifest) -> dict[int, int]:
    """Return the pages' places in the order of their answers: pages may be asked for ahead."""
    newest = sorted(manifest.pages, key=lambda page: (page.answered_at, page.position))
    return {page.position: age for age, page in enumerate(newest)}


def _load(database: duckdb.DuckDBPyConnection, pages: Pages, older: _Older, names: Names) -> None:
    """Replace this connection's rows in every table of the stream."""
    manifest = pages.manifest
    flattener = Flattener(manifest.stream, pages.decoder.shape, manifest.key, names)
    database.execute("CREATE SCHEMA IF NOT EXISTS current")
    for name, empty in flattener.empty().items():
        widen(database, quoted("current", name), empty)
    # Also from tables that this shape no longer gives: an array may have turned into a text.
    for name in [manifest.stream, *names.children()]:
        if exists(database, "current", name):
            table = quoted("current", name)
            database.execute(f"DELETE FROM {table} WHERE _connection = ?", [manifest.connection])
    for chunk in pages.chunks():
        parts = [flattener.tables(_batch(manifest, read, older)) for read in chunk]
        for name in parts[0]:
            rows = pa.concat_tables([part[name] for part in parts])
            append(database, quoted("current", name), rows)


def _batch(manifest: Manifest, read: Read, older: _Older) -> Batch:
    replaced = older.rows.get(read.page.position, set())
    records, rows, keys = read.decoded.records, pa.array(read.decoded.rows, pa.int32()), read.keys
    if replaced:
        places = [place for place, row in enumerate(read.decoded.rows) if row not in replaced]
        kept = pa.array(places, pa.int64())
        records, rows, keys = records.take(kept), rows.take(kept), keys.take(kept)
    return Batch(
        records=records,
        rows=rows,
        keys=keys,
        connection=manifest.connection,
        page=read.page.sha256,
        run=manifest.run,
    )
