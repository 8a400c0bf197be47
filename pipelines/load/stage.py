"""Reads the rows of a scan that are not current already, and keeps them in an Arrow file."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress, repeat, starmap
from tempfile import TemporaryFile
from typing import Any, Self

import numpy as np
import pyarrow as pa

from pipelines.archive.records import Digests, digests_of
from pipelines.archive.scan_file import PageRows, SealedScan
from pipelines.core.completeness import Ranges
from pipelines.load.decode import POSITION, Batch
from pipelines.load.records import UnusableRecord, key_text, read_key, read_records
from pipelines.load.schema import Path, Schema
from pipelines.load.target import Row
from pipelines.load.values import to_stored

pa.set_memory_pool(pa.system_memory_pool())  # others keep what is freed: 100 MB more for a million

GROUP_BYTES = 2_000_000  # of records that are decoded in one call
NO_KEY = "Its key `{}` is missing, or neither text nor a number."
CONFLICT = "Another record of the scan has the same key and other content."
INDEX = pa.schema(
    [("_key", pa.string()), ("_digest", pa.uint64()), ("_page", pa.int32()), ("_row", pa.int32())]
)


@dataclass
class Stage:
    """The rows of one scan, compared with the digests of the rows that are current.

    `current` is sorted; `is_seen` says which of it the scan has. `rows` counts what the scan has.
    `left` counts by path the values that have no column.
    """

    scan: SealedScan
    schema: Schema
    current: Digests
    quarantined: list[Row] = field(default_factory=list)
    left: Counter[Path] = field(default_factory=Counter)
    rows: int = 0

    def __post_init__(self) -> None:
        self.is_seen = np.zeros(len(self.current), np.bool_)
        self._key = self.scan.completeness.memory.key
        self._equal: Counter[int] = Counter()
        self._batches: list[tuple[Any, list[tuple[str, int]]]] = []  # index, places of tables
        folder = str(self.scan.path.parent)  # has room for large files
        self._file = TemporaryFile(dir=folder)  # noqa: SIM115

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    @property
    def index(self) -> Any:
        """Key, digest, page, row and position of every staged row, as an Arrow table."""
        index = pa.Table.from_batches([each for each, _ in self._batches], INDEX)
        return index.append_column(POSITION, pa.array(np.arange(index.num_rows)))

    @property
    def keyless(self) -> int:
        """The number of records in quarantine of which nobody can tell the key."""
        return sum(each.key is None for each in self.quarantined)

    def read(self) -> None:
        """Read all pages. Raises ArchiveDamaged, LoadFailed.

        Of conflicting copies, the one that is current stays; the others go to quarantine.
        """
        group: list[Row] = []
        for page in self.scan.pages():
            group += self._new_rows(page, page.used)
            self.rows += sum(end - first for first, end in page.used)
            for each in self._new_rows(page, page.conflicting):
                self._refuse(each, CONFLICT)
            if sum(len(each.raw) for each in group) >= GROUP_BYTES:
                self._decode(group)
                group = []
        self._decode(group)

    def _new_rows(self, page: PageRows, ranges: Ranges) -> Iterable[Row]:
        """Return the records that are not current, and remember which current rows are seen."""
        numbers = [number for first, end in ranges for number in range(first, end)]
        raws = [page.records[number] for number in numbers]
        digests, keys = self._identify(raws)
        is_new = np.ones(len(raws), np.bool_)
        if len(self.current):
            places = np.minimum(np.searchsorted(self.current, digests), len(self.current) - 1)
            is_new = self.current[places] != digests
            self.is_seen[places[~is_new]] = True
        rows = zip(keys, digests.tolist(), repeat(page.number), numbers, raws)
        return starmap(Row, compress(rows, is_new.tolist()))

    def _identify(self, raws: Sequence[bytes]) -> tuple[Digests, Iterable[str | None]]:
        """Return digests and, without a key, what identifies the rows instead.

        The i-th of equal records has a digest and a key of its own.
        """
        digests = digests_of(raws)
        if self._key is not None:
            return digests, repeat(None)
        keys = []
        for at, digest in enumerate(digests.tolist()):
            self._equal[digest] += 1
            number = self._equal[digest]
            keys.append(f"{digest:016x}#{number}")
            if number > 1:
                digests[at] = digests_of([keys[-1].encode()])[0]
        return digests, keys

    def _decode(self, group: Sequence[Row]) -> None:
        """Decode records and append them to the file; what is not usable goes to quarantine."""
        batch, rows, decoded = Batch(self.schema), [], []
        for row, record in zip(group, read_records([row.raw for row in group]), strict=True):
            if isinstance(record, UnusableRecord):
                self._refuse(row, str(record))
            elif (key := row.key or key_text(record.get(self._key or ""))) is None:
                self._refuse(row, NO_KEY.format(self._key))
            else:
                row.key = key
                rows.append(row)
                decoded.append(record)
        batch.add(decoded)
        self.left += batch.left
        staged = []
        for table in batch.tables:
            if found := table.to_arrow():
                staged.append((table.place.table, self._file.tell()))
                with pa.ipc.new_stream(self._file, found.schema) as writer:
                    writer.write_batch(found)
        columns = {name: [getattr(row, name[1:]) for row in rows] for name in INDEX.names}
        self._batches.append((pa.RecordBatch.from_pydict(columns, INDEX), staged))

    def _refuse(self, row: Row, reason: str) -> None:
        row.key = None if self._key is None else read_key(row.raw, self._key)
        row.reason = reason
        self.quarantined.append(row)

    def quarantine_conflicts(self, conflicts: Iterable[dict[str, int]]) -> None:
        """Put staged rows in quarantine, by page and row, whose key another row has."""
        places = {(each["page"], each["row"]) for each in conflicts}
        for page in self.scan.pages() if places else ():
            for row, raw in enumerate(page.records):
                if (page.number, row) in places:
                    self._refuse(Row(None, 0, page.number, row, raw), CONFLICT)

    def tables(self, dropped: Collection[int]) -> Iterator[tuple[str, Any]]:
        """Yield the staged rows but those at some positions, by table, as they are stored."""
        places = {(each.table, each.name): each for each in self.schema.places.values()}
        kept = np.ones(self.index.num_rows, np.bool_)
        kept[list(dropped)] = False
        for index, staged in self._batches:
            is_kept, kept = kept[: len(index)], kept[len(index) :]
            for name, offset in staged:
                self._file.seek(offset)
                rows = pa.ipc.open_stream(self._file).read_next_batch()
                if dropped:
                    rows = rows.filter(pa.array(is_kept[rows[POSITION].to_numpy()]))
                record = index.take(rows[POSITION])
                found = {"_parent_key": record["_key"]}
                if name == self.schema.stream:
                    found = dict(zip(INDEX.names, record.columns, strict=True))
                    found["_scan_id"] = pa.repeat(self.scan.scan_id, len(record))
                for column in rows.schema.names[1:]:
                    place, array = places.get((name, column)), rows[column]
                    found |= {column: array} if place is None else to_stored(place, array)
                yield name, pa.table(found)
