"""The rows of a shared budget: what one process writes, another one reads, and kill -9 keeps."""

import os
import signal
import subprocess
import sys

import pytest
from sqlalchemy import Engine, create_engine

from pipelines.state import slots
from pipelines.state.desk import ACCOUNT, Busy
from pipelines.state.slots import Account, Slots
from tests.virtual import EPOCH

HOLDER = """
import sys
from sqlalchemy import create_engine
from pipelines.state.slots import Account, Slots
rows = Slots(create_engine(sys.argv[1]), "a")
with rows.transaction():
    rows.account(5.0, __import__("datetime").datetime.now())
    rows.save(Account(rows.desk.boot, blocked_until=77.0, gap=0.2))
    rows.take(5.0)
    rows.queue("nightly", 6.0)
print(rows.owner, flush=True)
with rows.transaction():
    rows.take(6.0)
    print("within", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def rows(ledger: Engine) -> Slots:
    return Slots(ledger, "a")


def test_an_account_comes_back_as_it_was_kept(rows: Slots) -> None:
    with rows.transaction():
        fresh = rows.account(1.0, EPOCH)
        assert fresh == Account(fresh.boot)
        values = dict(zip(ACCOUNT[2:], range(1, len(ACCOUNT)), strict=False))
        kept = Account(fresh.boot, 5, **values)
        rows.save(kept)
        assert rows.account(99.0, EPOCH) == kept
    rows.close()


def test_slots_are_held_from_answer_to_release(rows: Slots) -> None:
    with rows.transaction():
        first, second, third = (rows.take(float(number)) for number in range(3))
        assert rows.unanswered() == [first, second, third]
        rows.answer(first, 10.0, 0.0, lost=False)
        rows.answer(second, 10.5, 0.0, lost=False)
        assert rows.unanswered() == [third]
        # Held are those answered after 9.8; a credit of 0.3 frees the first.
        assert (rows.held(9.8, 0.0), rows.held(9.8, 0.3)) == (2, 1)
        assert rows.release(9.8, 0.0, 0) == 10.0
        assert rows.release(9.8, 0.3, 0) == pytest.approx(10.2)
        rows.answer(first, 20.0, 0.0, lost=False)  # what was answered stays so
        assert rows.held(10.1, 0.0) == 1
    rows.close()


def test_others_slots_have_the_lesser_of_two_credits(ledger: Engine, rows: Slots) -> None:
    other = Slots(ledger, "a")
    with other.transaction():
        other.answer(other.take(1.0), 10.0, 0.1, lost=False)
    with rows.transaction():
        assert [rows.release(9.0, credit, 0) for credit in (0.0, 0.05, 0.3)] == [10.0, 9.95, 9.9]
        assert rows.least_credit() == 0.1
    with other.transaction():
        assert other.release(9.0, 0.3, 0) == pytest.approx(9.7)
        assert other.least_credit() == 0.0
    for each in (rows, other):
        each.close()


def test_what_the_service_may_count_and_what_is_forgotten(rows: Slots) -> None:
    with rows.transaction():
        old, lost, new = (rows.take(1.0) for _ in range(3))
        rows.take(1.0)
        rows.answer(old, 100.0, 0.0, lost=False)
        rows.answer(lost, 100.0, 0.0, lost=True)
        rows.answer(new, 110.0, 0.0, lost=False)
        # The one that is on its way always counts, the one without an answer for 30 s more.
        counts = [rows.explained(since) for since in (100.0, 105.0, 115.0, 131.0)]
        assert counts == [4, 3, 2, 1]
        rows.sweep(105.0)
        assert rows.explained(0.0) == 3
        rows.sweep(131.0)
        assert rows.explained(0.0) == 1
    rows.close()


def test_what_the_path_proves_to_be_outside_a_window_is_not_counted_in_it(
    ledger: Engine, rows: Slots
) -> None:
    other = Slots(ledger, "a")
    with other.transaction():
        other.answer(other.take(1.0), 10.1, 0.05, lost=False)
    with rows.transaction():
        rows.answer(rows.take(2.0), 10.1, 0.0, lost=False)
        rows.answer(rows.take(3.0), 9.0, 0.0, lost=True)  # no answer: it may arrive later
        rows.take(10.5)
        rows.take(11.0)
        # The credit of another process's request is the lesser of the two.
        counts = [rows.explained(10.0, 10.7, credit) for credit in (0.0, 0.08, 0.2)]
        assert counts == [4, 4, 3]
        assert rows.explained(10.0, 10.4) == 3
    for each in (rows, other):
        each.close()


def test_actors_do_not_see_each_other(ledger: Engine, rows: Slots) -> None:
    other = Slots(ledger, "b")
    with rows.transaction():
        rows.save(Account("boot", foreign_uses=2, foreign_at=EPOCH.timestamp()))
        rows.answer(rows.take(1.0), 2.0, 0.1, lost=False)
        rows.take(1.0)
        rows.queue("adhoc", 1.0)
    with other.transaction():
        assert other.account(1.0, EPOCH).foreign_uses == 0
        assert (other.unanswered(), other.tickets(), other.held(0.0, 0.0)) == ([], [], 0)
    assert slots.foreign_uses(ledger) == [slots.ForeignUse("a", 2, EPOCH)]
    for each in (rows, other):
        each.close()


def test_what_fails_half_way_did_not_happen(rows: Slots) -> None:
    def half() -> None:
        with rows.transaction():
            rows.take(1.0)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        half()
    with rows.transaction():
        assert rows.unanswered() == []
    rows.close()


def test_kill_9_loses_what_was_not_committed_and_nothing_else(ledger: Engine) -> None:
    heir = Slots(ledger, "a")
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, ledger.url.render_as_string(hide_password=False)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ,
    ) as process:
        assert process.stdout is not None
        owner = process.stdout.readline().strip()
        assert process.stdout.readline() == "within\n"
        with pytest.raises(Busy), heir.transaction():
            pass
        process.send_signal(signal.SIGKILL)
        process.wait(10)
    with heir.transaction():
        account = heir.account(1.0, EPOCH)
        assert (account.blocked_until, account.gap) == (77.0, 0.2)
        assert [(taken.owner, taken.at) for taken in heir.unanswered()] == [(owner, 5.0)]
        assert [ticket.owner for ticket in heir.tickets()] == [owner]
        assert heir.bury(owner, 8.0)
        assert heir.unanswered() == []
        assert heir.tickets() == []
        assert heir.held(7.5, 0.0) == 1
    heir.close()


def test_a_ledger_opened_by_two_is_one(ledger: Engine, rows: Slots) -> None:
    again = create_engine(ledger.url)
    other = Slots(again, "a")
    with rows.transaction():
        rows.take(1.0)
    with other.transaction():
        assert [taken.owner for taken in other.unanswered()] == [rows.owner]
    other.close()
    again.dispose()
    rows.close()
