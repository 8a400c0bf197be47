"""How things stand: what was last proven and published of each list, and what is under way.

Here: what the ledger knows; nothing is sent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pipelines.run import alerting
from pipelines.run.alerting import Stands
from pipelines.run.forecast import next_night
from pipelines.run.order import Order
from pipelines.run.session import Session
from pipelines.state import budgets, journal, versions
from pipelines.state.budgets import Shared
from pipelines.state.journal import ManifestRow, ScanState
from pipelines.state.versions import Rollback, Version


@dataclass(frozen=True)
class StreamStatus:
    """One list: its last proven reading, whether analysts see it, and its newest scan."""

    connection: str
    stream: str
    manifest: ManifestRow | None
    published: bool
    newest: ScanState | None

    @property
    def trouble(self) -> str:
        """What is the matter, in words; empty where nothing is."""
        if self.newest and self.newest.status == "reading":
            pages = f"{self.newest.pages:,} pages so far"
            return f"being read, or killed: {pages}, begun {self.newest.begun_at:%H:%M:%S} UTC"
        if self.newest and self.newest.error:
            return self.newest.error
        if self.manifest and not self.published:
            return f"{self.manifest.file} is read and not published"
        return "" if self.manifest else "never read to its end"


@dataclass(frozen=True)
class Status:
    """How a home stands; `budgets` are those of every actor that it ever asked as."""

    streams: tuple[StreamStatus, ...]
    version: Version | None
    rolled_back: Rollback | None
    budgets: tuple[Shared, ...]
    night: datetime
    alerts: tuple[Stands, ...]


def status(session: Session, orders: Sequence[Order]) -> Status:
    """Say how the lists of these orders stand."""
    version = versions.opened(session.ledger)
    now = session.clock.now()
    return Status(
        streams=tuple(
            _stream(session, order.connection.name, stream.name, version)
            for order in orders
            for stream in order.streams
        ),
        version=version,
        rolled_back=versions.rolled_back(session.ledger),
        budgets=budgets.shared(session.ledger, now),
        night=next_night(session.settings, now),
        alerts=alerting.stands(session),
    )


def _stream(
    session: Session, connection: str, stream: str, version: Version | None
) -> StreamStatus:
    manifest = journal.newest(session.ledger, stream, connection)
    held = version.holds.get(f"{connection}/{stream}") if version else None
    return StreamStatus(
        connection,
        stream,
        manifest,
        manifest is not None and manifest.file == held,
        journal.latest_scan(session.ledger, connection, stream),
    )
