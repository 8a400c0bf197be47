"""Retention as a person asks for it: a base snapshot, then nothing older than what is kept.

Whatever is killed: the snapshot is recorded before anything is dropped, and the next retention
drops what this one left. Not here: how it is done (warehouse.base, warehouse.retention).
"""

from dataclasses import dataclass
from datetime import timedelta

from pipelines.errors import PartnerSyncError
from pipelines.run.alone import alone
from pipelines.run.landing import fold_row
from pipelines.run.session import Session
from pipelines.state import bases, journal
from pipelines.state.bases import Base
from pipelines.state.journal import ManifestRow
from pipelines.warehouse import base, database, retention
from pipelines.warehouse.retention import Dropped, Retention

READING = timedelta(days=1)  # a reading that is not over is never older


@dataclass(frozen=True)
class Retained:
    """What a retention did; `base` is None where nothing was older than what is kept."""

    base: Base | None
    dropped: Dropped

    @property
    def words(self) -> str:
        """The same for people."""
        if self.base is None:
            return "nothing is older than what is kept: nothing was dropped"
        gone = self.dropped
        return (
            f"{gone.manifests:,} manifests and {gone.pages:,} pages were dropped "
            f"({gone.size / 1e6:,.1f} MB); what they made is in archive/base/{self.base.file}, "
            "from which the tables are built again"
        )


def retain(session: Session, keep: int, by: str) -> Retained:
    """Keep the last so many manifests of each list; fold what is older into the base snapshot.

    Nobody reads a list, folds or publishes meanwhile.
    """
    with alone(session):
        newest = bases.newest(session.ledger)
        held = newest.manifests if newest else []
        older = retention.old(journal.every_manifest(session.ledger), keep)
        if fresh := [row for row in older if row.file not in held]:
            newest = _made(session, fresh, held, by)
        if newest is None:
            return Retained(None, Dropped(0, 0, 0))
        since = session.clock.now() - READING
        kept = Retention(session.archive, session.ledger, newest.manifests, since)
        snapshot = base.file(session.archive, newest)
        with snapshot as file, database.reading(file) as reader:
            dropped = kept.drop(reader)
        base.keep_newest(session.archive, session.ledger)
    return Retained(newest, dropped)


def _made(session: Session, fresh: list[ManifestRow], held: list[str], by: str) -> Base:
    """Fold what is older into a new snapshot; one that cannot be folded is passed over again."""
    with base.making(session.work, session.archive, session.ledger) as writer:
        for row in fresh:
            outcome = fold_row(session, writer, row)
            if isinstance(outcome, PartnerSyncError):
                session.watch.waiting(f"{row.file} is passed over as before: {outcome}")
    newest = bases.newest(session.ledger)
    number = newest.number + 1 if newest else 1
    manifests = [*held, *(row.file for row in fresh)]
    now = session.clock.now()
    made = Base(number, base.name(number), "", manifests, by, now)
    return base.settle(session.work, session.archive, session.ledger, made)
