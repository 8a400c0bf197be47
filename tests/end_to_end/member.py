"""`python -m tests.end_to_end.member LANE SECONDS`: three chains of requests, by one process.

Asks for as little as possible, so that what is tried is the budget and what it shares.
"""

import asyncio
import sys
from functools import partial

from sqlalchemy import Engine

from pipelines import settings
from pipelines.api import client
from pipelines.api.client import Client
from pipelines.api.lanes import Lane
from pipelines.api.terms import Seat
from pipelines.clock import SYSTEM
from pipelines.state import database, runs
from pipelines.state.runs import Call

CHAINS = 3


async def record(ledger: Engine, run: str, call: Call) -> None:
    await asyncio.to_thread(runs.record, ledger, run, call)


async def chain(service: Client, until: float) -> None:
    while SYSTEM.monotonic() < until:
        await service.whoami()


async def main(lane: str, seconds: str) -> None:
    own = settings.load()
    own.place.prepare()
    ledger = database.connect(own.place.state, own.state)
    seat = Seat(ledger, Lane(lane))
    told = partial(record, ledger, lane)
    async with client.connect(own.connection(), own, SYSTEM, told, seat) as service:
        await service.whoami()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        until = SYSTEM.monotonic() + float(seconds)
        await asyncio.gather(*(chain(service, until) for _ in range(CHAINS)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
