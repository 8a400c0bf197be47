"""Replay: the tables made once more from the archive and the recorded decisions, without a request.

History is a fold over the manifests in order, so folding a day again means folding all later ones
too: everything is built anew beside the work database and swapped in. Not here: the new file
(warehouse.rebuild), what a fold does (warehouse.fold).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, timedelta

import duckdb

from pipelines.errors import DayUnread, LandingFailed, PartnerSyncError
from pipelines.run.landing import fold_row
from pipelines.run.session import Session
from pipelines.state import journal
from pipelines.state.journal import ManifestRow
from pipelines.warehouse import base, meta
from pipelines.warehouse.meta import Fold
from pipelines.warehouse.rebuild import rebuilding

Outcomes = Mapping[tuple[str, str], Fold | PartnerSyncError]


@dataclass(frozen=True)
class Replayed:
    """What a replay did: the days asked for that were never read, and each stream's last fold."""

    unread: tuple[date, ...]
    folds: Outcomes

    @property
    def errors(self) -> list[str]:
        """Say which streams do not hold their newest reading, and why."""
        return [str(each) for each in self.folds.values() if isinstance(each, PartnerSyncError)]


def replay(session: Session, first: date, last: date | None = None) -> Replayed:
    """Fold the days again, and with them every later one; return what that made.

    Raises DayUnread where none of the days was ever read, LandingFailed where the archive lacks
    what the tables are made of; the work database is then as it was.
    """
    streams = {stream for _, stream in journal.read_once(session.ledger)}
    read = {row.day for each in streams for row in journal.manifests(session.ledger, each)}
    until = last or max(read, default=first)
    asked = {first + timedelta(days=each) for each in range((until - first).days + 1)}
    if not asked & read:
        known = f"from {min(read)} to {max(read)}" if read else "none at all"
        raise DayUnread(
            f"nothing was read from {first} to {until}, and the service tells only what is today: "
            f"those days stay unknown. Days that were read: {known}."
        )
    return Replayed(tuple(sorted(asked - read)), again(session))


def again(session: Session) -> Outcomes:
    """Build the work database once more from the whole archive."""
    outcomes: dict[tuple[str, str], Fold | PartnerSyncError] = {}
    before, held = _folded(session), base.held(session.ledger)
    home, ledger = session.settings.place, session.ledger
    with rebuilding(session.work, lambda file: base.start(home, ledger, file)) as writer:
        for stream in sorted({stream for _, stream in journal.read_once(session.ledger)}):
            for row in journal.manifests(session.ledger, stream):
                outcome = _outcome(session, writer, row, held)
                _check(outcome, before, row.file)
                outcomes |= {} if outcome is None else {(row.connection, stream): outcome}
    return outcomes


def _outcome(
    session: Session, writer: duckdb.DuckDBPyConnection, row: ManifestRow, held: Collection[str]
) -> Fold | PartnerSyncError | None:
    """Fold a manifest; of one that the base holds, return how it was; None: it was passed over."""
    if row.file in held:
        return meta.folded(writer, row.file)
    return fold_row(session, writer, row)


def _folded(session: Session) -> set[str]:
    """Return the manifests that the work database is made of; none where it cannot be opened."""
    try:
        with session.work.writing() as writer:
            return {fold.manifest for fold in meta.folds(writer)}
    except (PartnerSyncError, duckdb.Error):
        return set()


def _check(outcome: Fold | PartnerSyncError | None, before: set[str], manifest: str) -> None:
    """Raise LandingFailed where what was folded once cannot be folded any more."""
    if isinstance(outcome, PartnerSyncError) and manifest in before:
        raise LandingFailed(
            f"{manifest} was folded and cannot be folded again: {outcome} The work database stays "
            "as it was."
        ) from outcome
