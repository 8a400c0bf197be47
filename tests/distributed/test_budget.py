"""One actor's budget in PostgreSQL: among real processes, through kill -9 of any of them and of it.

Not here: what its rows mean (tests/api and tests/state, which run on PostgreSQL as well).
"""

import asyncio
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer

import httpx
import pytest
from sqlalchemy import Engine, select, text

from pipelines.api.budget import Budget
from pipelines.api.terms import Said, Seat, Terms
from pipelines.clock import SYSTEM
from pipelines.errors import StorageFailed
from pipelines.state import database
from pipelines.state.slots import Slots
from pipelines.state.tables import SLOTS, TICKETS
from tests.distributed.servers import PostgreSQL
from tests.end_to_end.conftest import Point, point
from tests.end_to_end.test_processes import Member
from tests.sandbox.running import sandboxed

__all__ = ["point"]
WINDOW = "0.5"  # seconds
TERMS = Terms(5, 1.0)


@pytest.fixture
def mortal() -> Iterator[PostgreSQL]:
    """Yield a PostgreSQL of the test's own, which it may kill."""
    with TemporaryDirectory(prefix="mortal-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # as root it runs under a user of its own
        server = PostgreSQL(folder / "data")
        server.begin()
        yield server
        server.end()


def test_four_processes_share_an_actor_without_a_429(
    postgres: Callable[[], str], point: Point, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARTNER_SYNC_STATE", postgres())
    with sandboxed(f"--window={WINDOW}", "--latency-ms=20", "--jitter-ms=4") as service:
        service.environment["PARTNER_SYNC_WINDOW"] = WINDOW
        own = point(service)
        own.place.prepare()
        ledger = database.connect(own.place.state, own.state)
        members = [Member(*each) for each in (("nightly", 60), ("adhoc", 5), ("nightly", 5))]
        for each in members:
            each.ready()
            each.go()
        heir = Member("nightly", 3)
        heir.ready()
        doomed, *others = members
        doomed.process.send_signal(signal.SIGKILL)
        assert doomed.end() == -signal.SIGKILL
        heir.go()
        assert [each.end() for each in (heir, *others)] == [0, 0, 0]
        served = httpx.get(f"{service.url}/__sandbox__/statistics").json()
    assert (served["refused"], served["early_retries"]) == (0, 0)
    assert served["most_admitted_in_any_window"] <= 5
    assert served["admitted"] > 40
    with ledger.connect() as rows:
        assert rows.execute(select(TICKETS)).all() == []
        assert rows.execute(select(SLOTS).where(SLOTS.c.answered_at.is_(None))).all() == []
    ledger.dispose()


def test_a_server_that_is_killed_is_waited_for_and_nobody_is_early(mortal: PostgreSQL) -> None:
    ledger = database.connect(Path(), mortal.database("state"))

    async def main() -> list[float]:
        budget = Budget(SYSTEM, TERMS, Seat(ledger), key=lambda: "host actor")
        sent = []
        for number in range(12):
            async with budget.slot():
                sent.append(SYSTEM.monotonic())
                budget.hear(Said(200, sent[-1]))
            if number == 3:
                await asyncio.sleep(0.1)
                mortal.kill()
                Timer(1.0, mortal.begin).start()
        budget.close()
        return sent

    sent = asyncio.run(main())
    assert all(later - one > TERMS.window for one, later in zip(sent, sent[5:], strict=False))
    assert sent[4] - sent[3] > TERMS.window
    ledger.dispose()


def test_a_server_that_stays_away_is_said(mortal: PostgreSQL) -> None:
    ledger = database.connect(Path(), mortal.database("state"))
    rows = Slots(ledger, "a")
    with rows.transaction():
        rows.take(1.0)
    mortal.kill()
    rows.desk.hurry(0.1)
    with pytest.raises(StorageFailed, match=r"cannot be reached.*it goes on"), rows.transaction():
        rows.take(2.0)
    rows.close()
    ledger.dispose()


@pytest.fixture
def ledger(postgres: Callable[[], str]) -> Iterator[Engine]:
    """Yield a ledger of the test's own."""
    engine = database.connect(Path(), postgres())
    yield engine
    engine.dispose()


def test_a_process_that_hangs_in_a_transaction_loses_it(ledger: Engine) -> None:
    stopped, other = Slots(ledger, "a"), Slots(ledger, "a")
    with stopped.transaction():
        stopped.take(1.0)
    with ledger.begin() as rows:  # as after five seconds
        end = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
        rows.execute(text(end))
    with other.transaction():
        (held,) = other.unanswered()
        assert other.bury(held.owner, 2.0)
        assert other.unanswered() == []
    with stopped.transaction():
        assert stopped.returned()
        assert stopped.owner != held.owner
    for each in (stopped, other):
        each.close()


def test_a_clock_that_was_set_back_takes_the_times_along(ledger: Engine) -> None:
    rows = Slots(ledger, "a")
    with rows.transaction():
        now = rows.desk.earliest(SYSTEM.monotonic())
        account = rows.account(now, SYSTEM.wall())
        rows.answer(rows.take(now + 3600), now + 3600, 0.0, lost=False)
        rows.save(account.__class__(account.boot, sent_at=now + 3600, blocked_until=now + 3607))
    with rows.transaction():
        account = rows.account(now, SYSTEM.wall())
        assert account.blocked_until == pytest.approx(now + 7)
        assert rows.release(now - 1, 0.0, 0) == pytest.approx(now)
    rows.close()
