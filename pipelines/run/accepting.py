"""What awaits a person's word: rows gone, columns, rows set aside; and that word, applied at once.

Recorded with the manifest from which it holds, then folded and published without a request. Also
what became of columns, and what is set aside. Not here: what makes a reading wait (warehouse).
"""

from dataclasses import dataclass
from typing import Any

from pipelines.errors import ConfigurationError
from pipelines.run.landing import publish
from pipelines.run.late import fold_accepted
from pipelines.run.order import Order, Publication
from pipelines.run.session import Session
from pipelines.state import decisions, runs
from pipelines.state.decisions import Decision, Kind
from pipelines.streams import known
from pipelines.warehouse import awaiting, dictionary, evolution, quarantine
from pipelines.warehouse.awaiting import Awaiting
from pipelines.warehouse.evolution import Change


@dataclass(frozen=True)
class Word:
    """A person's word about a stream of a connection."""

    stream: str
    connection: str
    by: str
    note: str = ""


@dataclass(frozen=True)
class Columns:
    """The columns of a stream's tables (all streams: none named), and what changed about them."""

    columns: list[dict[str, Any]]
    changes: list[Change]
    awaiting: list[Awaiting]


@dataclass(frozen=True)
class Aside:
    """Rows that are set aside, and the manifests that have too many of them."""

    rows: list[dict[str, Any]]
    awaiting: list[Awaiting]


def columns(session: Session, stream: str | None) -> Columns:
    """Return the columns of a stream, or of all, and their changes in order."""
    with session.work.writing() as writer:
        waiting = awaiting.awaited(writer, Kind.SCHEMA)
        changes = evolution.recorded(writer, stream)
        return Columns(dictionary.columns(writer, stream), changes, waiting)


def set_aside(session: Session) -> Aside:
    """Return the rows that are set aside, and what awaits a word about them."""
    with session.work.writing() as writer:
        return Aside(quarantine.rows(writer), awaiting.awaited(writer, Kind.QUARANTINE))


def waiting(session: Session, kind: Kind) -> list[Awaiting]:
    """Return every reading that awaits a word of a kind."""
    with session.work.writing() as writer:
        return awaiting.awaited(writer, kind)


def accept_waiting(session: Session, kind: Kind, word: Word) -> tuple[Awaiting, Publication]:
    """Record that the newest reading of a stream may be folded as it is; fold and publish it.

    Raises ConfigurationError where nothing of the stream awaits that.
    """
    about = (word.connection, word.stream)
    held = [each for each in waiting(session, kind) if (each.connection, each.stream) == about]
    if not held:
        raise ConfigurationError(
            f"nothing of {word.stream} awaits a word for {word.connection}: there is nothing to "
            f"accept (`partner-sync {kind}` lists what does)"
        )
    newest, now = held[-1], session.clock.now()
    decision = Decision(
        kind, *about, newest.manifest, word.by, now, subject=str(newest.count), note=word.note
    )
    decisions.decide(session.ledger, decision)
    own = [stream for stream in known(session.settings) if stream.name == word.stream]
    order = Order(session.settings.connection(word.connection), newest.day, own)
    runs.begin(session.ledger, order.run, word.connection, newest.day, now)
    fold_accepted(session, order, newest.manifest)
    return newest, publish(session, [order])
