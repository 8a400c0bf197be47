"""Erasing a partner: out of the archive, and so out of everything that is made of it.

The archive first: whatever is killed afterwards, the next erasure of the same goes on from there.
Here: the order of it, and in words what was done. Not here: how each is done (warehouse, state).
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import filelock

from pipelines.destinations.base import PART
from pipelines.errors import ConfigurationError, PartnerSyncError
from pipelines.run.alone import alone
from pipelines.run.landing import publish_folded
from pipelines.run.replay import Settle, again
from pipelines.run.session import Session
from pipelines.state import bases, decisions, redactions
from pipelines.state import erasure as ledger
from pipelines.state.decisions import Decision
from pipelines.state.journal import ManifestRow
from pipelines.warehouse import base, redaction, store, traces
from pipelines.warehouse.awaiting import Awaited
from pipelines.warehouse.editions import editions
from pipelines.warehouse.excision import Excision
from pipelines.warehouse.redaction import Act, Sought

__all__ = ["Act", "Erased", "Sought", "erase"]
SHORTEST = 3  # characters of an identifier: less is said by everything


@dataclass(frozen=True)
class Erased:
    """What an erasure did; `left` are the files that say the identifier all the same."""

    records: int
    pages: int
    versions: tuple[str, ...]
    exports: tuple[str, ...]
    reports: tuple[str, ...]
    quotes: tuple[str, ...]
    left: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        """Say what is gone, and what nobody here can erase."""
        done = f"{self.records:,} records were erased from {self.pages:,} archived pages"
        lines = [f"{done}, and from every table, version and quarantine made of them"]
        if self.versions:
            lines.append(f"published files deleted: {', '.join(self.versions)}")
        if self.exports:
            lines.append(f"exports deleted: {', '.join(self.exports)}")
        if self.reports:
            lines.append(f"reports deleted: {', '.join(self.reports)}; report writes one anew")
        if self.quotes:
            lines.append(f"the ledger quoted it in {', '.join(self.quotes)}: replaced")
        lines += [f"still said by {file}: {_advice(file)}" for file in self.left]
        others = "copies that analysts made, files they still have open, backups"
        service = "what the service has of it: the next sync reads again what is there then"
        return [*lines, f"not erased: {others}, and {service}"]


def _advice(file: str) -> str:
    """Say what is to be done about a file that says the identifier still."""
    if file.startswith("archive/closes/"):
        return "the frozen copy of a closed month, which never changes; keep or delete it yourself"
    return "look at it yourself"


def erase(session: Session, sought: Sought, act: Act, told: Callable[[int, int], None]) -> Erased:
    """Take every record that says an identifier out of the home; return what was done.

    Nobody reads a list, folds or publishes meanwhile. Raises ConfigurationError for an identifier
    that cannot be meant, LandingFailed where a page cannot be read or the tables cannot be made
    again; what is published then stays.
    """
    _refuse(sought, act)
    with alone(session):
        return _erased(session, sought, act, told)


def _erased(session: Session, sought: Sought, act: Act, told: Callable[[int, int], None]) -> Erased:
    archive = session.archive
    found = list(redaction.found(archive, sought, told))
    made = [redaction.redacted(archive, page, rows, act) for page, rows in found if rows]
    left = [archive.redactions[page] for page, rows in found if not rows]
    redactions.add(session.ledger, made)
    archive.redact([*made, *left])
    excised = _excised(session, sought, act)
    quotes = ledger.erase(session.ledger, sought.identifier)
    again(session, _accepting(session, act))
    version = publish_folded(session)
    home = session.settings.place
    kept = {version.version} if version else set()
    versions = editions(session.work).keep_only(kept, now=True)
    exports = _without_exports(home.exports, sought.identifier)
    reports = _without_reports(home.reports)
    remain = traces.files(home.root, sought.identifier)
    lake = store.opened(home, home.lake_data or None)
    return Erased(
        records=sum(len(each.rows) for each in made) + excised,
        pages=len(made),
        versions=tuple(versions),
        exports=tuple(exports),
        reports=tuple(reports),
        quotes=tuple(quotes),
        left=(
            *(str(file.relative_to(home.root)) for file in remain),
            *(f"archive/{name}" for name in traces.stored(archive.store, sought.identifier)),
            *(f"lake/{name}" for name in traces.stored(lake, sought.identifier)),
        ),
    )


def _accepting(session: Session, act: Act) -> Settle:
    """Return what lets a reading that was folded be folded again, of which less is left now.

    Of fewer rows the same number is a larger share, at which a guard may hold the reading back.
    """

    def accept(row: ManifestRow, error: PartnerSyncError) -> bool:
        if not isinstance(error, Awaited):
            return False
        kind, count = error.awaiting.kind, str(error.awaiting.count)
        which = (kind, row.connection, row.stream, row.file, act.by, act.at, count)
        decisions.decide(session.ledger, Decision(*which, note="folded before records were erased"))
        return True

    return accept


def _refuse(sought: Sought, act: Act) -> None:
    if len(sought.identifier.strip()) < SHORTEST:
        raise ConfigurationError(
            f"an identifier of less than {SHORTEST} characters stands in everything; nothing was "
            "erased"
        )
    if sought.identifier in act.reason or sought.identifier in act.by:
        raise ConfigurationError(
            "the reason names the identifier, and would keep it in the archive for good; nothing "
            "was erased. Give a reason that does not, such as the number of the request."
        )


def _excised(session: Session, sought: Sought, act: Act) -> int:
    """Write the base snapshot anew without what says the identifier; return how many rows went."""
    before = bases.newest(session.ledger)
    if before is None:
        return 0
    with base.making(session.work, session.archive, session.ledger) as database:
        gone = Excision(database, sought).apply()
    number = before.number + 1
    after = replace(before, number=number, file=base.name(number), by=act.by, at=act.at)
    base.settle(session.work, session.archive, session.ledger, after, anew=True)
    base.keep_newest(session.archive, session.ledger)
    return gone


def _without_exports(folder: Path, identifier: str) -> list[str]:
    """Delete each export that says the identifier, whole, and links that lead nowhere then."""
    if (lock := folder / ".export.lock").exists():
        with filelock.FileLock(lock):  # an export of what was published before comes to its end
            for left in folder.glob(f"{PART}*"):
                shutil.rmtree(left) if left.is_dir() else left.unlink()
    holding = {file.relative_to(folder).parts[0] for file in traces.files(folder, identifier)}
    for name in holding:
        place = folder / name
        shutil.rmtree(place) if place.is_dir() else place.unlink()
    for each in folder.glob("*"):
        if each.is_symlink() and not each.exists():
            each.unlink()
    return sorted(holding)


def _without_reports(folder: Path) -> list[str]:
    """Delete every page of reports: by its name and its figures it tells of a partner too."""
    pages = sorted(folder.glob("*.html"))
    for page in pages:
        page.unlink()
    return [page.name for page in pages]
