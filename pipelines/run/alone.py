"""A home to oneself: while pages are dropped or rewritten nobody reads, folds or publishes.

A page that is archived and not yet linked would else be taken for one that nothing needs, and one
that was rewritten would be archived again as it was. Not here: what is done then.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pipelines.errors import ConfigurationError
from pipelines.run.session import Session
from pipelines.state import journal
from pipelines.streams import known
from pipelines.warehouse import base, link, rebuild
from pipelines.warehouse.turn import Turns


@contextmanager
def alone(session: Session) -> Iterator[None]:
    """Wait for who reads or writes, saying so; keep others waiting; remove what kills left."""
    home = session.settings.place
    turns = Turns(session.locks, session.clock, session.watch.waiting)
    with turns.all_taken(_lists(session)), session.work.alone(), session.archive.numbering():
        rebuild.sweep(session.work)
        rebuild.sweep_old(session.work, session.clock.now())
        session.archive.store.sweep()
        base.keep_newest(session.archive, session.ledger)
        link.sweep(home)
        yield


def _lists(session: Session) -> set[tuple[str, str]]:
    """Return every list that somebody may be reading: those configured, those ever begun."""
    lists = journal.begun(session.ledger)
    with suppress(ConfigurationError):  # without a connection nobody reads
        names = session.settings.connections()
        lists |= {(name, each.name) for name in names for each in known(session.settings)}
    return lists
