"""A client of one connection: in its place among all who share the actor, every call in the ledger.

Here: what every conversation with a service begins with. Not here: what is asked of it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial

from sqlalchemy import Engine

from pipelines.api import client
from pipelines.api.client import Client
from pipelines.api.lanes import Lane
from pipelines.api.terms import Seat
from pipelines.run.session import Session
from pipelines.settings import Connection
from pipelines.state import runs
from pipelines.state.runs import Call

AGAIN = 30.0  # seconds until the same reason to wait is told again


@asynccontextmanager
async def contact(
    session: Session, connection: Connection, run: str, lane: Lane = Lane.ADHOC
) -> AsyncIterator[Client]:
    """Yield a client of a connection for a run."""
    record = partial(_record, session.ledger, run)
    settings, clock = session.settings, session.clock
    async with client.connect(connection, settings, clock, record, _seat(session, lane)) as service:
        yield service


def _seat(session: Session, lane: Lane) -> Seat:
    """Return this run's place among all that share an actor's budget; it tells each wait once."""
    tell, monotonic = session.watch.waiting, session.clock.monotonic
    told: dict[str, float] = {}

    def waiting(until: datetime | None, why: str) -> None:
        if why and monotonic() >= told.get(why, float("-inf")) + AGAIN:
            told[why] = monotonic()
            tell(f"waiting until {until:%H:%M:%S} UTC ({why})" if until else f"waiting for {why}")

    return Seat(session.ledger, lane, waiting, tell)


async def _record(ledger: Engine, run: str, call: Call) -> None:
    """Write a call down whoever gives up meanwhile: it was sent, and counts at the service."""
    loop = asyncio.get_running_loop()
    await asyncio.shield(loop.run_in_executor(None, runs.record, ledger, run, call))
