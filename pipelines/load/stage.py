"""Reads the rows of a scan that are not current already, and keeps them in an Arrow file."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import compress, repeat, starmap
from tempfile import SpooledTemporaryFile
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipelines.archive.scan_file import PageRows, SealedScan
from pipelines.core.completeness import Ranges
from pipelines.load.arrow import conform
from pipelines.load.decode import Decoder, Refused
from pipelines.load.records import read_key

GROUP_BYTES = 2_000_000  # of records that are decoded in one call
PART_ROWS = 196_608  # one INSERT; more would take memory beyond any limit
IN_MEMORY_BYTES = 64_000_000
DIGEST_BYTES = 8
NO_KEY = "Its key is missing, or neither text nor a number."
CONFLICT = "Another record of the scan has the same key and other content."
INDEX = pa.schema(
    [("_key", pa.string()), ("_digest", pa.uint64()), ("_page", pa.int32()), ("_row", pa.int32())]
)
Digests = npt.NDArray[np.uint64]


class Row(NamedTuple):
    """A record that is not current. `key` is what identifies it in a list without a key."""

    page: int
    row: int
    digest: int
    key: str | None
    raw: bytes


class Quarantined(NamedTuple):
    """A record that is not loaded. `key` is None where it cannot be read."""

    page: int
    row: int
    key: str | None
    reason: str
    raw: bytes


class Part(NamedTuple):
    """Staged rows, at most so many that one INSERT takes them. `index` has the columns of INDEX."""

    records: pa.StructArray
    index: Any


@dataclass
class Stage:
    """The rows of one scan, compared with the digests of the rows that are current.

    `current` is sorted; `is_seen` says which of it the scan has. `rows` counts what the scan has.
    """

    decoder: Decoder
    current: Digests
    folder: str | None = None
    is_seen: npt.NDArray[np.bool_] = field(init=False)
    quarantined: list[Quarantined] = field(default_factory=list)
    rows: int = 0

    def __post_init__(self) -> None:
        self.is_seen = np.zeros(len(self.current), np.bool_)
        self._equal: Counter[int] = Counter()
        self._group: list[Row] = []
        self._indexes: list[Any] = []
        self._starts: list[int] = []
        self._file = SpooledTemporaryFile(IN_MEMORY_BYTES, dir=self.folder)  # noqa: SIM115

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    @property
    def index(self) -> Any:
        """Key, digest, page and row of every staged row, as an Arrow table."""
        return pa.Table.from_batches(self._indexes, INDEX)

    @property
    def keyless(self) -> int:
        """The number of records in quarantine of which nobody can tell the key."""
        return sum(each.key is None for each in self.quarantined)

    def read(self, scan: SealedScan) -> None:
        """Read all pages. Raises ArchiveDamaged, LoadFailed.

        Of conflicting copies, the one that is current stays; the others go to quarantine.
        """
        name, size = self.decoder.key, 0
        for page in scan.pages():
            added = list(self._new_rows(page, page.used))
            self.rows += sum(end - first for first, end in page.used)
            self._group += added
            size += sum(len(each.raw) for each in added)
            for each in self._new_rows(page, page.conflicting):
                key = None if name is None else read_key(each.raw, name)
                self._quarantine(each, key, NO_KEY if key is None else CONFLICT)
            if size >= GROUP_BYTES:
                self._flush()
                size = 0
        self._flush()

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
        rows = zip(repeat(page.number), numbers, digests.tolist(), keys, raws)
        return starmap(Row, compress(rows, is_new.tolist()))

    def _identify(self, raws: Sequence[bytes]) -> tuple[Digests, Iterable[str | None]]:
        """Return digests and, without a key, what identifies the rows instead.

        The i-th of equal records has a digest and a key of its own.
        """
        digests = digests_of(raws)
        if self.decoder.key is not None:
            return digests, repeat(None)
        keys = []
        for at, digest in enumerate(digests.tolist()):
            self._equal[digest] += 1
            number = self._equal[digest]
            keys.append(f"{digest:016x}#{number}")
            if number > 1:
                digests[at] = digests_of([keys[-1].encode()])[0]
        return digests, keys

    def _flush(self) -> None:
        """Decode the group of records and append it to the file."""
        group, self._group = self._group, []
        refused: dict[int, Refused] = {}
        for decoded in self.decoder.decode([row.raw for row in group], refused) if group else ():
            rows = [group[place] for place in decoded.places]
            keys = decoded.keys
            keys = pa.array([row.key for row in rows], pa.string()) if keys is None else keys
            places = {name: [getattr(row, name[1:]) for row in rows] for name in INDEX.names[1:]}
            index = pa.RecordBatch.from_pydict({"_key": keys, **places}, INDEX)
            self._indexes.append(index)
            self._starts.append(self._file.tell())
            batch = index.append_column("record", decoded.records)
            with pa.ipc.new_stream(self._file, batch.schema) as writer:
                writer.write_batch(batch)
        for place, why in refused.items():
            self._quarantine(group[place], why.key, why.reason)

    def _quarantine(self, row: Row, key: str | None, reason: str) -> None:
        self.quarantined.append(Quarantined(row.page, row.row, key, reason, row.raw))

    def quarantine_conflicts(
        self, scan: SealedScan, keys: dict[tuple[int, int], str | None]
    ) -> None:
        """Put staged rows in quarantine, by page and row, whose key another row has."""
        for page in scan.pages() if keys else ():
            for place in sorted(place for place in keys if place[0] == page.number):
                raw = page.records[place[1]]
                self.quarantined.append(Quarantined(*place, keys[place], CONFLICT, raw))

    def parts(self, dropped: Collection[int]) -> Iterator[Part]:
        """Yield the staged rows but those at some positions, in the final type of the schema."""
        kept = np.ones(sum(map(len, self._indexes)), np.bool_)
        kept[list(dropped)] = False
        waiting: list[Any] = []
        end = 0
        for start in self._starts:
            self._file.seek(start)
            batch = pa.ipc.open_stream(self._file).read_next_batch()
            begin, end = end, end + batch.num_rows
            waiting.append(batch.filter(pa.array(kept[begin:end])) if dropped else batch)
            if sum(each.num_rows for each in waiting) >= PART_ROWS or start == self._starts[-1]:
                yield self._join(waiting)
                waiting = []

    def _join(self, batches: list[Any]) -> Part:
        """Return batches, whose types may be older than the schema, as one part."""
        records = [conform(batch.column("record"), self.decoder.type) for batch in batches]
        index = pa.concat_batches([batch.select(INDEX.names) for batch in batches])
        return Part(pa.concat_arrays(records), index)


def digests_of(raws: Sequence[bytes]) -> Digests:
    """Return the first 8 bytes of the SHA-256 of each raw record, as a number."""
    joined = b"".join([sha256(raw).digest()[:DIGEST_BYTES] for raw in raws])
    return np.frombuffer(joined, ">u8").astype(np.uint64)
