"""Erases every record that contains an identifier from scan files, versions and exports."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import duckdb
from sqlalchemy import delete, func, select, update

from pipelines.archive.scan_file import SealedScan
from pipelines.core.errors import ArchiveDamaged, ConfigurationError, PartnerSyncError
from pipelines.core.files import remove_folder
from pipelines.metadata.decisions import add_decision, unfinished_erasures
from pipelines.metadata.locks import hold_lock
from pipelines.metadata.scans import UNSEALED, ScanStatus
from pipelines.metadata.tables import Decision, FindingRow, Notification, Run, Scan, VersionRow
from pipelines.metadata.versions import VersionStatus
from pipelines.publish import catalog, versions
from pipelines.publish.build import not_built
from pipelines.publish.identifier import Identifier, RowVersions
from pipelines.publish.reconciliation import read_inputs
from pipelines.publish.stores import OnNote, Stores
from pipelines.reconcile.engine import reconcile
from pipelines.warehouse.duckdb_file import Version

ERASED: Final = "[erased]"
Row = dict[str, Any]
Ask = Callable[[list[Row]], bool]


@dataclass
class Found:
    """Files that contain an identifier; how many records, None: a file that cannot be read.

    `unsealed` are scans that never ended; of `versions`, the rows by stream.
    """

    sealed: list[tuple[SealedScan, int]] = field(default_factory=list)
    unsealed: list[tuple[Scan, int | None]] = field(default_factory=list)
    versions: dict[Version, RowVersions] = field(default_factory=dict)
    quarantined: Counter[Version] = field(default_factory=Counter)

    def rows(self) -> list[Row]:
        """Return a row for each file."""
        return [
            *({"file": str(scan.path), "records": count} for scan, count in self.sealed),
            *({"file": scan.file, "records": count} for scan, count in self.unsealed),
            *(
                {"file": str(version.path), "records": self._count(version)}
                for version in self.versions
                if self._count(version)
            ),
        ]

    def _count(self, version: Version) -> int:
        return self.quarantined[version] + sum(map(len, self.versions[version].values()))

    def holds(self, version: Version | None) -> bool:
        """Return whether a version contains the identifier."""
        return version in self.versions and self._count(version) > 0


def find(stores: Stores, identifier: Identifier, on_note: OnNote) -> Found:
    """Search every scan file and version. Raises ArchiveDamaged, StorageFailed."""
    found, opened = Found(), dict[Version, duckdb.DuckDBPyConnection]()
    with stores.metadata.transaction() as session:
        scans = list(session.scalars(select(Scan).order_by(Scan.started_at)))
    with ExitStack() as stack:
        for version in stores.warehouse.versions():
            on_note(f"Searching version {version.number}.")
            db = stack.enter_context(closing(stores.warehouse.open(version.number)))
            opened[version] = db
            found.versions[version] = identifier.rows_with_value(db)
            found.quarantined[version] = len(identifier.quarantined(db))
        for scan in scans:
            if scan.status in UNSEALED:
                count = _count_unsealed(stores, scan, identifier)
                found.unsealed += [] if count == 0 else [(scan, count)]
            elif scan.status != ScanStatus.PRUNED:
                on_note(f"Searching the scan of {scan.connection}/{scan.stream} of {scan.day}.")
                _search(found, stores.archive.open_sealed(scan), identifier, opened)
    return found


def _search(
    found: Found,
    scan: SealedScan,
    identifier: Identifier,
    opened: Mapping[Version, duckdb.DuckDBPyConnection],
) -> None:
    """Search a scan, and in the versions for the rows that were made of what is found."""
    positions = [
        (scan.scan_id, exchange.page, row)
        for exchange in scan.exchanges()
        for row in exchange.rows_where(identifier.is_in_record)
    ]
    if positions:
        found.sealed.append((scan, len(positions)))
        for version, db in opened.items():
            stream = scan.header.stream
            found.versions[version][stream] |= identifier.rows_at(db, stream, positions)


def _count_unsealed(stores: Stores, scan: Scan, identifier: Identifier) -> int | None:
    """Return how many records of a scan that never ended contain it; None: it cannot be read."""
    try:
        exchanges = stores.archive.resume(scan).exchanges() if stores.archive.has_open(scan) else ()
        return sum(len(each.rows_where(identifier.is_in_record)) for each in exchanges)
    except ArchiveDamaged:
        return None


def erase(
    stores: Stores, identifier: Identifier, decision: Decision, ask: Ask, on_note: OnNote
) -> list[Row] | None:
    """Erase every record that contains an identifier; return a row for each file that had one.

    `ask` gets these rows before anything is touched; if it returns False, nothing is (None).
    Versions are erased before scan files: after a kill, the same command finds what is left, and a
    check fails until then. Raises ConfigurationError if nothing contains the identifier.
    """
    with _nobody_else(stores, on_note):
        found = find(stores, identifier, on_note)
        rows = found.rows()
        with stores.metadata.transaction() as session:
            begun = {each.subject for each in unfinished_erasures(session)}
        if not rows and decision.subject not in begun:
            raise ConfigurationError("No file contains the identifier. Nothing was changed.")
        if not ask(rows):
            return None
        with stores.metadata.transaction() as session:
            add_decision(session, decision)
        _erase_found(stores, identifier, found, on_note)
        if left := find(stores, identifier, on_note).rows():
            raise PartnerSyncError(
                f"{len(left)} files still contain the identifier: {left[0]['file']} and others.",
                "Run `partner-sync erase` again. If it fails again, report this defect.",
            )
        values = {name: getattr(decision, name) for name in ("decided_at", "person", "reason")}
        with stores.metadata.transaction() as session:
            add_decision(session, Decision(kind="erased", subject=decision.subject, **values))
    return rows


@contextmanager
def _nobody_else(stores: Stores, on_note: OnNote) -> Iterator[None]:
    """Keep everybody from reading lists, changing versions and exporting."""
    home = stores.settings.places
    names = {
        folder.name for folder in home.archive.iterdir()
    } | stores.settings.connections().keys()
    with ExitStack() as held:
        for name in (*(f"sync.{name}" for name in sorted(names)), "export"):
            held.enter_context(hold_lock(home.locks, name, on_wait=on_note))
        held.enter_context(versions.change_versions(stores, on_note))
        yield


def _erase_found(stores: Stores, identifier: Identifier, found: Found, on_note: OnNote) -> None:
    """Erase texts first: a new version shows them too."""
    _erase_texts(stores, identifier, found)
    _erase_versions(stores, identifier, found, on_note)
    for scan, _count in found.sealed:
        on_note(f"Erasing records of {scan.path.name}.")
        scan.erase(identifier.is_in_record)
    stores.archive.delete(scan for scan, _count in found.unsealed)
    for folder in (stores.settings.places.exports, stores.settings.places.reports):
        remove_folder(folder)  # both can be made again


def _erase_texts(stores: Stores, identifier: Identifier, found: Found) -> None:
    """Erase the identifier from messages; findings that still hold are found again."""
    with stores.metadata.transaction() as session:
        for scan, _count in found.unsealed:
            abandoned = session.get_one(Scan, scan.scan_id)
            abandoned.status, abandoned.reason = ScanStatus.ABANDONED, "Its records were erased."
        for column in (FindingRow.subject, FindingRow.message):
            contains = column.contains(identifier.text, autoescape=True)
            session.execute(delete(FindingRow).where(contains))
        for text in (Run.message, Scan.reason, Notification.text):
            contains = text.contains(identifier.text, autoescape=True)
            erased = func.replace(text, identifier.text, ERASED)
            session.execute(update(text.class_).where(contains).values({text: erased}))


def _erase_versions(stores: Stores, identifier: Identifier, found: Found, on_note: OnNote) -> None:
    """Publish a version without the records, if the published one has them; delete the others."""
    newest = stores.warehouse.published()
    if newest and found.holds(newest):
        versions.require_unchanged(stores.metadata, newest)
        number = versions.start_version(stores, newest, "records were erased")
        on_note(f"Version {number}: erasing records.")
        try:
            with stores.warehouse.begin(newest, number) as db:
                identifier.delete_from_version(db, found.versions[newest])
                reconcile(db, read_inputs(stores))
                identifier.delete_remembered(db)
                catalog.write_state(db, stores.metadata)
                newest = stores.warehouse.commit(db, number, rewrite=True)
        except duckdb.Error as error:
            raise not_built(number, error) from error
        versions.publish_version(stores, newest)
    checkpoint = versions.checkpoint(stores)
    if newest and found.holds(checkpoint):
        with stores.metadata.transaction() as session:
            session.get_one(VersionRow, newest.number).status = VersionStatus.CHECKPOINT
    for version in filter(found.holds, found.versions):
        stores.warehouse.drop(version.number)
