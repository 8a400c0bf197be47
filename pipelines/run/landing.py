"""The last links: typed tables in the work database, and the file that analysts open."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial

import duckdb

from pipelines.errors import LandingFailed, PartnerSyncError, StorageFailed
from pipelines.run import interface, reconciling
from pipelines.run.order import Folded, Order, Publication
from pipelines.run.session import Session
from pipelines.state import days, decisions, journal, runs, versions
from pipelines.state.decisions import Kind
from pipelines.state.journal import ManifestRow
from pipelines.state.versions import Rollback, Version
from pipelines.warehouse import awaiting, base, evolution, meta, rebuild, registry
from pipelines.warehouse import fold as folding
from pipelines.warehouse import publish as publishing
from pipelines.warehouse.awaiting import Awaited
from pipelines.warehouse.disappeared import Guard
from pipelines.warehouse.evolution import Policy
from pipelines.warehouse.fold import Terms
from pipelines.warehouse.meta import Fold, Held
from pipelines.warehouse.publish import Edition

SAID = 5  # changes of columns that a run names; the verb `schema` names all
GONE = Kind.DISAPPEARED
BY_HAND = "publish"  # stands for the run that a version is of


def fold(session: Session, order: Order) -> Folded:
    """Fold every manifest of each stream that is not folded yet; return the last fold or failure.

    In the order in which they were written, those of other connections too: a stream's tables are
    shared. What the work database lost is folded again; where that fails for a stream of this
    connection, it is told.
    """
    own = order.connection.name
    wanted = {(own, stream.name) for stream in order.streams}
    base.begin(session.work, session.archive, session.ledger)
    rebuild.sweep_old(session.work, session.clock.now())
    folded = session.work.fold(own, partial(_folded, session, wanted))
    for each in wanted - folded.keys():
        folded[each] = LandingFailed(f"{each[1]} was never read to its end")
    failed = {each for each, fold in folded.items() if isinstance(fold, PartnerSyncError)}
    told = wanted | {(connection, stream) for connection, stream in failed if connection == own}
    return {each[1]: fold for each, fold in folded.items() if each in told}


def _folded(
    session: Session, wanted: Collection[tuple[str, str]], writer: duckdb.DuckDBPyConnection
) -> dict[tuple[str, str], Fold | PartnerSyncError]:
    """Fold what is wanted, and what the tables lost of the connections that they are of."""
    own, read = {each[0] for each in wanted}, journal.read_once(session.ledger)
    lists = {*wanted, *(each for each in read if session.work.whole or each[0] in own)}
    held, folded = meta.held(writer).keys(), dict[tuple[str, str], Fold | PartnerSyncError]()
    for stream in sorted({each[1] for each in lists if each in wanted or each not in held}):
        of = {connection for connection, each in lists if each == stream}
        folded |= _fold(session, writer, stream, of)
    return folded


def _fold(
    session: Session, writer: duckdb.DuckDBPyConnection, stream: str, of: Collection[str]
) -> dict[tuple[str, str], Fold | PartnerSyncError]:
    """Fold one stream of some connections; a failure is returned, so that others are published."""
    held = {each: fold for each, fold in meta.held(writer).items() if each[1] == stream}
    outcomes: dict[tuple[str, str], Fold | PartnerSyncError] = dict(held)
    dropped = base.held(session.ledger)
    every = [
        row for row in journal.manifests_of(session.ledger, stream, of) if row.file not in dropped
    ]
    for row in _pending(every, held):
        known = registry.registered(writer, stream)
        waits = _still_waits(session, writer, row, every)
        outcome = outcomes[row.connection, stream] = waits or fold_row(session, writer, row)
        if known and isinstance(outcome, Fold):
            _tell(session, writer, outcome)
    return outcomes


def _still_waits(
    session: Session,
    writer: duckdb.DuckDBPyConnection,
    row: ManifestRow,
    every: Sequence[ManifestRow],
) -> LandingFailed | None:
    """Return why a manifest before the last one folded is not tried again: nobody said a word.

    What it changes about shared columns may be no change after the later ones; a fresh build, which
    goes through them in order, would hold it back.
    """
    held = {each.manifest: each for each in awaiting.awaited(writer)}.get(row.file)
    if held is None or _accepted(session, row, held.kind):
        return None
    later = {each.file for each in every[every.index(row) + 1 :]}
    if later.isdisjoint(fold.manifest for fold in meta.folds(writer)):
        return None
    return LandingFailed(
        f"{row.stream}: {row.file} awaits a word still, the stream keeps its last published rows: "
        f"`{held.command}`, or the next reading of it."
    )


def _pending(manifests: Iterable[ManifestRow], held: Held) -> list[ManifestRow]:
    """Return the manifests that were written after the last one of their connection folded."""
    pending: list[ManifestRow] = []
    for row in manifests:
        there = held.get((row.connection, row.stream))
        if there is not None and there.manifest == row.file:
            pending = [each for each in pending if each.connection != row.connection]
        else:
            pending.append(row)
    return pending


def fold_row(
    session: Session, writer: duckdb.DuckDBPyConnection, row: ManifestRow
) -> Fold | PartnerSyncError:
    """Fold one manifest on the terms that settings and decisions give; return fold or failure."""
    own = session.settings.stream(row.stream)
    guard = Guard(own.may_disappear, own.may_be_empty, bool(_accepted(session, row, GONE)))
    wider, aside = (_accepted(session, row, kind) for kind in (Kind.SCHEMA, Kind.QUARANTINE))
    terms = Terms(guard, Policy(own.policy), bool(wider), max(map(int, aside), default=0))
    archive = session.archive
    try:
        folded = folding.fold(writer, archive, archive.read(row.file), terms, session.clock)
        interface.compare(session, writer, folded)
    except StorageFailed:  # nothing of the reading: later ones must not be folded before it
        raise
    except PartnerSyncError as error:
        if isinstance(error, Awaited):
            awaiting.note(writer, error.awaiting)
        return error
    return folded


def _tell(session: Session, writer: duckdb.DuckDBPyConnection, fold: Fold) -> None:
    """Say what a manifest changed about the columns that there were."""
    changes = evolution.recorded(writer, fold.stream, fold.manifest)
    for change in changes[:SAID]:
        session.watch.waiting(f"{fold.stream}: {change.words}")
    if len(changes) > SAID:
        more = len(changes) - SAID
        session.watch.waiting(f"{fold.stream}: {more:,} more changes (partner-sync schema)")


def _accepted(session: Session, row: ManifestRow, kind: Kind) -> list[str]:
    """Return what a person let a manifest do, in the order of the decisions of a kind."""
    made = decisions.made(session.ledger, kind, row.connection, row.stream)
    return [each.subject or "1" for each in made if each.manifest == row.file]


def publish(session: Session, orders: Sequence[Order]) -> Publication:
    """Publish what is folded, all streams at once; say what the orders' days lack in it."""
    now, edition = session.clock.now, _edition(session, orders[0].run)
    wanted = replace(edition, read=_newest(session, orders))
    version = publishing.publish(session.work, session.ledger, wanted, session.clock)
    # What was rolled back was published once: it lacks nothing.
    newest = versions.latest(session.ledger) if version else None
    holds = newest.holds if newest else {}
    lacking = tuple(days.lacking(session.ledger, order.asked, holds) for order in orders)
    for order, words in zip(orders, lacking, strict=True):
        runs.end(session.ledger, order.run, "partial" if words else "published", now())
    return Publication(version, lacking)


def _newest(session: Session, orders: Iterable[Order]) -> list[str]:
    """Return the newest manifest of every list that some orders are of."""
    asked = {(stream, order.asked.connection) for order in orders for stream in order.asked.streams}
    rows = (journal.newest(session.ledger, *each) for each in sorted(asked))
    return [row.file for row in rows if row]


def publish_folded(session: Session) -> Version | None:
    """Publish what is folded, for nobody's day; None where nothing was ever folded."""
    wanted = _edition(session, BY_HAND)
    return publishing.publish(session.work, session.ledger, wanted, session.clock)


def _edition(session: Session, run: str) -> Edition:
    """Return the version that is wanted: with what reconciliation and reports make of it."""
    add = partial(reconciling.tell, session)
    return Edition(run, session.settings.keep_versions, add, reconciling.digest(session))


def roll_back(session: Session, to: int | None, by: str, reason: str = "") -> Version:
    """Let analysts open an older version, the one before where none is named; return it."""
    wanted = Rollback(newest=0, opened=0, by=by, at=session.clock.now(), reason=reason)
    return publishing.roll_back(session.work, session.ledger, to, wanted)
