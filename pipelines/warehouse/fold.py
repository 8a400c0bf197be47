"""The fold: one manifest's pages into the stream's tables in schema `current`.

Two passes over the archived pages: the first finds the shape and the duplicates, the second loads,
in one transaction. A fold that fails leaves the stream as it was; its pages stay in the archive.
"""

import duckdb
import pyarrow as pa
from sqlalchemy import Engine

from pipelines.clock import Clock
from pipelines.errors import LandingFailed
from pipelines.state import registry, versions
from pipelines.state.versions import Fold
from pipelines.warehouse import schema
from pipelines.warehouse.archive import Archive, Manifest
from pipelines.warehouse.database import append, quoted, widen
from pipelines.warehouse.decode import Decoder
from pipelines.warehouse.pages import Pages, Read
from pipelines.warehouse.tables import Batch, Flattener


def fold(
    database: duckdb.DuckDBPyConnection,
    archive: Archive,
    ledger: Engine,
    manifest: Manifest,
    clock: Clock,
) -> Fold:
    """Make `current.<stream>` what the manifest read; return what that took.

    Raises LandingFailed, with the tables and the registered shape unchanged.
    """
    known = registry.shape(ledger, manifest.stream)
    before = schema.EMPTY if known is None else schema.from_json(known)
    pages = Pages(archive, manifest, Decoder(before))
    replaced = _survey(database, pages)
    shape = pages.decoder.shape
    rows = manifest.rows - sum(map(len, replaced.values()))
    database.begin()
    try:
        _load(database, pages, replaced, rows)
        if shape != before:
            registry.widen(
                ledger, manifest.stream, schema.to_json(shape), manifest.file, clock.now()
            )
        database.commit()
    except BaseException:
        database.rollback()
        raise
    folded = Fold(
        run=manifest.run,
        connection=manifest.connection,
        stream=manifest.stream,
        manifest=manifest.file,
        read=manifest.rows,
        duplicates=manifest.rows - rows,
        rows=rows,
        folded_at=clock.now(),
    )
    versions.add_fold(ledger, folded)
    return folded


def _survey(database: duckdb.DuckDBPyConnection, pages: Pages) -> dict[int, set[int]]:
    """Let the shape grow over all pages; return the rows that newer reads replace, by page."""
    database.execute(
        "CREATE OR REPLACE TEMP TABLE read_keys (key VARCHAR, position INTEGER, row INTEGER)"
    )
    for chunk in pages.chunks():
        keys = [
            pa.table(
                {
                    "key": read.keys,
                    "position": pa.repeat(read.page.position, len(read.keys)),
                    "row": pa.array(range(len(read.keys)), pa.int32()),
                }
            )
            for read in chunk
        ]
        append(database, "read_keys", pa.concat_tables(keys))
    older = database.execute(
        """
        WITH twice AS (SELECT key FROM read_keys GROUP BY key HAVING count(*) > 1)
        SELECT position, row FROM read_keys JOIN twice USING (key)
        QUALIFY row_number() OVER (PARTITION BY key ORDER BY position DESC, row DESC) > 1
        """
    ).fetchall()
    database.execute("DROP TABLE read_keys")
    replaced: dict[int, set[int]] = {}
    for position, row in older:
        replaced.setdefault(position, set()).add(row)
    return replaced


def _load(
    database: duckdb.DuckDBPyConnection,
    pages: Pages,
    replaced: dict[int, set[int]],
    expected: int,
) -> None:
    manifest = pages.manifest
    flattener = Flattener(manifest.stream, pages.decoder.shape, manifest.key)
    database.execute("CREATE SCHEMA IF NOT EXISTS current")
    for name, empty in flattener.empty().items():
        widen(database, quoted("current", name), empty)
        database.execute(
            f"DELETE FROM {quoted('current', name)} WHERE _connection = ?", [manifest.connection]
        )
    for chunk in pages.chunks():
        parts = [
            flattener.tables(_batch(manifest, read, replaced.get(read.page.position, set())))
            for read in chunk
        ]
        for name in parts[0]:
            rows = pa.concat_tables([part[name] for part in parts])
            append(database, quoted("current", name), rows)
    table = quoted("current", manifest.stream)
    loaded = database.execute(
        f"SELECT count(*) FROM {table} WHERE _connection = ?", [manifest.connection]
    ).fetchone()
    if loaded != (expected,):
        raise LandingFailed(
            f"{manifest.stream}: {expected} rows were read but {loaded} are in the table; "
            "the stream keeps its last published rows"
        )


def _batch(manifest: Manifest, read: Read, replaced: set[int]) -> Batch:
    rows = pa.array([row for row in range(len(read.records)) if row not in replaced], pa.int32())
    whole = not replaced
    return Batch(
        records=read.records if whole else read.records.take(rows),
        rows=rows,
        keys=read.keys if whole else read.keys.take(rows),
        connection=manifest.connection,
        page=read.page.sha256,
        run=manifest.run,
    )
