"""Searches scan files and versions for a value: files, shares of lists, other spellings.

Here: reading. Not here: what is erased (`erase`), what counts as the value (`identifier`).
"""

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from sqlalchemy import select

from pipelines.archive.lines import Exchange
from pipelines.archive.records import ERASED_RECORD
from pipelines.core import stop
from pipelines.core.errors import ArchiveDamaged
from pipelines.core.text import counted
from pipelines.metadata.scans import UNSEALED, ScanStatus
from pipelines.metadata.tables import Scan
from pipelines.versions.identifier import Identifier, Position, count_rows, raw_rows
from pipelines.versions.spellings import Spelling
from pipelines.versions.stores import Stores
from pipelines.warehouse.duckdb_file import Row
from pipelines.warehouse.version_files import Version

NOTED_SECONDS: Final = 30.0  # between two messages about the progress
# One short value deleted 19 % of a list without a question.
MOST_PERCENT: Final = 1  # of a list, or of all lists, that is erased without --force
MOST_EXAMPLES: Final = 3  # of another spelling in a list
ALL_LISTS: Final = "all lists"
logger = logging.getLogger(__name__)


class Share(NamedTuple):
    """How many records of a list contain the value, in one file."""

    records: int = 0
    of: int = 0

    @property
    def percent(self) -> float:
        """The share in percent, to be shown."""
        return 100 * self.records / max(self.of, 1)

    @property
    def is_large(self) -> bool:
        """Whether it is more than is erased without a second thought."""
        return 100 * self.records > MOST_PERCENT * self.of


@dataclass(frozen=True)
class SearchedFile:
    """A scan or version that was searched, with the positions of records that contain the value.

    None: the file of a scan that never ended cannot be read. `shares` are by list.
    """

    source: Scan | Version
    file: Path
    positions: set[Position] | None
    shares: dict[str, Share] = field(default_factory=dict)

    def row(self) -> Row:
        """Return what is shown of the file."""
        records = None if self.positions is None else len(self.positions)
        return {"file": str(self.file), "records": records}


@dataclass(frozen=True)
class SearchResult:
    """What a search found: files that contain the value, shares by list, other spellings.

    `beside` are the rows of what contains it besides records.
    """

    files: list[SearchedFile]
    shares: dict[str, Share]
    hints: list[Row]
    beside: list[Row] = field(default_factory=list)

    @property
    def records(self) -> int:
        """How many records of the lists contain it, in the file that has most of each."""
        return sum(share.records for name, share in self.shares.items() if name != ALL_LISTS)

    def lists(self) -> list[Row]:
        """Return a row for each list that has such records, and one for all lists."""
        rows = list[Row]()
        for name, share in self.shares.items():
            percent = f"{share.percent:.2f} %"
            rows.append({"list": name, "records": share.records, "of": share.of, "share": percent})
        return rows

    def too_much(self) -> str:
        """Return why nobody should erase that much without saying so; empty if it is little."""
        for name, share in self.shares.items():
            if share.is_large:
                return (
                    f"The value is in {share.records:,} of {counted(share.of, 'record')} of {name} "
                    f"({share.percent:.2f} %), which is more than {MOST_PERCENT} %."
                )
        return ""


class _Hints:
    """Other spellings by list, with examples."""

    def __init__(self) -> None:
        # Texts are the keys: a set would not keep the order in which they were met.
        self._examples: dict[tuple[str, Spelling], dict[str, None]] = defaultdict(dict)
        self._positions: dict[tuple[str, Spelling], set[Position]] = defaultdict(set)

    def add(self, name: str, position: Position, hint: tuple[Spelling, str] | None) -> None:
        """Note that a record of a list has another spelling; None: it has none."""
        if hint is None:
            return
        spelling, text = hint
        self._positions[name, spelling].add(position)
        examples = self._examples[name, spelling]
        if len(examples) < MOST_EXAMPLES:
            examples[text] = None

    def rows(self) -> list[Row]:
        """Return a row for each list and spelling."""
        rows = list[Row]()
        for name, spelling in sorted(self._examples):
            positions = self._positions[name, spelling]
            examples = self._examples[name, spelling]
            rows.append(
                {
                    "differs_in": str(spelling),
                    "list": name,
                    "records": len(positions),
                    "examples": list(examples),
                }
            )
        return rows


def find(stores: Stores, identifier: Identifier) -> SearchResult:
    """Search every scan file and version. Raises ArchiveDamaged, StorageFailed."""
    with stores.metadata.transaction() as session:
        scans = session.scalars(select(Scan).order_by(Scan.started_at)).all()
    search = _Search(stores, identifier, scans)
    # Scans first: what they show need not be looked for in versions again.
    sources: list[Scan | Version] = [*scans, *stores.warehouse.versions()]
    files = []
    noted_at = time.monotonic()
    for number, source in enumerate(sources):
        stop.raise_if_requested()
        if time.monotonic() - noted_at > NOTED_SECONDS:
            noted_at = time.monotonic()
            logger.info("Searched %s of %s files.", number, len(sources))
        if isinstance(source, Scan):
            files.append(search.scan(source))
        else:
            files.append(search.version(source))
    containing = [file for file in files if file.positions != set()]
    return SearchResult(containing, _largest(files), search.hints.rows())


class _Search:
    """One search. `known` are positions that scans showed; `lists` are names by scan."""

    def __init__(self, stores: Stores, identifier: Identifier, scans: Sequence[Scan]) -> None:
        self.stores = stores
        self.identifier = identifier
        self.lists = {scan.scan_id: f"{scan.connection}/{scan.stream}" for scan in scans}
        self.known = set[Position]()
        self.hints = _Hints()

    def scan(self, scan: Scan) -> SearchedFile:
        """Search the file of a scan, if there is one. One that never ended may be unreadable."""
        archive = self.stores.archive
        path = archive.folder / scan.file
        is_open = scan.status in UNSEALED
        is_gone = scan.status == ScanStatus.PRUNED or (is_open and not archive.has_open(scan))
        if is_gone:
            return SearchedFile(scan, path, set())
        try:
            file = archive.resume(scan) if is_open else archive.open_sealed(scan)
            searched = self._exchanges(scan, path, file.exchanges())
        except ArchiveDamaged:
            if not is_open:
                raise
            return SearchedFile(scan, path, None)
        self.known |= searched.positions or set()
        return searched

    def _exchanges(self, scan: Scan, path: Path, exchanges: Iterable[Exchange]) -> SearchedFile:
        name = self.lists[scan.scan_id]
        positions = set[Position]()
        records = 0
        for exchange in exchanges:
            for row, raw in enumerate(exchange.records()):
                if raw != ERASED_RECORD:
                    records += 1
                position = (scan.scan_id, exchange.page, row)
                if self.identifier.is_in_record(raw):
                    positions.add(position)
                else:
                    self.hints.add(name, position, self.identifier.other_spelling(raw))
        return SearchedFile(scan, path, positions, {name: Share(len(positions), records)})

    def version(self, version: Version) -> SearchedFile:
        """Search a version. Where a scan file is gone, only the version has its records."""
        positions = set[Position]()
        with self.stores.warehouse.open(version.number) as db:
            for position, raw in raw_rows(db):
                if position in self.known or self.identifier.is_in_record(raw):
                    positions.add(position)
                else:
                    hint = self.identifier.other_spelling(raw)
                    self.hints.add(self._list_of(position), position, hint)
            rows = count_rows(db)
        records = Counter(map(self._list_of, positions))
        shares = {}
        for name in rows.keys() | records.keys():
            shares[name] = Share(records[name], rows.get(name, records[name]))
        return SearchedFile(version, version.path, positions, shares)

    def _list_of(self, position: Position) -> str:
        scan_id, _page, _row = position
        return self.lists.get(scan_id, "other lists")


def _largest(files: Iterable[SearchedFile]) -> dict[str, Share]:
    """Return the largest share of each list that one file shows, and that of all lists."""
    # The largest of one file counts, because a scan file holds the whole list.
    largest = dict[str, Share]()
    records = 0
    records_of_all = 0
    for file in files:
        for name, share in file.shares.items():
            records += share.records
            records_of_all += share.of
            known = largest.get(name)
            if share.records and (known is None or share.percent > known.percent):
                largest[name] = share
    if largest:
        largest[ALL_LISTS] = Share(records, records_of_all)
    return largest
