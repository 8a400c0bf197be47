"""Reads the rows of a scan that are not current already, and keeps them in an Arrow file."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
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
CONFLICT = "Another record of the scan has the same key and other content."
Digests = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.int32]


class Quarantined(NamedTuple):
    """A record that is not loaded. `key` is None where it cannot be read."""

    page: int
    row: int
    key: str | None
    reason: str
    raw: bytes


class Part(NamedTuple):
    """Staged rows, at most so many that one INSERT takes them."""

    records: pa.StructArray
    keys: pa.Array
    digests: pa.Array
    pages: pa.Array
    rows: pa.Array


@dataclass
class _Group:
    """Records that are decoded together, with their digests, pages and rows there."""

    raws: list[bytes] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    digests: list[Digests] = field(default_factory=list)
    pages: list[Rows] = field(default_factory=list)
    rows: list[Rows] = field(default_factory=list)
    size: int = 0

    def columns(self, places: Sequence[int]) -> list[Any]:
        """Return digests, pages and rows of some records as Arrow arrays."""
        at = np.asarray(places, np.int64)
        return [
            pa.array(np.concatenate(each)[at]) for each in (self.digests, self.pages, self.rows)
        ]


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
    staged_keys: list[pa.Array] = field(default_factory=list)
    staged_digests: list[pa.Array] = field(default_factory=list)
    staged_places: list[tuple[pa.Array, pa.Array]] = field(default_factory=list)
    dropped: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.is_seen = np.zeros(len(self.current), np.bool_)
        self._equal: Counter[int] = Counter()
        self._group = _Group()
        self._segments: list[int] = []
        self._writer: Any = None
        self._type: pa.DataType | None = None
        self._file = SpooledTemporaryFile(IN_MEMORY_BYTES, dir=self.folder)  # noqa: SIM115

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def read(self, scan: SealedScan) -> None:
        """Read all pages. Raises ArchiveDamaged, LoadFailed."""
        for page in scan.pages():
            self._read_used(page)
            self._read_conflicting(page)
        self._flush()
        if self._writer is not None:
            self._writer.close()

    def _read_used(self, page: PageRows) -> None:
        numbers = _numbers(page.used)
        raws = [page.records[number] for number in numbers]
        digests, keys = self._identify(raws)
        known = self._mark(digests)
        self.rows += len(raws)
        new = np.flatnonzero(~known)
        added = raws if len(new) == len(raws) else [raws[at] for at in new]
        group = self._group
        group.raws += added
        group.keys += [keys[at] for at in new] if keys else []
        group.digests.append(digests[new])
        group.pages.append(np.full(len(new), page.number, np.int32))
        group.rows.append(np.asarray(numbers, np.int32)[new])
        group.size += sum(map(len, added))
        if self._group.size >= GROUP_BYTES:
            self._flush()

    def _read_conflicting(self, page: PageRows) -> None:
        """Of conflicting copies, the one that is current stays; the others go to quarantine."""
        numbers = _numbers(page.conflicting)
        raws = [page.records[number] for number in numbers]
        known = self._mark(digests_of(raws))
        for at in np.flatnonzero(~known).tolist():
            name = self.decoder.key
            key = None if name is None else read_key(raws[at], name)
            self.quarantined.append(Quarantined(page.number, numbers[at], key, CONFLICT, raws[at]))

    @property
    def keyless(self) -> int:
        """The number of records in quarantine of which nobody can tell the key."""
        return sum(each.key is None for each in self.quarantined)

    def quarantine_conflicts(self, scan: SealedScan, positions: Sequence[int]) -> None:
        """Put staged rows in quarantine whose key another row has."""
        if not positions:
            return
        pages, rows = (
            np.concatenate([arrays[at].to_numpy() for arrays in self.staged_places])
            for at in (0, 1)
        )
        wanted = {(int(pages[at]), int(rows[at])) for at in positions}
        name = self.decoder.key or ""
        for page in scan.pages():
            for number, row in sorted(place for place in wanted if place[0] == page.number):
                raw = page.records[row]
                key = read_key(raw, name)
                self.quarantined.append(Quarantined(number, row, key, CONFLICT, raw))

    def _identify(self, raws: Sequence[bytes]) -> tuple[Digests, list[str]]:
        """Return digests and, without a key, what identifies the rows instead.

        The i-th of equal records has a digest and a key of its own.
        """
        digests = digests_of(raws)
        if self.decoder.key is not None:
            return digests, []
        keys = []
        for at, digest in enumerate(digests.tolist()):
            self._equal[digest] += 1
            number = self._equal[digest]
            keys.append(f"{digest:016x}#{number}")
            if number > 1:
                digests[at] = digests_of([f"{digest:016x}#{number}".encode()])[0]
        return digests, keys

    def _mark(self, digests: Digests) -> npt.NDArray[np.bool_]:
        """Return which digests are current, and remember that the scan has them."""
        if not len(self.current):
            return np.zeros(len(digests), np.bool_)
        places = np.minimum(np.searchsorted(self.current, digests), len(self.current) - 1)
        known: npt.NDArray[np.bool_] = self.current[places] == digests
        self.is_seen[places[known]] = True
        return known

    def _flush(self) -> None:
        group, self._group = self._group, _Group()
        refused: dict[int, Refused] = {}
        for decoded in self.decoder.decode(group.raws, refused) if group.raws else ():
            keys = decoded.keys
            if keys is None:
                keys = pa.array([group.keys[place] for place in decoded.places], pa.string())
            self._write(Part(decoded.records, keys, *group.columns(decoded.places)))
        if refused:
            self._quarantine(group, refused)

    def _quarantine(self, group: _Group, refused: dict[int, Refused]) -> None:
        _, pages, rows = (each.to_pylist() for each in group.columns(range(len(group.raws))))
        for place, why in refused.items():
            found = Quarantined(pages[place], rows[place], why.key, why.reason, group.raws[place])
            self.quarantined.append(found)

    def _write(self, part: Part) -> None:
        self.staged_keys.append(part.keys)
        self.staged_digests.append(part.digests)
        self.staged_places.append((part.pages, part.rows))
        batch = pa.record_batch(list(part), names=Part._fields)
        if self._type != part.records.type:
            if self._writer is not None:
                self._writer.close()
            self._segments.append(self._file.tell())
            self._type = part.records.type
            self._writer = pa.ipc.new_stream(self._file, batch.schema)
        self._writer.write_batch(batch)

    def parts(self) -> Iterator[Part]:
        """Yield the staged rows that were not dropped, in the final type of the schema."""
        waiting: list[Any] = []
        kept = np.ones(sum(map(len, self.staged_keys)), np.bool_)
        kept[list(self.dropped)] = False
        end = 0
        for batch in self._batches():
            begin, end = end, end + batch.num_rows
            waiting.append(batch.filter(pa.array(kept[begin:end])) if self.dropped else batch)
            if sum(each.num_rows for each in waiting) >= PART_ROWS:
                yield self._join(waiting)
                waiting = []
        if waiting:
            yield self._join(waiting)

    def _batches(self) -> Iterator[Any]:
        for position in self._segments:
            self._file.seek(position)
            yield from pa.ipc.open_stream(self._file)

    def _join(self, batches: list[Any]) -> Part:
        """Return batches, whose types may be older than the schema, as one part."""
        records = [conform(batch.column(0), self.decoder.type) for batch in batches]
        others = (
            [batch.column(place) for batch in batches] for place in range(1, len(Part._fields))
        )
        return Part(pa.concat_arrays(records), *map(pa.concat_arrays, others))


def digests_of(raws: Sequence[bytes]) -> Digests:
    """Return the first 8 bytes of the SHA-256 of each raw record, as a number."""
    joined = b"".join([sha256(raw).digest()[:DIGEST_BYTES] for raw in raws])
    return np.frombuffer(joined, ">u8").astype(np.uint64)


def _numbers(ranges: Ranges) -> list[int]:
    return [number for first, end in ranges for number in range(first, end)]
