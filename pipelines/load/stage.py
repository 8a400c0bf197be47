"""Reads the rows of a scan that are not current already, and keeps them in an Arrow file.

Here: which records of a scan are read, kept, or put in quarantine. Not here: how a record becomes
columns (`decode.py`), and what the kept rows change (`delta.py`).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import compress, repeat, starmap
from typing import IO, Any

import numpy as np
import pyarrow as pa

from pipelines.archive.lines import Exchange
from pipelines.archive.records import Digests, join_digests
from pipelines.archive.scan_file import SealedScan
from pipelines.core import stop
from pipelines.core.key import key_fields
from pipelines.core.proof import Ranges
from pipelines.load.decode import Batch, TableRows
from pipelines.load.paths import FieldPath
from pipelines.load.place import Place
from pipelines.load.records import (
    DECODE_ERRORS,
    UnusableRecord,
    count_members,
    decode,
    read_key,
    read_record,
    record_key,
)
from pipelines.load.schema import Schema
from pipelines.load.store import store_rows
from pipelines.load.target import RawRecord, request_row
from pipelines.load.values import texts_sent

# Arrow's other pools keep what is freed: 100 MB more for a million records.
pa.set_memory_pool(pa.system_memory_pool())

# Bytes of records that are decoded in one call.
GROUP_BYTES = 2_000_000
# Groups that are inserted by one statement. Larger ones exceed memory_limit: one INSERT of a
# million rows from Arrow took 650 MB with a limit of 128 MB.
GROUPS_STORED = 5
NO_KEY = "Its key `{}` is missing, or neither text nor a number."
CONFLICT = "Another record of the scan has the same key and other content."
# `_position` is the number of a record in the stage; only staged tables have it.
INDEX = pa.schema(
    {
        "_position": pa.int64(),
        "_key": pa.string(),
        "_digest": pa.uint64(),
        "_page": pa.int32(),
        "_row": pa.int32(),
    }
)


@dataclass
class Stage:
    """The rows of one scan, compared with the digests of the rows that are current.

    `current` is sorted; `is_seen` says which of it the scan has. The rows are in `file`.
    `without_column` counts values by path; `lost` and `rounded` count those that their column does
    not take, or not exactly. `requests` are rows of meta.requests. With `has_new_key`, no row is
    current: what is loaded has other keys.
    """

    scan: SealedScan
    schema: Schema
    current: Digests
    file: IO[bytes]
    has_new_key: bool
    quarantined: list[RawRecord] = field(default_factory=list)
    without_column: Counter[FieldPath] = field(default_factory=Counter)
    lost: Counter[FieldPath] = field(default_factory=Counter)
    rounded: Counter[FieldPath] = field(default_factory=Counter)
    requests: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.is_seen = np.zeros(len(self.current), np.bool_)
        self._key_path = self.scan.completeness.traits.key
        self._fields = key_fields(self._key_path)
        # How many records without a key there are of each digest.
        self._equal: Counter[int] = Counter()
        self._index: list[pa.RecordBatch] = []
        # Where rows of each table begin in the file.
        self._starts: dict[FieldPath, list[int]] = {}

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
        return sum(record.key is None for record in self.quarantined)

    def read(self) -> None:
        """Read all pages, or as many as show that an object has names that are data.

        Raises ArchiveDamaged, ValueError.
        Of conflicting copies, the one that is current stays: `_note_seen` leaves it out, and
        CREATE_DELTA keeps it. The others go to quarantine.
        """
        group = list[RawRecord]()
        size = 0
        for page in self.scan.exchanges():
            stop.raise_if_requested()
            self.requests.append(request_row(self.scan, page))
            for record in self._note_seen(page, self.scan.completeness.used):
                group.append(record)
                size += len(record.raw)
            for record in self._note_seen(page, self.scan.completeness.conflicting):
                self._refuse(record, CONFLICT)
            if size >= GROUP_BYTES:
                self._decode(group)
                group = []
                size = 0
                if self.schema.next_map():
                    return
        self._decode(group)

    def _note_seen(self, page: Exchange, rows: dict[int, Ranges]) -> Iterable[RawRecord]:
        """Remember which current rows a page has; return the records that are not current."""
        numbers = list[int]()
        for first, end in rows.get(page.page, ()):
            numbers += range(first, end)
        if not numbers:
            return ()
        digests, keys = self._identify(page.digests()[numbers])
        is_new = np.ones(len(numbers), np.bool_)
        if len(self.current) and not self.has_new_key:
            last = len(self.current) - 1
            positions = np.minimum(np.searchsorted(self.current, digests), last)
            is_new = self.current[positions] != digests
            self.is_seen[positions[~is_new]] = True
        # Of an unchanged list, no page gets further: its records are not looked at.
        if not is_new.any():
            return ()
        raws = map(page.records().__getitem__, numbers)
        columns = zip(keys, digests.tolist(), repeat(page.page), numbers, raws)
        return starmap(RawRecord, compress(columns, is_new.tolist()))

    def _identify(self, digests: Digests) -> tuple[Digests, Iterable[str | None]]:
        """Return digests and, without a key, what identifies the rows instead.

        The i-th of equal records has a digest and a key of its own.
        """
        if self._key_path is not None:
            return digests, repeat(None)
        keys = []
        for i, digest in enumerate(digests.tolist()):
            self._equal[digest] += 1
            number = self._equal[digest]
            key = f"{digest:016x}#{number}"
            keys.append(key)
            # Else it would be taken for the first one, which may be current.
            if number > 1:
                digests[i] = int.from_bytes(join_digests([key.encode()]))
        return digests, keys

    def _decode(self, group: Sequence[RawRecord]) -> None:
        """Decode records and append them to the file; what is not usable goes to quarantine.

        All are decoded in one call of C for each step. If one of them is not usable, or has a name
        twice, what the call did is undone, and each record is examined.
        """
        raws = [record.raw for record in group]
        before = self.schema.snapshot()
        quarantined_before = len(self.quarantined)
        batch = Batch(self.schema)
        is_usable = False
        with suppress(*DECODE_ERRORS):
            staged = self._add(batch, group, [*map(decode, raws)])
            is_usable = batch.has_all(raws)
        if not is_usable:
            self.schema.restore(before)
            del self.quarantined[quarantined_before:]
            batch = Batch(self.schema)
            staged = self._add(batch, group, [*map(read_record, raws)])
        self.without_column.update(batch.without_column)
        index = _index_of(staged, first_position=self.rows)
        self._index.append(index)
        for rows in batch.tables:
            self._append(rows, index)

    def _append(self, table_rows: TableRows, index: pa.RecordBatch) -> None:
        """Append rows of a table to the file."""
        rows = table_rows.to_arrow(index)
        if not len(rows):
            return
        self._starts.setdefault(table_rows.place.path, []).append(self.file.tell())
        with pa.ipc.new_stream(self.file, rows.schema) as writer:
            writer.write_batch(rows)

    def _add(
        self, batch: Batch, group: Sequence[RawRecord], contents: Sequence[Any]
    ) -> list[RawRecord]:
        """Add the contents of records to a batch; return the records that are usable."""
        usable = []
        usable_contents = []
        for record, content in zip(group, contents, strict=True):
            if isinstance(content, UnusableRecord):
                self._refuse(record, str(content))
                continue
            key = record.key or record_key(content, self._fields)
            if key is None:
                batch.members += count_members([content])
                self._refuse(record, NO_KEY.format(self._key_path))
                continue
            record.key = key
            usable.append(record)
            usable_contents.append(content)
        batch.add(usable_contents)
        return usable

    def _refuse(self, record: RawRecord, reason: str) -> None:
        """Put a record in quarantine."""
        record.key = None
        if self._key_path is not None:
            record.key = read_key(record.raw, self._key_path)
        record.reason = reason
        # Whoever read the list sets records without a key aside with the conflicting ones.
        if record.key is None and reason == CONFLICT:
            record.reason = NO_KEY.format(self._key_path)
        self.quarantined.append(record)

    def quarantine_conflicts(self, conflicts: Collection[tuple[int, int]]) -> None:
        """Put staged rows in quarantine, by page and row, whose key another row has."""
        if not conflicts:
            return
        for page in self.scan.pages():
            for row, raw in enumerate(page.records()):
                if (page.page, row) in conflicts:
                    self._refuse(RawRecord(None, 0, page.page, row, raw), CONFLICT)

    def tables(self) -> Iterator[tuple[Place, pa.Table]]:
        """Yield the staged rows by table, as they are stored. Raises ValueError."""
        for path, starts in self._starts.items():
            table = self.schema.places[path]
            for first in range(0, len(starts), GROUPS_STORED):
                groups = starts[first : first + GROUPS_STORED]
                stored = [self._stored(table, start) for start in groups]
                yield table, pa.concat_tables(stored, promote_options="default")

    def _stored(self, table: Place, start: int) -> pa.Table:
        """Return the rows of a table that are at a position in the file."""
        rows = self._read_back(start)
        places = self.schema.columns_of(table.table)
        columns = store_rows(places, rows, self.lost, self.rounded)
        if not table.path:
            columns["_scan_id"] = pa.repeat(self.scan.scan_id, len(rows))
        return pa.table(columns)

    def _read_back(self, start: int) -> pa.RecordBatch:
        """Return the staged rows at a position in the file."""
        self.file.seek(start)
        return pa.ipc.open_stream(self.file).read_next_batch()

    def texts(self, place: Place) -> Iterator[pa.Array]:
        """Yield the staged texts of a place, without what was no text."""
        for table in self.schema.tables:
            if table.table != place.table:
                continue
            for start in self._starts.get(table.path, ()):
                rows = self._read_back(start)
                if place.name in rows.schema.names:
                    yield from texts_sent(rows.column(place.name))


def _index_of(records: Sequence[RawRecord], first_position: int) -> pa.RecordBatch:
    """Return the index of records that are staged together."""
    columns = {
        "_position": range(first_position, first_position + len(records)),
        "_key": [record.key for record in records],
        "_digest": [record.digest for record in records],
        "_page": [record.page for record in records],
        "_row": [record.row for record in records],
    }
    return pa.RecordBatch.from_pydict(columns, INDEX)
