"""`make rehearsal-kills`: a worker, the broker, PostgreSQL, each killed in the middle of a night.

kill -9, one at a time, each in a night of its own. Servers are back a little later; a `worker`
stays off; one that is `returning` is started again at once, as by a service manager. Expected: the
night completes without a click, no page that was linked is read again, every table equals the
embedded default's, no slot and no ticket of the request budget stays taken. `KILL=worker` does one
alone. Not here: kills of single processes (tests/end_to_end/killing.py).
"""

import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from pipelines import run, settings
from pipelines.state.slots import Slots
from pipelines.state.tables import BUDGETS, PAGES, REQUESTS, RUNS, SCANS
from tests.distributed import expectations
from tests.distributed.accounts import Accounts, serving
from tests.distributed.expectations import Expectation
from tests.distributed.night import Night, servers
from tests.distributed.rehearsal import embedded, say, table
from tests.distributed.stack import environment

ACCOUNTS = 3
# Some thirty requests that take their time: most of a run is reading.
SLOW = ("--rate=0", "--latency-ms=1000", "--partners=400", "--usage=1500", "--billing=1500")
ENOUGH = 8  # pages linked, when it is killed
AWAY = 5.0  # seconds until a service manager starts a server again
OFFSET = re.compile(r"offset=(\d+)")
Place = tuple[str, str, int]


@dataclass(frozen=True)
class Seen:
    """What the ledger held at a moment: pages that are linked, and the number of requests."""

    linked: set[Place]
    requests: int


def ledger(night: Night) -> sa.Engine:
    """Return the ledger that the night's processes share."""
    with environment(night.environment), run.open(settings.load()) as session:
        return session.ledger


def seen(night: Night) -> Seen:
    """Ask the ledger; the first page of a list is an anchor, which a scan may read again."""
    pages = sa.select(SCANS.c.connection, SCANS.c.stream, PAGES.c.offset).join_from(
        PAGES, SCANS, PAGES.c.scan == SCANS.c.scan
    )
    with ledger(night).connect() as connection:
        linked = {
            (of, stream, offset) for of, stream, offset in connection.execute(pages) if offset
        }
        count = connection.execute(sa.select(sa.func.max(REQUESTS.c.number))).scalar_one()
    return Seen(linked, count or 0)


def asked(night: Night, after: int) -> set[Place]:
    """Return the pages that were asked for after a request."""
    query = (
        sa.select(RUNS.c.connection, REQUESTS.c.stream, REQUESTS.c.query)
        .join_from(REQUESTS, RUNS, REQUESTS.c.run == RUNS.c.run)
        .where(REQUESTS.c.number > after, REQUESTS.c.stream.is_not(None))
    )
    with ledger(night).connect() as connection:
        rows = connection.execute(query).all()
    found = [(of, stream, OFFSET.search(query or "")) for of, stream, query in rows]
    return {(of, stream, int(match[1])) for of, stream, match in found if match}


def left_over(night: Night) -> int:
    """Count the places of dead processes that the next one who waits would not free at once."""
    with ledger(night).connect() as connection:
        actors = connection.execute(sa.select(BUDGETS.c.actor)).scalars().all()
    return sum(_held(Slots(ledger(night), actor)) for actor in actors)


def _held(slots: Slots) -> int:
    with slots.transaction():
        owners = {each.owner for each in slots.unanswered()}
        owners |= {each.owner for each in slots.tickets()}
        held = sum(not slots.bury(owner, 0.0) for owner in owners)
    slots.close()
    return held


def worker(night: Night) -> None:
    """Switch off the machine of one worker; it stays off."""
    night.stack.kill("worker1")


def returning(night: Night) -> None:
    """Switch off the machine of one worker; a service manager starts the same again at once."""
    again = night.stack.commands["worker1"]
    night.stack.kill("worker1")
    night.stack.begin("worker1", *again)


def broker(night: Night) -> None:
    """Kill Redis; it is back a little later."""
    night.servers.redis.kill()
    time.sleep(AWAY)
    night.servers.redis.begin()


def postgresql(night: Night) -> None:
    """Kill PostgreSQL; it is back a little later."""
    night.servers.postgresql.kill()
    time.sleep(AWAY)
    night.servers.postgresql.begin()


VICTIMS: dict[str, Callable[[Night], None]] = {
    "worker": worker,
    "returning": returning,
    "broker": broker,
    "postgresql": postgresql,
}


def killed(folder: Path, victim: str, accounts: Accounts, home: Path) -> Iterator[Expectation]:
    """Kill in the middle of a night; yield what came of it."""
    with servers(folder / "servers") as shared:
        night = Night(folder / victim, shared, accounts, {"PARTNER_SYNC_WINDOW": "0"}, say)
        try:
            night.begin(2, 2)
            night.until(lambda: len(seen(night).linked) >= ENOUGH, "pages of the night")
            before = seen(night)
            say(f"{victim}: killed with {len(before.linked)} pages linked")
            VICTIMS[victim](night)
            night.until(lambda: _complete(night), "the night's end")
            yield from _found(night, victim, before, home)
        finally:
            night.stack.end()


def _complete(night: Night) -> bool:
    for name in night.stack.again():
        say(f"  {name} had ended and was started again")
    return night.complete()


def _found(night: Night, victim: str, before: Seen, home: Path) -> Iterator[Expectation]:
    runs = len(night.records())
    measured = f"{runs} runs for {len(night.accounts.connections)} connections"
    yield Expectation(f"{victim} killed: the night completes without a click", measured, holds=True)
    again = before.linked & asked(night, before.requests)
    measured = f"{len(again)} of {len(before.linked)} that were linked"
    yield Expectation(f"{victim} killed: no linked page is read again", measured, not again)
    left = left_over(night)
    yield Expectation(f"{victim} killed: no slot stays taken", str(left or "none"), not left)
    for each in expectations.of_values(night, home):
        yield Expectation(f"{victim} killed: {each.expected}", each.measured, each.holds)


def main() -> int:
    """Kill each in turn; return 0 where everything holds."""
    found: list[Expectation] = []
    wanted = os.environ.get("KILL", " ".join(VICTIMS)).split()
    with tempfile.TemporaryDirectory(prefix="kills-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # PostgreSQL runs as another user where we are root
        with serving(folder, ACCOUNTS, *SLOW) as accounts:
            with environment({"PARTNER_SYNC_WINDOW": "0"}):
                home = embedded(folder / "embedded", accounts)
            for victim in wanted:
                found += killed(folder / f"of-{victim}", victim, accounts, home)
    for line in table(found):
        say(line)
    return 0 if all(each.holds for each in found) else 1


if __name__ == "__main__":
    sys.exit(main())
