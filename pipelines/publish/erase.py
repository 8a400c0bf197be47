"""Erases every record that contains an identifier from versions, scan files and exports."""

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from pipelines.core.errors import ArchiveDamaged, ConfigurationError, PartnerSyncError
from pipelines.core.files import remove_folder
from pipelines.metadata.decisions import add_decision, unfinished_erasures
from pipelines.metadata.locks import hold_lock
from pipelines.metadata.scans import UNSEALED, ScanStatus
from pipelines.metadata.tables import FindingRow, Notification, Run, Scan
from pipelines.publish.build import finish
from pipelines.publish.identifier import Identifier, Position
from pipelines.publish.reconciliation import read_inputs
from pipelines.publish.versions import (
    Stores,
    change_versions,
    publish_version,
    write_version,
)
from pipelines.warehouse.duckdb_file import Row, Version

ERASED: Final = "[erased]"
Ask = Callable[[list[Row]], object]
logger = logging.getLogger(__name__)


class Found(NamedTuple):
    """A scan or version that contains an identifier, with the positions of these records.

    None: the file of a scan that never ended cannot be read.
    """

    source: Scan | Version
    file: Path
    positions: set[Position] | None

    def row(self) -> Row:
        """Return what is shown of the file."""
        return {"file": str(self.file), "records": self.positions and len(self.positions)}


def find(stores: Stores, identifier: Identifier) -> list[Found]:
    """Search every scan file and version. Raises ArchiveDamaged, StorageFailed."""
    found, known = list[Found](), set[Position]()
    with stores.metadata.transaction() as session:
        scans = session.scalars(select(Scan).order_by(Scan.started_at)).all()
    for scan in scans:
        logger.info("Searching the scan of %s/%s of %s.", scan.connection, scan.stream, scan.day)
        positions = _search(stores, scan, identifier)
        known |= positions or set()
        found.append(Found(scan, stores.archive.folder / scan.file, positions))
    for version in stores.warehouse.versions():
        logger.info("Searching version %s.", version.number)
        with stores.warehouse.open(version.number) as db:
            found.append(Found(version, version.path, identifier.positions_in(db, known)))
    return [each for each in found if each.positions != set()]


def _search(stores: Stores, scan: Scan, identifier: Identifier) -> set[Position] | None:
    """Return where a scan contains it; None: it never ended, and cannot be read."""
    is_open = scan.status in UNSEALED
    if scan.status == ScanStatus.PRUNED or (is_open and not stores.archive.has_open(scan)):
        return set()
    try:
        file = stores.archive.resume(scan) if is_open else stores.archive.open_sealed(scan)
        return {
            (scan.scan_id, exchange.page, row)
            for exchange in file.exchanges()
            for row in exchange.rows_where(identifier.is_in_record)
        }
    except ArchiveDamaged:
        if is_open:
            return None
        raise


def erase(stores: Stores, text: str, reason: str, ask: Ask) -> list[Row]:
    """Erase every record that contains an identifier; return a row for each file that had one.

    `ask` gets these rows before anything is touched, and raises to stop. Versions are erased before
    scan files: after a kill, the same command finds what is left, and a check fails until then.
    Raises ConfigurationError if nothing contains the identifier, ArchiveDamaged, StorageFailed.
    """
    if not text or text in reason:
        raise ConfigurationError(
            "The value is empty, or the reason contains it. The reason is never deleted. "
            "Nothing was changed.",
            "Run `partner-sync erase` with another value or reason.",
        )
    identifier = Identifier(text)
    decision = stores.decision("erase", identifier.digest, reason)
    with _nobody_else(stores):
        found = find(stores, identifier)
        rows = [each.row() for each in found]
        with stores.metadata.transaction() as session:
            begun = {each.subject for each in unfinished_erasures(session)}
        if not rows and decision.subject not in begun:
            raise ConfigurationError("No file contains the value. Nothing was changed.")
        ask(rows)
        scans = [each.source for each in found if isinstance(each.source, Scan)]
        with stores.metadata.transaction() as session:
            add_decision(session, decision)
            _erase_texts(session, identifier, scans)  # before a version shows them
        _erase_versions(stores, identifier, found)
        _erase_scans(stores, identifier, scans)
        for folder in (stores.settings.home.exports, stores.settings.home.reports):
            remove_folder(folder)  # both can be made again
        if left := find(stores, identifier):
            raise PartnerSyncError(
                f"{len(left)} files still contain the value: {left[0].file} and others.",
                "Run `partner-sync erase` again. If it fails again, report this defect.",
            )
        with stores.metadata.transaction() as session:
            add_decision(session, replace(decision, kind="erased"))
    return rows


@contextmanager
def _nobody_else(stores: Stores) -> Iterator[None]:
    """Keep everybody from reading lists, changing versions and exporting."""
    home = stores.settings.home
    names = {
        folder.name for folder in home.archive.iterdir()
    } | stores.settings.connections().keys()
    with ExitStack() as held:
        for name in (*(f"sync.{name}" for name in sorted(names)), "export"):
            held.enter_context(hold_lock(home.locks, name))
        held.enter_context(change_versions(stores))
        yield


def _erase_texts(session: Session, identifier: Identifier, scans: list[Scan]) -> None:
    """Erase the identifier from messages; findings that still hold are found again."""
    for scan in scans:
        if scan.status in UNSEALED:
            abandoned = session.merge(scan)
            abandoned.status, abandoned.reason = ScanStatus.ABANDONED, "Its records were erased."
    for column in (FindingRow.subject, FindingRow.message):
        contains = column.contains(identifier.text, autoescape=True)
        session.execute(delete(FindingRow).where(contains))
    for text in (Run.message, Scan.reason, Notification.text):
        contains = text.contains(identifier.text, autoescape=True)
        erased = func.replace(text, identifier.text, ERASED)
        session.execute(update(text.class_).where(contains).values({text: erased}))
    for run in session.scalars(select(Run)):  # JSON may spell the identifier otherwise
        run.lists = {
            stream: {name: each.replace(identifier.text, ERASED) for name, each in about.items()}
            for stream, about in run.lists.items()
        }


def _erase_versions(stores: Stores, identifier: Identifier, found: list[Found]) -> None:
    """Publish a version without the records, if the published one has them; delete the others."""
    base = stores.warehouse.published()
    if positions := next((each.positions for each in found if each.source == base), None):
        with write_version(stores, base, "records were erased") as (number, db):
            logger.info("Version %s: erasing records.", number)
            identifier.delete_from(db, positions)
            identifier.erase_texts(db)
            finish(stores, db, read_inputs(stores))
            version = stores.warehouse.commit(db, number, rewrite=True)
        publish_version(stores, version)
    for each in found:
        if isinstance(each.source, Version):
            stores.warehouse.drop(each.source.number)


def _erase_scans(stores: Stores, identifier: Identifier, scans: list[Scan]) -> None:
    """Rewrite sealed scan files without the records; delete those of scans that never ended."""
    for scan in scans:
        logger.info("Erasing records of %s.", scan.file)
        if scan.status in UNSEALED:
            stores.archive.delete([scan])
        else:
            stores.archive.open_sealed(scan).erase(identifier.is_in_record)
