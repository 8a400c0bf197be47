"""Erases every record that contains an identifier from scan files, versions and exports."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import duckdb
from sqlalchemy import delete, func, select, update

from pipelines.archive.records import parse_page
from pipelines.archive.scan_file import Exchange, SealedScan
from pipelines.core.errors import ArchiveDamaged, ConfigurationError, PartnerSyncError
from pipelines.core.files import remove_folder
from pipelines.metadata.decisions import add_decision, unfinished_erasures
from pipelines.metadata.locks import hold_lock
from pipelines.metadata.scans import UNSEALED, ScanStatus
from pipelines.metadata.tables import Decision, FindingRow, Notification, Run, Scan, VersionRow
from pipelines.metadata.versions import VersionStatus
from pipelines.publish import catalog, versions
from pipelines.publish.build import not_built
from pipelines.publish.identifier import Identifier
from pipelines.publish.stores import OnNote, Stores
from pipelines.warehouse.duckdb_file import Version

ERASED: Final = "[erased]"
Row = dict[str, Any]
Rows = dict[int, list[int]]  # rows of a scan by page
Ask = Callable[[list[Row]], bool]


@dataclass
class Found:
    """Where an identifier is: rows of scans, rows of versions, exports."""

    sealed: dict[str, tuple[SealedScan, Rows]] = field(default_factory=dict)  # by scan
    unsealed: dict[str, tuple[Scan, int | None]] = field(
        default_factory=dict
    )  # scans that never ended
    versions: dict[Version, int] = field(default_factory=dict)

    def positions(self) -> list[tuple[str, int, int]]:
        """Return scan, page and row of each record."""
        return [
            (scan_id, page, row)
            for scan_id, (_scan, rows) in self.sealed.items()
            for page, numbers in rows.items()
            for row in numbers
        ]

    def rows(self) -> list[Row]:
        """Return a row for each file: how many records contain it; None: it cannot be read."""
        return [
            *(_row(scan.path, sum(map(len, rows.values()))) for scan, rows in self.sealed.values()),
            *(_row(scan.file, count) for scan, count in self.unsealed.values()),
            *(_row(version.path, count) for version, count in self.versions.items()),
        ]


def _row(file: Path | str, records: int | None) -> Row:
    return {"file": str(file), "records": records}


def find(stores: Stores, identifier: Identifier, on_note: OnNote) -> Found:
    """Search every scan file and version. Raises ArchiveDamaged, StorageFailed."""
    found = Found()
    with stores.metadata.transaction() as session:
        scans = list(session.scalars(select(Scan).order_by(Scan.started_at)))
    for scan in scans:
        if scan.status in UNSEALED:
            count = _count_unsealed(stores, scan, identifier)
            found.unsealed |= {} if count == 0 else {scan.scan_id: (scan, count)}
        elif scan.status != ScanStatus.PRUNED:
            on_note(f"Searching the scan of {scan.connection}/{scan.stream} of {scan.day}.")
            sealed = stores.archive.open_sealed(scan)
            if rows := dict(_find_rows(sealed.exchanges(), identifier)):
                found.sealed[scan.scan_id] = sealed, rows
    for version in stores.warehouse.versions():
        on_note(f"Searching version {version.number}.")
        with closing(stores.warehouse.open(version.number)) as db:
            rows_by_stream = identifier.rows_of_version(db, found.positions())
            count = sum(map(len, rows_by_stream.values())) + len(identifier.quarantined(db))
        if count:
            found.versions[version] = count
    return found


def _find_rows(
    exchanges: Iterable[Exchange], identifier: Identifier
) -> Iterator[tuple[int, list[int]]]:
    for exchange in exchanges:
        records = parse_page(exchange.body).records if exchange.body else ()
        if rows := [row for row, raw in enumerate(records) if identifier.is_in_record(raw)]:
            yield exchange.page, rows


def _count_unsealed(stores: Stores, scan: Scan, identifier: Identifier) -> int | None:
    """Return how many records of a scan that never ended contain it; None: it cannot be read."""
    try:
        exchanges = stores.archive.resume(scan).exchanges() if stores.archive.has_open(scan) else ()
        return sum(len(rows) for _page, rows in _find_rows(exchanges, identifier))
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
    for scan, rows in found.sealed.values():
        on_note(f"Erasing records of {scan.path.name}.")
        scan.erase(rows)
    stores.archive.delete(scan for scan, _count in found.unsealed.values())
    remove_folder(stores.settings.places.exports)


def _erase_texts(stores: Stores, identifier: Identifier, found: Found) -> None:
    """Erase the identifier from messages; findings that still hold are found again."""
    with stores.metadata.transaction() as session:
        for row in session.scalars(select(Scan).where(Scan.scan_id.in_(found.unsealed))):
            row.status, row.reason = ScanStatus.ABANDONED, "Its records were erased."
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
    if newest in found.versions:
        versions.require_unchanged(stores.metadata, newest)
        number = versions.start_version(stores, newest, "records were erased")
        on_note(f"Version {number}: erasing records.")
        try:
            with stores.warehouse.begin(newest, number) as db:
                rows = identifier.rows_of_version(db, found.positions())
                identifier.delete_from_version(db, rows)
                catalog.write_state(db, stores.metadata)
                newest = stores.warehouse.commit(db, number, rewrite=True)
        except duckdb.Error as error:
            raise not_built(number, error) from error
        versions.publish_version(stores, newest)
    checkpoint = versions.checkpoint(stores)
    if newest and checkpoint in found.versions:
        with stores.metadata.transaction() as session:
            session.get_one(VersionRow, newest.number).status = VersionStatus.CHECKPOINT
    for version in found.versions:
        stores.warehouse.drop(version.number)
