"""What is held back because too many rows are gone, and a person's word that they truly are.

Here: the decision, recorded and applied at once, without a request. Not here: when a reading is
held back (warehouse.disappeared).
"""

from dataclasses import dataclass

from pipelines.errors import ConfigurationError
from pipelines.run.landing import publish
from pipelines.run.late import fold_accepted
from pipelines.run.order import Order, Publication
from pipelines.run.session import Session
from pipelines.state import decisions, runs
from pipelines.state.decisions import Decision, Kind
from pipelines.streams import known
from pipelines.warehouse import disappeared
from pipelines.warehouse.disappeared import HeldBack


@dataclass(frozen=True)
class Word:
    """A person's word about a stream of a connection."""

    stream: str
    connection: str
    by: str
    note: str = ""


def held_back(session: Session) -> list[HeldBack]:
    """Return every reading that is held back."""
    with session.work.writing() as writer:
        return disappeared.held_back(writer)


def accept_gone(session: Session, word: Word) -> tuple[HeldBack, Publication]:
    """Record that what the newest reading of a stream lacks is gone; fold and publish it.

    Raises ConfigurationError where nothing of the stream is held back.
    """
    about = (word.connection, word.stream)
    waiting = [each for each in held_back(session) if (each.connection, each.stream) == about]
    if not waiting:
        raise ConfigurationError(
            f"nothing of {word.stream} is held back for {word.connection}: there is nothing to "
            "accept (`partner-sync disappeared` lists what is)"
        )
    newest = waiting[-1]
    decision = Decision(
        Kind.DISAPPEARED,
        word.connection,
        word.stream,
        newest.manifest,
        word.by,
        session.clock.now(),
        note=word.note,
    )
    decisions.decide(session.ledger, decision)
    connection = session.settings.connection(word.connection)
    own = [stream for stream in known(session.settings) if stream.name == word.stream]
    order = Order(connection, newest.day, own)
    runs.begin(session.ledger, order.run, word.connection, newest.day, session.clock.now())
    fold_accepted(session, order, newest.manifest)
    return newest, publish(session, [order])
