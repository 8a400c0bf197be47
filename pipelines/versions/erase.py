"""Erases every record that contains an identifier from versions, scan files and exports."""

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from pipelines.core import stop
from pipelines.core.errors import ConfigurationError, PartnerSyncError
from pipelines.core.files import remove
from pipelines.core.text import counted
from pipelines.load.paths import FieldPath
from pipelines.metadata.decisions import add_decision, unfinished_erasures
from pipelines.metadata.locks import hold_lock
from pipelines.metadata.scans import UNSEALED, ScanStatus
from pipelines.metadata.tables import (
    BreakRow,
    CorrectionRow,
    Decision,
    FindingRow,
    Notification,
    Run,
    Scan,
)
from pipelines.versions import catalog
from pipelines.versions.change import change_versions, drop_version, link_version
from pipelines.versions.enough_memory import with_enough_memory
from pipelines.versions.identifier import Identifier, Position, map_paths
from pipelines.versions.publish import drop_older, write_version
from pipelines.versions.search import SearchedFile, SearchResult, find
from pipelines.versions.stores import Stores
from pipelines.warehouse.duckdb_file import Row
from pipelines.warehouse.version_files import Version

ERASED: Final = "[erased]"
SHORTEST_VALUE: Final = 4  # characters
FORCE: Final = "Check the value. If all these records must go, run the command again with --force."
logger = logging.getLogger(__name__)


class NothingFound(ConfigurationError):
    """Nothing that is kept contains the value."""


@dataclass(frozen=True)
class ErasureRequest:
    """What a person wants to be erased, and why.

    `force`: also a short value, and one that is in a large share of a list.
    """

    text: str
    reason: str
    force: bool = False

    def require_plausible(self) -> None:
        """Raise ConfigurationError for a value or reason that can only be a mistake."""
        if not self.text or self.text in self.reason:
            raise ConfigurationError(
                "The value is empty, or the reason contains it. The reason is never deleted. "
                "Nothing was changed.",
                "Run `partner-sync erase` with another value or reason.",
            )
        if not self.force and len(self.text.strip()) < SHORTEST_VALUE:
            raise ConfigurationError(
                f"The value has fewer than {SHORTEST_VALUE} characters, so records may contain it "
                "by chance. Nothing was changed.",
                FORCE,
            )

    def require_little(self, found: SearchResult) -> None:
        """Raise ConfigurationError where so much would go that it may be a mistake."""
        reason = found.too_much()
        if reason and not self.force:
            raise ConfigurationError(f"{reason} Nothing was changed.", FORCE)


@dataclass(frozen=True)
class ErasureSteps:
    """What the caller does in an erasure.

    `show` gets what was found, `confirm` raises to stop: both before anything is touched.
    `replace_books` leaves no books but those of the version without the records.
    """

    show: Callable[[SearchResult], object]
    confirm: Callable[[], object]
    replace_books: Callable[[], object]


def erase(
    stores: Stores, request: ErasureRequest, steps: ErasureSteps, beside: Sequence[Row] = ()
) -> list[Row]:
    """Erase every record that contains a value; return a row for each file that had one.

    `beside` are the rows of what has it besides records. Versions and books are erased before scan
    files: after a kill, the same command does what is left, and a check fails until then. Raises
    ConfigurationError if nothing contains the value or too much does, ArchiveDamaged,
    StorageFailed.
    """
    request.require_plausible()
    identifier = Identifier(request.text, _map_paths(stores))
    decision = stores.decision("erase", identifier.digest, request.reason)
    with _nobody_else(stores):
        published = stores.warehouse.published()
        if published:
            # Raises for a lost file: one from a backup would bring the records back.
            published.file()
        found = replace(find(stores, identifier), beside=list(beside))
        with stores.metadata.transaction() as session:
            begun = {erasure.subject for erasure in unfinished_erasures(session)}
        steps.show(found)
        # What is left of an erasure that was interrupted may be a larger share than all there was.
        if decision.subject not in begun:
            if not found.files and not beside:
                raise NothingFound("No file contains the value. Nothing was changed.")
            request.require_little(found)
        steps.confirm()
        decision.details = {"records": found.records, "files": len(found.files)}
        _erase(stores, identifier, found.files, decision, steps)
        left = find(stores, identifier).files
        if left:
            raise PartnerSyncError(
                f"{len(left)} files still contain the value: {left[0].file} and others.",
                "Run `partner-sync erase` again. If it fails again, report this defect.",
            )
        with stores.metadata.transaction() as session:
            add_decision(session, replace(decision, kind="erased"))
    return [*(file.row() for file in found.files), *beside]


def _map_paths(stores: Stores) -> frozenset[FieldPath]:
    """Return the paths of objects whose names are data, of all versions."""
    found = set[FieldPath]()
    for version in stores.warehouse.versions():
        with stores.warehouse.open(version.number) as db:
            found |= map_paths(db)
    return frozenset(found)


def _erase(
    stores: Stores,
    identifier: Identifier,
    files: list[SearchedFile],
    decision: Decision,
    steps: ErasureSteps,
) -> None:
    scans = [file.source for file in files if isinstance(file.source, Scan)]
    with stores.metadata.transaction() as session:
        add_decision(session, replace(decision))
        # First, because the new version shows these tables.
        _erase_texts(session, identifier, scans)
        _abandon_elsewhere(stores, session)
    _erase_versions(stores, identifier, files, steps)
    _erase_scans(stores, identifier, scans)
    # Both can be made again. Exports are on this machine; each other one deletes its own.
    remove(stores.settings.home.exports)
    stores.warehouse.store.delete_folder(stores.settings.home.reports)
    stores.warehouse.store.note_erasure()


@contextmanager
def _nobody_else(stores: Stores) -> Iterator[None]:
    """Keep everybody from reading lists, changing versions and exporting."""
    connections = set(stores.settings.connections())
    connections.update(stores.archive.connections())
    with ExitStack() as locks:
        # In one order: two erasures at once cannot wait for each other for ever.
        for connection in sorted(connections):
            locks.enter_context(hold_lock(stores.metadata.locks, f"sync.{connection}"))
        locks.enter_context(hold_lock(stores.metadata.locks, "export"))
        locks.enter_context(change_versions(stores))
        yield


def _erase_texts(session: Session, identifier: Identifier, scans: list[Scan]) -> None:
    """Erase the identifier from messages; findings that still hold are found again."""
    for scan in scans:
        if scan.status in UNSEALED:
            abandoned = session.merge(scan)
            abandoned.status = ScanStatus.ABANDONED
            abandoned.reason = "Its records were erased."
    for column in (FindingRow.subject, FindingRow.message):
        contains = column.contains(identifier.text, autoescape=True)
        session.execute(delete(FindingRow).where(contains))
    for message in (Run.message, Scan.reason, Notification.text):
        contains = message.contains(identifier.text, autoescape=True)
        erased = func.replace(message, identifier.text, ERASED)
        session.execute(update(message.class_).where(contains).values({message: erased}))
    _erase_memory(session, identifier)
    # In Python, because JSON in the database may spell the identifier otherwise.
    for run in session.scalars(select(Run)):
        lists = {}
        for stream, outcome in run.lists.items():
            lists[stream] = {
                name: value.replace(identifier.text, ERASED) for name, value in outcome.items()
            }
        run.lists = lists


def _abandon_elsewhere(stores: Stores, session: Session) -> None:
    """Abandon the open scans that are on other machines: they may have such records.

    Each machine deletes its files of abandoned scans.
    """
    for scan in session.scalars(select(Scan).filter_by(status=ScanStatus.OPEN)).all():
        if not stores.archive.is_open_here(scan):
            scan.status = ScanStatus.ABANDONED
            scan.reason = "Records were erased while it was on another machine, or lost."


def _erase_memory(session: Session, identifier: Identifier) -> None:
    """Erase it from what finance remembers.

    What was posted to a month is signed off with it, so it stays without a name.
    """
    for remembered in session.scalars(select(BreakRow)):
        if is_in_break(remembered, identifier):
            session.delete(remembered)
    for posted in session.scalars(select(CorrectionRow)):
        if posted.id is not None and identifier.is_equal(_record_of(posted.id, posted.side)):
            posted.id = ERASED
        if posted.partner is not None and identifier.is_equal(posted.partner):
            posted.partner = ERASED


def is_in_break(remembered: BreakRow, identifier: Identifier) -> bool:
    """Return whether a break names the identifier: as a partner, in its subject or its cause."""
    # A subject is one or several names. A cause is a sentence, of which any word may be a name.
    subject = remembered.subject or ""
    cause = remembered.cause or ""
    if identifier.text in cause:
        return True
    words = re.split(r"[|;\s]+", f"{subject}|{cause}")
    texts = {remembered.partner or "", subject, *subject.split("|"), *words}
    return any(identifier.is_equal(text) for text in texts if text)


def _record_of(name: str, side: str) -> str:
    """Return the record of a posted correction; a line of a bill is named after its bill."""
    if side != "billing":
        return name
    bill, _separator, _line = name.rpartition("#")
    return bill or name


def _erase_versions(
    stores: Stores, identifier: Identifier, files: list[SearchedFile], steps: ErasureSteps
) -> None:
    """Publish a version without the records, if the published one has them; delete the others.

    Books are replaced in between: until then, the published ones are of a version that is there.
    """
    base = stores.warehouse.published()
    containing = []
    positions = frozenset[Position]()  # of the records in the published version
    for file in files:
        if isinstance(file.source, Version):
            containing.append(file.source)
        if file.source == base:
            positions = frozenset(file.positions or ())

    def write(stores: Stores) -> Version:
        with write_version(stores, base, "records were erased") as (number, db):
            logger.info("Version %s: erasing records.", number)
            identifier.delete_from(db, positions)
            identifier.erase_texts(db)
            catalog.write_state(db, stores.metadata)
            # As a whole, because DuckDB leaves deleted rows in free blocks.
            return stores.warehouse.commit(db, number, rewrite=True)

    erased = with_enough_memory(stores, write) if positions else None
    if erased is not None:
        stop.raise_if_requested()
        link_version(stores, erased)
    steps.replace_books()
    for version in containing:
        drop_version(stores, version.number)
    if erased is not None:
        drop_older(stores, erased)


def _erase_scans(stores: Stores, identifier: Identifier, scans: list[Scan]) -> None:
    """Rewrite sealed scan files without the records; delete those of scans that never ended."""
    logger.info("Erasing records in %s.", counted(len(scans), "scan file"))
    for scan in scans:
        stop.raise_if_requested()
        if scan.status in UNSEALED:
            stores.archive.delete([scan])
        else:
            stores.archive.erase(scan, identifier.is_in_record)
