"""The fold: one manifest's pages into the stream's tables in schema `current`.

Two passes over the archived pages: the first finds the shape and the duplicates, the second loads,
in one transaction. A fold that fails leaves the stream as it was; its pages stay in the archive.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256

import duckdb
import msgspec
import pyarrow as pa
from sqlalchemy import Engine

from pipelines.clock import Clock
from pipelines.errors import LandingFailed
from pipelines.state import registry, versions
from pipelines.state.journal import LinkedPage
from pipelines.state.versions import Fold
from pipelines.warehouse import schema
from pipelines.warehouse.archive import Archive, Manifest
from pipelines.warehouse.database import quoted
from pipelines.warehouse.decode import Decoder, Misfit, lexemes
from pipelines.warehouse.tables import Batch, Flattener

PAGES_AT_ONCE = 16  # a few thousand records: enough for DuckDB's pace, little to hold
CANONICAL = msgspec.json.Encoder(order="sorted", decimal_format="number")


@dataclass(frozen=True)
class _Read:
    """One page decoded; `keys` identify its records."""

    page: LinkedPage
    records: pa.StructArray
    keys: pa.Array


@dataclass
class _Pages:
    """A manifest's pages, decoded one at a time; the shape grows with what they hold."""

    archive: Archive
    manifest: Manifest
    decoder: Decoder
    equals: Counter[str] = field(default_factory=Counter)

    def read(self) -> Iterator[_Read]:
        """Yield the pages in chain order."""
        self.equals.clear()
        for page in self.manifest.pages:
            try:
                body = self.archive.body(page.sha256)
                records = self._decoded(body)
                yield _Read(page, records, self._keys(body, records))
            except LandingFailed as error:
                raise LandingFailed(
                    f"{self.manifest.stream}: page at offset {page.offset}: {error}. The stream "
                    f"keeps its last published rows; the page is archived as {page.sha256}."
                ) from None

    def _decoded(self, body: bytes) -> pa.StructArray:
        try:
            return self.decoder.records(body)
        except Misfit as misfit:
            self.decoder = Decoder(misfit.shape)
            return self.decoder.records(body)

    def _keys(self, body: bytes, records: pa.StructArray) -> pa.Array:
        key = self.manifest.key
        if key is None:
            return pa.array([self._ordinal(row) for row in lexemes(body)], pa.string())
        if len(records) == 0:
            return pa.array([], pa.string())
        if records.type.get_field_index(key) < 0 or records.field(key).null_count:
            raise LandingFailed(f"a record has no {key}, which identifies the stream's records")
        if pa.types.is_nested(records.field(key).type):
            raise LandingFailed(f"{key} is an object or a list and identifies nothing")
        return records.field(key).cast(pa.string())

    def _ordinal(self, record: dict[str, object]) -> str:
        """Return what identifies a record without a key: its content, and which of its equals."""
        digest = sha256(CANONICAL.encode(record)).hexdigest()
        self.equals[digest] += 1
        return f"{digest}.{self.equals[digest]}"


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
    pages = _Pages(archive, manifest, Decoder(before))
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


def _survey(database: duckdb.DuckDBPyConnection, pages: _Pages) -> dict[int, set[int]]:
    """Let the shape grow over all pages; return the rows that newer reads replace, by page."""
    database.execute(
        "CREATE OR REPLACE TEMP TABLE read_keys (key VARCHAR, position INTEGER, row INTEGER)"
    )
    for chunk in _chunks(pages.read()):
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
        _insert(database, "read_keys", pa.concat_tables(keys))
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
    pages: _Pages,
    replaced: dict[int, set[int]],
    expected: int,
) -> None:
    manifest = pages.manifest
    flattener = Flattener(manifest.stream, pages.decoder.shape, manifest.key)
    database.execute("CREATE SCHEMA IF NOT EXISTS current")
    for name, empty in flattener.empty().items():
        _shape_table(database, quoted("current", name), empty)
        database.execute(
            f"DELETE FROM {quoted('current', name)} WHERE _connection = ?", [manifest.connection]
        )
    for chunk in _chunks(pages.read()):
        parts = [
            flattener.tables(_batch(manifest, read, replaced.get(read.page.position, set())))
            for read in chunk
        ]
        for name in parts[0]:
            rows = pa.concat_tables([part[name] for part in parts])
            _insert(database, quoted("current", name), rows)
    table = quoted("current", manifest.stream)
    loaded = database.execute(
        f"SELECT count(*) FROM {table} WHERE _connection = ?", [manifest.connection]
    ).fetchone()
    if loaded != (expected,):
        raise LandingFailed(
            f"{manifest.stream}: {expected} rows were read but {loaded} are in the table; "
            "the stream keeps its last published rows"
        )


def _batch(manifest: Manifest, read: _Read, replaced: set[int]) -> Batch:
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


def _chunks(reads: Iterator[_Read]) -> Iterator[list[_Read]]:
    chunk: list[_Read] = []
    for read in reads:
        chunk.append(read)
        if len(chunk) == PAGES_AT_ONCE:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _insert(database: duckdb.DuckDBPyConnection, table: str, rows: pa.Table) -> None:
    """Append rows, column by column by name.

    A registered view would hold every batch until the transaction ends (469 MB for a million rows).
    """
    columns = [name for name, *_rest in database.execute(f"DESCRIBE {table}").fetchall()]
    database.from_arrow(rows.select(columns)).insert_into(table)


def _shape_table(database: duckdb.DuckDBPyConnection, table: str, empty: pa.Table) -> None:
    """Create the table, or give it the columns and types that it lacks; they only grow wider."""
    wanted = dict(zip(empty.column_names, database.from_arrow(empty).types, strict=True))
    columns = ", ".join(f"{quoted(name)} {kind}" for name, kind in wanted.items())
    database.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")
    there = {name: kind for name, kind, *_rest in database.execute(f"DESCRIBE {table}").fetchall()}
    for name, kind in wanted.items():
        if name not in there:
            database.execute(f"ALTER TABLE {table} ADD COLUMN {quoted(name)} {kind}")
        elif there[name] != str(kind):
            database.execute(f"ALTER TABLE {table} ALTER {quoted(name)} SET DATA TYPE {kind}")
