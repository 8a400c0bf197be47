"""A word that comes late: later readings of the stream may be in its tables already.

Readings are folded in the order in which they were written, whenever a person accepted one: which
columns there are, in which order and of which type depends on it. Not here: the decision.
"""

from pipelines.run.landing import fold
from pipelines.run.order import Order
from pipelines.run.replay import again
from pipelines.run.session import Session
from pipelines.state import journal
from pipelines.warehouse import meta


def fold_accepted(session: Session, order: Order, manifest: str) -> None:
    """Fold a manifest that a person accepted; build all anew where a later one is folded.

    Raises LandingFailed, with the tables unchanged, where one of those cannot be folded any more.
    """
    if _is_late(session, manifest):
        again(session)
    else:
        fold(session, order)


def _is_late(session: Session, manifest: str) -> bool:
    """Tell whether a later manifest of the stream, of any connection, is folded."""
    every = journal.every_manifest(session.ledger)
    own = next(row for row in every if row.file == manifest)
    files = [row.file for row in every if row.stream == own.stream]
    with session.work.writing() as writer:
        folded = {fold.manifest for fold in meta.folds(writer)}
    return not folded.isdisjoint(files[files.index(manifest) + 1 :])
