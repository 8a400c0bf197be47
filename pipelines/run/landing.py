"""The last links: typed tables in the work database, and the file that analysts open."""

from collections.abc import Sequence

import duckdb

from pipelines.errors import LandingFailed, PartnerSyncError
from pipelines.run import interface
from pipelines.run.order import Folded, Order, Publication
from pipelines.run.session import Session
from pipelines.state import days, journal, runs
from pipelines.warehouse import fold as folding
from pipelines.warehouse import meta
from pipelines.warehouse import publish as publishing
from pipelines.warehouse.meta import Fold


def fold(session: Session, order: Order) -> Folded:
    """Fold the newest manifest of each stream that is not folded yet; return fold or failure.

    What the work database lost is folded too, of whichever connection; where that fails for a
    stream of this connection, it is told.
    """
    own = order.connection.name
    wanted = {(own, stream.name) for stream in order.streams}
    with session.work.writing() as writer:
        held = meta.held(writer)
        lost = journal.read_once(session.ledger) - held.keys()
        folded = {
            each: _fold(session, writer, each, held.get(each)) for each in sorted(wanted | lost)
        }
    failed = {each for each, fold in folded.items() if isinstance(fold, PartnerSyncError)}
    told = wanted | {(connection, stream) for connection, stream in failed if connection == own}
    return {each[1]: fold for each, fold in folded.items() if each in told}


def _fold(
    session: Session,
    writer: duckdb.DuckDBPyConnection,
    which: tuple[str, str],
    there: Fold | None,
) -> Fold | PartnerSyncError:
    """Fold one stream of a connection; a failure is returned, so that the others are published."""
    connection, stream = which
    manifests = journal.manifests(session.ledger, stream, connection)
    if not manifests:
        return LandingFailed(f"{stream} was never read to its end")
    newest = manifests[-1]
    if there is not None and there.manifest == newest.file:
        return there
    emptied = there is not None and there.rows and not newest.rows
    if emptied and not session.settings.stream(stream).may_be_empty:
        return LandingFailed(
            f"{stream}: the service answered an empty list where rows were. They stay published; "
            f"if it is true, set may_be_empty = true in [streams.{stream}]."
        )
    archive, ledger, clock = session.archive, session.ledger, session.clock
    try:
        folded = folding.fold(writer, archive, ledger, archive.read(newest.file), clock)
        interface.compare(session, writer, folded)
    except PartnerSyncError as error:
        return error
    return folded


def publish(session: Session, orders: Sequence[Order]) -> Publication:
    """Publish what is folded, all streams at once; say what the orders' days lack in it."""
    keep, now = session.settings.keep_versions, session.clock.now
    version = publishing.publish(session.work, session.ledger, orders[0].run, keep, session.clock)
    holds = version.holds if version else {}
    lacking = tuple(days.lacking(session.ledger, order.asked, holds) for order in orders)
    for order, words in zip(orders, lacking, strict=True):
        runs.end(session.ledger, order.run, "partial" if words else "published", now())
    return Publication(version, lacking)
