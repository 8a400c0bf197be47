"""Reads the rows of a scan that are not current already, and keeps them in an Arrow file."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import compress, repeat, starmap
from operator import attrgetter
from typing import IO, Any

import numpy as np
import pyarrow as pa

from pipelines.archive.lines import Exchange
from pipelines.archive.records import Digests, join_digests
from pipelines.archive.scan_file import SealedScan
from pipelines.core import stop
from pipelines.core.completeness import Ranges
from pipelines.core.key import key_fields
from pipelines.load.decode import Batch, add_to_extras
from pipelines.load.names import Path
from pipelines.load.records import (
    ODD,
    UnusableRecord,
    count_members,
    decode,
    read_key,
    read_record,
    record_key,
)
from pipelines.load.schema import Place, Schema
from pipelines.load.store import to_stored
from pipelines.load.target import Row, request_row
from pipelines.load.values import Sent, parts

pa.set_memory_pool(pa.system_memory_pool())  # others keep what is freed: 100 MB more for a million

GROUP_BYTES = 2_000_000  # of records that are decoded in one call
GROUPS_STORED = 5  # that are inserted by one statement
NO_KEY = "Its key `{}` is missing, or neither text nor a number."
CONFLICT = "Another record of the scan has the same key and other content."
NUMBERS = {"_digest": pa.uint64(), "_page": pa.int32(), "_row": pa.int32()}
# `_position` is the number of a record in the stage; only staged tables have it.
INDEX = pa.schema({"_position": pa.int64(), "_key": pa.string(), **NUMBERS})


@dataclass
class Stage:
    """The rows of one scan, compared with the digests of the rows that are current.

    `current` is sorted; `is_seen` says which of it the scan has. The rows are in `file`. `left`
    counts by path the values that have no column; `lost` and `rounded` those that their column does
    not take, or not exactly. `requests` are rows of meta.requests. With
    `has_new_key`, no row is current: what is loaded has other keys.
    """

    scan: SealedScan
    schema: Schema
    current: Digests
    file: IO[bytes]
    has_new_key: bool
    quarantined: list[Row] = field(default_factory=list)
    left: Counter[Path] = field(default_factory=Counter)
    lost: Counter[Path] = field(default_factory=Counter)
    rounded: Counter[Path] = field(default_factory=Counter)
    requests: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.is_seen = np.zeros(len(self.current), np.bool_)
        self._key = self.scan.completeness.traits.key
        self._fields = key_fields(self._key)
        self._equal: Counter[int] = Counter()
        self._index: list[pa.RecordBatch] = []
        self._tables: dict[Path, list[int]] = {}  # their positions in the file

    @property
    def rows(self) -> int:
        """The number of staged records."""
        return sum(map(len, self._index))

    def __arrow_c_stream__(self, schema: object = None) -> object:
        """Give DuckDB the index: key, digest, page, row and position of every staged record."""
        return pa.RecordBatchReader.from_batches(INDEX, self._index).__arrow_c_stream__(schema)

    def drop_index(self) -> None:
        """Free the index, and what is free already: DuckDB has an allocator of its own.

        Together 75 MB for a million records. DuckDB would keep a table until the COMMIT.
        """
        self._index = []
        pa.default_memory_pool().release_unused()

    @property
    def keyless(self) -> int:
        """The number of records in quarantine of which nobody can tell the key."""
        return sum(each.key is None for each in self.quarantined)

    def read(self) -> None:
        """Read all pages, or as many as show that an object has names that are data.

        Raises ArchiveDamaged, ValueError.
        Of conflicting copies, the one that is current stays; the others go to quarantine.
        """
        group, size = list[Row](), 0
        for page in self.scan.exchanges():
            stop.raise_if_requested()
            self.requests.append(request_row(self.scan, page))
            for each in self._new_rows(page, self.scan.completeness.used):
                group.append(each)
                size += len(each.raw)
            for each in self._new_rows(page, self.scan.completeness.conflicting):
                self._refuse(each, CONFLICT)
            if size >= GROUP_BYTES:
                self._decode(group)
                group, size = [], 0
                if self.schema.crowded():
                    return
        self._decode(group)

    def _new_rows(self, page: Exchange, rows: dict[int, Ranges]) -> Iterable[Row]:
        """Return the records that are not current, and remember which current rows are seen."""
        numbers = [n for first, end in rows.get(page.page, ()) for n in range(first, end)]
        if not numbers:
            return ()
        digests, keys = self._identify(page.digests()[numbers])
        is_new = np.ones(len(numbers), np.bool_)
        if len(self.current) and not self.has_new_key:
            places = np.minimum(np.searchsorted(self.current, digests), len(self.current) - 1)
            is_new = self.current[places] != digests
            self.is_seen[places[~is_new]] = True
        if not is_new.any():
            return ()
        raws = map(page.records().__getitem__, numbers)
        found = zip(keys, digests.tolist(), repeat(page.page), numbers, raws)
        return starmap(Row, compress(found, is_new.tolist()))

    def _identify(self, digests: Digests) -> tuple[Digests, Iterable[str | None]]:
        """Return digests and, without a key, what identifies the rows instead.

        The i-th of equal records has a digest and a key of its own.
        """
        if self._key is not None:
            return digests, repeat(None)
        keys = []
        for at, digest in enumerate(digests.tolist()):
            self._equal[digest] += 1
            number = self._equal[digest]
            keys.append(f"{digest:016x}#{number}")
            if number > 1:
                digests[at] = int.from_bytes(join_digests([keys[-1].encode()]))
        return digests, keys

    def _decode(self, group: Sequence[Row]) -> None:
        """Decode records and append them to the file; what is not usable goes to quarantine."""
        raws, schema, refused = [row.raw for row in group], self.schema, len(self.quarantined)
        places = {path: place.copy() for path, place in schema.places.items()}
        overflows, shapes, names = schema.overflows, schema.shapes.copy(), schema.names.copy()
        is_odd, batch = True, Batch(schema)
        with suppress(*ODD):
            rows = self._add(batch, group, [*map(decode, raws)])
            is_odd = not batch.has_all(raws)
        if is_odd:  # begin again, and examine each record
            schema.places, schema.overflows, schema.shapes = places, overflows, shapes
            schema.names = names
            batch = Batch(schema)
            del self.quarantined[refused:]
            rows = self._add(batch, group, [*map(read_record, raws)])
        self.left.update(batch.left)
        columns: dict[str, Any] = {"_position": range(self.rows, self.rows + len(rows))}
        columns |= {name: [*map(attrgetter(name[1:]), rows)] for name in INDEX.names[1:]}
        self._index.append(pa.RecordBatch.from_pydict(columns, INDEX))
        for table in batch.tables:
            if found := table.to_arrow(self._index[-1]):
                self._tables.setdefault(table.place.path, []).append(self.file.tell())
                with pa.ipc.new_stream(self.file, found.schema) as writer:
                    writer.write_batch(found)

    def _add(self, batch: Batch, group: Sequence[Row], records: Sequence[Any]) -> list[Row]:
        """Add records to a batch; return the rows of those that are usable."""
        rows, usable = [], []
        for row, record in zip(group, records, strict=True):
            if isinstance(record, UnusableRecord):
                self._refuse(row, str(record))
            elif (key := row.key or record_key(record, self._fields)) is None:
                batch.members += count_members([record])
                self._refuse(row, NO_KEY.format(self._key))
            else:
                row.key = key
                rows.append(row)
                usable.append(record)
        batch.add(usable)
        return rows

    def _refuse(self, row: Row, reason: str) -> None:
        row.key = None if self._key is None else read_key(row.raw, self._key)
        # Whoever read the list sets records without a key aside with the conflicting ones.
        lacks_key = row.key is None and reason == CONFLICT
        row.reason = NO_KEY.format(self._key) if lacks_key else reason
        self.quarantined.append(row)

    def quarantine_conflicts(self, conflicts: Collection[tuple[int, int]]) -> None:
        """Put staged rows in quarantine, by page and row, whose key another row has."""
        for page in self.scan.pages() if conflicts else ():
            for row, raw in enumerate(page.records()):
                if (page.page, row) in conflicts:
                    self._refuse(Row(None, 0, page.page, row, raw), CONFLICT)

    def tables(self) -> Iterator[tuple[Place, pa.Table]]:
        """Yield the staged rows by table, as they are stored. Raises ValueError."""
        for path, starts in self._tables.items():
            table = self.schema.places[path]
            for first in range(0, len(starts), GROUPS_STORED):
                parts = [self._stored(table, at) for at in starts[first : first + GROUPS_STORED]]
                yield table, pa.concat_tables(parts, promote_options="default")

    def _stored(self, table: Place, start: int) -> pa.Table:
        """Return the rows of a table that are at a position in the file."""
        places = self.schema.places.values()
        known = {each.name: each for each in places if each.table == table.table}
        rows = self._read(start)
        found = store_rows(known, rows, self.lost, self.rounded)
        if not table.path:
            found["_scan_id"] = pa.repeat(self.scan.scan_id, len(rows))
        return pa.table(found)

    def _read(self, start: int) -> pa.RecordBatch:
        """Return the staged rows at a position in the file."""
        self.file.seek(start)
        return pa.ipc.open_stream(self.file).read_next_batch()

    def texts(self, place: Place) -> Iterator[pa.Array]:
        """Yield the staged texts of a place, without what was no text."""
        tables = [each for each in self.schema.places.values() if each.is_table]
        table = next(each for each in tables if each.table == place.table)
        for start in self._tables.get(table.path, ()):
            rows = self._read(start)
            if place.name in rows.schema.names:
                array = rows.column(place.name)
                items = array.flatten() if pa.types.is_list(array.type) else array
                yield from (part for sent, part in parts(items) if sent is Sent.TEXT)


def store_rows(
    places: Mapping[str, Place], rows: pa.RecordBatch, lost: Counter[Path], rounded: Counter[Path]
) -> dict[str, pa.Array]:
    """Return staged rows of a table as they are stored; `places` are those of its columns.

    Counts by path the values that their column does not take, or not exactly.
    """
    found: dict[str, pa.Array] = {}
    left: dict[int, dict[Path, Any]] = {}
    for name, array in zip(rows.schema.names, rows.columns, strict=True):
        place = places.get(name)
        if place is None:
            found[name] = array
            continue
        stored = to_stored(place, array)
        found |= stored.columns
        lost[place.path] += len(stored.lost)
        rounded[place.path] += len(stored.rounded)
        for row, value in stored.left():
            left.setdefault(row, {})[place.of_row] = value
    if left:
        extras = found.get("_extra", pa.nulls(len(rows), pa.string()))
        found["_extra"] = add_to_extras(extras, left)
    return found
