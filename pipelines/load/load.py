"""Loads one sealed scan into the tables of a version that is being built.

Here: the order of a load: read, decide types, compare, ask the guards, write. Not here: which scans
are loaded into which version (`pipelines/versions/build.py`).
"""

import gc
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from tempfile import TemporaryFile
from typing import IO

import duckdb
import pyarrow as pa

from pipelines.archive.records import Digests
from pipelines.archive.scan_file import SealedScan
from pipelines.config.settings import Stream
from pipelines.core.errors import LoadFailed
from pipelines.core.finding import Finding
from pipelines.core.text import printable
from pipelines.load.delta import Delta, compare, current_digests
from pipelines.load.findings import list_findings, reasons_to_hold
from pipelines.load.history import CREATE_ROWS, History
from pipelines.load.maps import make_map
from pipelines.load.observe import observe
from pipelines.load.paths import FieldPath
from pipelines.load.place import Kind, Place
from pipelines.load.schema_table import CREATE_COLUMNS, read_schema, write_schema
from pipelines.load.stage import Stage
from pipelines.load.target import CREATE_TABLES, Target
from pipelines.load.whole_column import has_extreme_day, have_two_spellings, stored_texts

TICK = timedelta(microseconds=1)
SCHEMAS = [
    f"CREATE SCHEMA IF NOT EXISTS {name}" for name in ("history", "current", "quarantine", "meta")
]
SELECT_LAST = """
SELECT
    max(loads.valid_time), arg_max_null(loads.key, loads.valid_time),
    coalesce(bool_or(loads.scan_id = $scan_id), false)
FROM meta.loads AS loads
WHERE loads.connection = $connection AND loads.stream = $stream
"""


@dataclass(frozen=True)
class LoadResult:
    """What loading one scan did, in rows. If `held` gives a reason, nothing was written.

    `tables` of schema history were written to or altered. `rewrites`: also rows of other
    connections were, as a column has another type now, or an object became a map.
    """

    scan_id: str
    new: int = 0
    changed: int = 0
    deleted: int = 0
    unchanged: int = 0
    quarantined: int = 0
    held: str | None = None
    tables: tuple[str, ...] = ()
    rewrites: bool = False
    findings: tuple[Finding, ...] = ()


def create_tables(db: duckdb.DuckDBPyConnection) -> None:
    """Create what all lists share, before the first scan of a build: of many, each is small."""
    for statement in (*SCHEMAS, CREATE_COLUMNS, *CREATE_TABLES):
        db.execute(statement)


def load_scan(
    db: duckdb.DuckDBPyConnection, scan: SealedScan, stream: Stream, *, approved: bool = False
) -> LoadResult:
    """Load a scan in one transaction. Raises LoadFailed; the tables are then unchanged.

    `create_tables` comes first. Loading the same scan again touches no row. Guards run before the
    first write, unless a person has approved this very scan.
    """
    try:
        db.execute("BEGIN TRANSACTION")
        try:
            result = _load(Target(db, scan), stream, approved=approved)
            db.execute("ROLLBACK" if result.held else "COMMIT")
        except BaseException:
            # A COMMIT that failed has ended the transaction.
            with suppress(duckdb.Error):
                db.execute("ROLLBACK")
            raise
    except (duckdb.Error, ValueError, OSError) as error:
        raise LoadFailed(
            f"Scan {scan.scan_id} of {scan.header.stream} ({scan.header.connection}) could not be "
            f"loaded: {printable(error)}. Nothing of it is loaded; the scan file keeps every "
            "record."
        ) from error
    return result


def _load(target: Target, stream: Stream, *, approved: bool) -> LoadResult:
    """Read what is new in the scan, compare, ask the guards, write."""
    target.run(CREATE_ROWS)
    last_time, last_key, is_loaded = target.run(SELECT_LAST)[0]
    if is_loaded:
        return LoadResult(target.scan.scan_id)
    has_new_key = target.scan.completeness.traits.key != last_key
    current = current_digests(target)
    # Not in /tmp: the folder of scan files has room for large ones.
    with TemporaryFile(dir=target.scan.path.parent) as file:
        stage = _stage(target, stream, current, file, has_new_key=has_new_key)
        stage.schema.decide(partial(_observe_all, target, stage))
        delta = compare(target, stage)
        held = next(reasons_to_hold(delta, last_key, stream), None)
        if held and not approved:
            return LoadResult(target.scan.scan_id, held=held)
        _, time = target.scan.completeness.span()
        # A clock may have been set back, and a row version must begin before it ends.
        if last_time is not None:
            time = max(time, last_time + TICK)
        return _write(target, delta, time)


def _stage(
    target: Target, stream: Stream, current: Digests, file: IO[bytes], *, has_new_key: bool
) -> Stage:
    """Read what is new in the scan.

    A new field may be an object in some records, and a text or a number in others. Then its column
    is text, and the scan is read again, as its members already have columns. So it is if most of
    its values are lists, and the first one is an object. It is also read again if the names in an
    object turn out to be data: then the object is a map, with a table.
    """
    kinds = dict[FieldPath, Kind]()
    maps = list[FieldPath]()
    while True:
        file.seek(0)
        file.truncate()
        schema = read_schema(target, stream, kinds, maps)
        schema.new_maps = tuple(maps)
        stage = Stage(target.scan, schema, current, file, has_new_key)
        # Many values are created and none is in a cycle: the search for cycles costs a fifth.
        gc.disable()
        try:
            stage.read()
        finally:
            gc.enable()
        new_map = schema.next_map()
        if new_map is not None:
            # Then perhaps not all pages were read, so `misread` has nothing to say yet.
            maps.append(new_map)
            if schema.known:
                make_map(target.db, read_schema(target, stream, {}, [new_map]), new_map)
            continue
        misread = schema.misread()
        if not misread:
            return stage
        kinds |= misread


def _observe_all(target: Target, stage: Stage, place: Place, kind: Kind) -> bool:
    """Return whether all values together forbid a kind of column that takes each of them.

    Of a place that may have numbers, what earlier scans stored is noted first. Two texts that spell
    one number, such as 1.10 and 1.1, are no numbers. No column of times holds a day such as
    9999-12-31.
    """
    if kind is Kind.TIME:
        return place.seen.has_extreme_day or has_extreme_day(target.db, place)

    def texts() -> Iterator[pa.Array]:
        if not place.is_new:
            yield from stored_texts(target.db, place)
        yield from stage.texts(place)

    if not place.is_new:
        for stored in stored_texts(target.db, place):
            observe(place, stored)
    return have_two_spellings(place, texts)


def _write(target: Target, delta: Delta, time: datetime) -> LoadResult:
    """Write what a scan changes."""
    stage = delta.stage
    schema = stage.schema
    history = History(target, schema, time)
    history.prepare()
    changed = history.write(delta)
    has_new_rows = delta.new or delta.resent or delta.deleted
    is_written = has_new_rows or schema.new_types or schema.new_maps
    tables = list[str]()
    if is_written:
        tables = [table.table for table in history.tables]
    result = LoadResult(
        target.scan.scan_id,
        new=delta.new,
        changed=changed,
        deleted=delta.deleted,
        unchanged=int(stage.is_seen.sum()) + delta.resent - changed,
        quarantined=len(stage.quarantined),
        tables=tuple(tables),
        rewrites=bool(schema.new_maps) or not schema.known.keys().isdisjoint(schema.new_types),
        findings=list_findings(delta, changed),
    )
    target.write_quarantine(stage.quarantined)
    target.write_load(vars(result), time)
    target.write_requests(stage.requests)
    target.write_findings(result.findings)
    write_schema(target.db, schema)
    return result
