"""Replay: the tables made once more from the archive and the recorded decisions, without a request.

History is a fold over the manifests in order, so folding a day again means folding all later ones
too: everything is built anew beside the work database and swapped in. Not here: the new file
(warehouse.rebuild), what a fold does (warehouse.fold).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import duckdb

from pipelines.errors import (
    ConfigurationError,
    DayDropped,
    DayUnread,
    LandingFailed,
    PartnerSyncError,
)
from pipelines.run.landing import fold, fold_row
from pipelines.run.order import Order
from pipelines.run.session import Session
from pipelines.state import bases, days, journal, runs, versions
from pipelines.state.decisions import Kind
from pipelines.state.journal import ManifestRow
from pipelines.warehouse import base, meta
from pipelines.warehouse.meta import Fold
from pipelines.warehouse.rebuild import rebuilding

Landed = Fold | PartnerSyncError
Outcomes = Mapping[tuple[str, str], Landed]
Settle = Callable[[ManifestRow, PartnerSyncError], bool]


def _never(_row: ManifestRow, _error: PartnerSyncError) -> bool:
    """Leave a reading that cannot be folded again as it is."""
    return False


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

    Folding begins with the base snapshot where there is one. Raises DayUnread where none of the
    days was ever read, DayDropped where one of them is in the snapshot, LandingFailed where the
    archive lacks what the tables are made of, ConfigurationError where the last day is before the
    first; the work database is then as it was.
    """
    if last and last < first:
        raise ConfigurationError(f"--to {last} is before --from {first}: no day lies between them")
    read = {row.day for row in journal.every_manifest(session.ledger)}
    until = last or max(read, default=first)
    asked = {first + timedelta(days=each) for each in range((until - first).days + 1)}
    if not asked & read:
        known = f"from {min(read)} to {max(read)}" if read else "none at all"
        raise DayUnread(
            f"nothing was read from {first} to {until}, and the service tells only what is today: "
            f"those days stay unknown. Days that were read: {known}."
        )
    if gone := asked & base.days(session.ledger):
        raise DayDropped(_dropped(session, min(gone)))
    return Replayed(tuple(sorted(asked - read)), again(session))


def _dropped(session: Session, asked: date) -> str:
    """Say of a day why it is not folded again, what stands in for it, and what can be replayed."""
    snapshot, gone = bases.newest(session.ledger), base.days(session.ledger)
    rows = journal.every_manifest(session.ledger)
    later = [row.day for row in rows if row.day > max(gone)]
    whence = f"begin on {min(later)}" if later else "begin with the next day that is read"
    who = f"on {snapshot.at:%Y-%m-%d}, by {snapshot.by}" if snapshot else ""
    return (
        f"{asked} cannot be folded again: `partner-sync retain` ({who}) folded the readings of "
        f"{min(gone)} to {max(gone)} into the base snapshot and dropped their pages. What they "
        "made, history included, is in the tables and stays as it is; every replay starts from "
        f"it, and can {whence}."
    )


def fold_days(session: Session, orders: Sequence[Order]) -> Outcomes:
    """Fold what was read of the orders' days; return the last fold or failure of each list.

    A day that was published before its run began is asked for again: then all is folded again, as
    by `replay`. Of a day that is in the base snapshot each list is a failure.
    """
    gone = base.days(session.ledger)
    if _published(session, [order for order in orders if order.day not in gone]):
        outcomes = _again(session, orders)
    else:
        newest = {each.connection.name: each for each in sorted(orders, key=lambda each: each.day)}
        made = {name: fold(session, order) for name, order in newest.items()}
        lists = [each for order in newest.values() for each in _lists(order)]
        outcomes = {(name, stream): made[name][stream] for name, stream in lists}
    for order in orders:
        if order.day in gone:
            failed = DayDropped(_dropped(session, order.day))
            outcomes |= dict.fromkeys(_lists(order), failed)
    return outcomes


def _lists(order: Order) -> list[tuple[str, str]]:
    return [(order.connection.name, stream.name) for stream in order.streams]


def _published(session: Session, orders: Sequence[Order]) -> bool:
    """Tell whether something of the orders' days was folded and published before their run began.

    Where nothing was read before, which is every night's case, the warehouse is not asked.
    """
    ledger, now = session.ledger, session.clock.now()
    earlier = [
        (order.connection.name, stream, row)
        for order in orders
        for began in [runs.began(ledger, order.run, now)]
        for stream, row in days.archived(ledger, order.asked).items()
        if row.written_at < began
    ]
    folded, version = _folded(session) if earlier else set(), versions.latest(ledger)
    holds = version.holds.values() if version else ()
    return any(
        row.file in folded and (row.file in holds or journal.newest(ledger, stream, name) != row)
        for name, stream, row in earlier
    )


def _again(session: Session, orders: Sequence[Order]) -> dict[tuple[str, str], Landed]:
    """Build the work database once more; return what that made of the orders' lists."""
    lists = [each for order in orders for each in _lists(order)]
    try:
        made = again(session)
    except PartnerSyncError as error:  # the tables are as they were, and can be published
        return dict.fromkeys(lists, error)
    never = {each: LandingFailed(f"{each[1]} was never read to its end") for each in lists}
    return {each: made.get(each, never[each]) for each in lists}


def again(session: Session, settle: Settle = _never) -> Outcomes:
    """Build the work database once more from the whole archive.

    Raises LandingFailed where what was folded cannot be folded any more, unless `settle` says that
    it made it so that it can.
    """
    outcomes: dict[tuple[str, str], Landed] = {}
    before, held = _folded(session), base.held(session.ledger)
    archive, ledger = session.archive, session.ledger
    with rebuilding(session.work, lambda file: base.start(archive, ledger, file)) as writer:
        rebuild = _Rebuild(session, writer, held, before, settle)
        for stream in sorted({stream for _, stream in journal.read_once(session.ledger)}):
            for row in journal.manifests(session.ledger, stream):
                outcome = rebuild.fold(row)
                outcomes |= {} if outcome is None else {(row.connection, stream): outcome}
    return outcomes


@dataclass(frozen=True)
class _Rebuild:
    """A work database that is built again: the manifests of its base, those folded before."""

    session: Session
    writer: duckdb.DuckDBPyConnection
    held: Collection[str]
    before: Collection[str]
    settle: Settle

    def fold(self, row: ManifestRow) -> Landed | None:
        """Fold a manifest; of one in the base, return how it was; None: it was passed over."""
        if row.file in self.held:
            return meta.folded(self.writer, row.file)
        outcome = fold_row(self.session, self.writer, row)
        if isinstance(outcome, PartnerSyncError) and row.file in self.before:
            return self._settled(row, outcome)
        return outcome

    def _settled(self, row: ManifestRow, failed: PartnerSyncError) -> Fold:
        outcome: Landed = failed
        for _guard in Kind:  # each may hold it back, one after the other
            if isinstance(outcome, PartnerSyncError) and self.settle(row, outcome):
                outcome = fold_row(self.session, self.writer, row)
        if isinstance(outcome, PartnerSyncError):
            raise LandingFailed(
                f"{row.file} was folded and cannot be folded again: {outcome} The work database "
                "stays as it was."
            ) from outcome
        return outcome


def _folded(session: Session) -> set[str]:
    """Return the manifests that the work database is made of; none where it cannot be opened."""
    try:
        with session.work.writing() as writer:
            return {fold.manifest for fold in meta.folds(writer)}
    except (PartnerSyncError, duckdb.Error):
        return set()
