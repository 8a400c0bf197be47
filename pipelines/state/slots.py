"""The rows of a shared request budget: an actor's account, its slots and its queue.

Only rows: what they mean for the next request is `api/budget.py`, and where they are kept is a
desk's: a file of this machine, or a server that several machines share. Everything happens inside
`transaction`, one process at a time: the actor's few rows are read when it begins.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime
from math import inf
from typing import NamedTuple

from sqlalchemy import Engine, select

from pipelines.errors import StorageFailed
from pipelines.state.desk import ACCOUNT, Busy, Desk, Kept, Slot, Ticket
from pipelines.state.desk_of_file import FileDesk
from pipelines.state.desk_of_server import ServerDesk
from pipelines.state.tables import BUDGETS

LOST_FOR = 30.0  # seconds in which a request without an answer may still arrive
SAVE = (
    f"INSERT INTO budgets ({', '.join(ACCOUNT)}, actor) VALUES ({'?, ' * len(ACCOUNT)}?) ON "
    f"CONFLICT (actor) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in ACCOUNT)}"
)
TAKE = (
    "INSERT INTO slots (number, actor, owner, taken_at, credit, lost) VALUES (?, ?, ?, ?, 0, false)"
)
ANSWER = "UPDATE slots SET answered_at = ?, credit = ?, lost = ? WHERE number = ?"
SWEEP = "DELETE FROM slots WHERE actor = ? AND answered_at < ? AND (NOT lost OR answered_at < ?)"
QUEUE = "INSERT INTO tickets (number, actor, owner, lane, looks_at) VALUES (?, ?, ?, ?, ?)"
SET_BACK = 1.0  # seconds; less is what two machines may differ in what they know of one clock


@dataclass(frozen=True)
class Account:
    """What is known of an actor's budget; columns of the table `budgets`, in seconds."""

    boot: str
    learned: int | None = None
    learned_at: float = 0.0
    blocked_until: float = 0.0
    blocked_to: float = 0.0
    gap: float = 0.0
    hold: float = 0.0
    ease_at: float = 0.0
    incident_at: float = 0.0
    sent_at: float = 0.0
    turn: float = 0.0
    nightly: float = 0.0
    adhoc: float = 0.0
    foreign_uses: int = 0
    foreign_at: float = 0.0
    reserve: int = 0
    reserve_at: float = 0.0
    peak: int = 0
    peak_at: float = 0.0


class Taken(NamedTuple):
    """A slot that a request holds."""

    number: int
    owner: str
    at: float


def _desk(ledger: Engine | None, actor: str) -> Desk:
    if ledger is not None and ledger.dialect.name == "postgresql":
        return ServerDesk(ledger, actor)
    return FileDesk(ledger, actor)


class Slots:
    """The rows of one actor, as one process of those that share them sees them."""

    def __init__(self, ledger: Engine | None, actor: str) -> None:
        self._actor = actor
        self.desk = _desk(ledger, actor)
        self._kept = Kept(None, [], [])

    @property
    def owner(self) -> str:
        """The name of this process among those that share."""
        return self.desk.owner

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Keep every other process out; raise Busy where one is in, StorageFailed in words."""
        with self.desk.transaction() as kept:
            self._kept = kept
            yield

    def returned(self) -> bool:
        """Say, once, that this process was away, and what it knew may be lost."""
        returned, self.desk.returned = self.desk.returned, False
        return returned

    def account(self, now: float, wall: datetime) -> Account:
        """Return the account; after a reboot the old times are void, but for a Retry-After."""
        if self._kept.account is None:
            return Account(self.desk.boot)
        account = Account(*self._kept.account)  # type: ignore[arg-type]
        if account.boot == self.desk.boot:
            ahead = account.sent_at - now
            return self._set_back(account, ahead) if ahead > SET_BACK else account
        for table in ("slots", "tickets"):
            self.desk.write(f"DELETE FROM {table} WHERE actor = ?", self._actor)
        self._kept.slots, self._kept.tickets = [], []
        return replace(
            account,
            boot=self.desk.boot,
            learned_at=0.0,
            blocked_until=now + max(0.0, account.blocked_to - wall.timestamp()),
            ease_at=now + account.hold,
            incident_at=0.0,
            sent_at=0.0,
            reserve=0,
            reserve_at=0.0,
            peak=0,
            peak_at=0.0,
        )

    def _set_back(self, account: Account, ahead: float) -> Account:
        """Move all times by as much as a server's clock was set back at least."""
        for slot in self._kept.slots:
            slot.taken_at -= ahead
            slot.answered_at = None if slot.answered_at is None else slot.answered_at - ahead
        moved = "UPDATE slots SET taken_at = taken_at - ?, answered_at = answered_at - ?"
        self.desk.write(f"{moved} WHERE actor = ?", ahead, ahead, self._actor)
        account = replace(
            account,
            learned_at=account.learned_at - ahead,
            blocked_until=account.blocked_until - ahead,
            ease_at=account.ease_at - ahead,
            incident_at=account.incident_at - ahead,
            sent_at=account.sent_at - ahead,
            reserve_at=account.reserve_at - ahead,
            peak_at=account.peak_at - ahead,
        )
        self.save(account)
        return account

    def save(self, account: Account) -> None:
        """Keep the account."""
        self._kept.account = astuple(account)
        self.desk.write(SAVE, *self._kept.account, self._actor)

    def take(self, now: float) -> Taken:
        """Take a slot; the answer is to come."""
        slot = Slot(self.desk.number("slots"), self.owner, now, None, 0.0, lost=False)
        self._kept.slots.append(slot)
        self.desk.write(TAKE, slot.number, self._actor, self.owner, now)
        return Taken(slot.number, slot.owner, now)

    def answer(self, taken: Taken, at: float, credit: float, *, lost: bool) -> None:
        """Note when a slot's request was answered, or given up."""
        for slot in self._kept.slots:
            if slot.answered_at is None and (slot.number, slot.owner) == taken[:2]:
                slot.answered_at, slot.credit, slot.lost = at, credit, lost
                self.desk.write(ANSWER, at, credit, lost, slot.number)

    def unanswered(self) -> list[Taken]:
        """Return the slots whose requests are on their way, whosever they are."""
        return [
            Taken(slot.number, slot.owner, slot.taken_at)
            for slot in self._kept.slots
            if slot.answered_at is None
        ]

    def held(self, since: float, credit: float) -> int:
        """Count the slots that were answered later than `since`, less what their path credits."""
        return len(self._releases(since, credit))

    def release(self, since: float, credit: float, place: int) -> float:
        """Return the moment of answer, less credit, of the slot at a place among those held."""
        return self._releases(since, credit)[place]

    def _releases(self, since: float, credit: float) -> list[float]:
        """Return when each slot that is held was answered, less its credit; of others the least."""
        releases = []
        for slot in self._kept.slots:
            if slot.answered_at is not None:
                proved = 0.0 if slot.lost else self._proved(slot, credit)
                releases.append(slot.answered_at - proved)
        return sorted(release for release in releases if release > since)

    def least_credit(self) -> float:
        """Return the least that the path was worth to others of late; 0 where nobody knows it."""
        others = (slot.credit for slot in self._kept.slots if slot.owner != self.owner)
        return min((credit for credit in others if credit > 0), default=0.0)

    def explained(self, since: float, until: float = inf, credit: float = 0.0) -> int:
        """Count our requests that may have arrived from `since` to `until`.

        `credit`: the seconds by which the path proves arrivals to be earlier than their answers.
        """
        return sum(
            slot.taken_at <= until and self._latest_arrival(slot, credit) >= since
            for slot in self._kept.slots
        )

    def _latest_arrival(self, slot: Slot, credit: float) -> float:
        """Return the latest moment at which a slot's request may have arrived."""
        if slot.answered_at is None:
            return inf
        if slot.lost:
            return slot.answered_at + LOST_FOR
        return slot.answered_at - self._proved(slot, credit)

    def _proved(self, slot: Slot, credit: float) -> float:
        """Return what the path is worth: for another process's slot the lesser of the two."""
        return credit if slot.owner == self.owner else min(credit, slot.credit)

    def sweep(self, before: float) -> None:
        """Forget the slots that were answered before."""
        left = [
            slot
            for slot in self._kept.slots
            if slot.answered_at is None or slot.answered_at >= before - LOST_FOR * slot.lost
        ]
        if len(left) < len(self._kept.slots):
            self._kept.slots = left
            self.desk.write(SWEEP, self._actor, before, before - LOST_FOR)

    def tickets(self) -> list[Ticket]:
        """Return who waits."""
        return list(self._kept.tickets)

    def queue(self, lane: str, looks_at: float) -> None:
        """Wait behind everybody in a lane."""
        self.leave()
        ticket = Ticket(self.desk.number("tickets"), self.owner, lane, looks_at)
        self._kept.tickets.append(ticket)
        self.desk.write(QUEUE, ticket.number, self._actor, *ticket[1:])

    def rest(self, looks_at: float) -> None:
        """Keep the place, and say when we look again."""
        self._kept.tickets = [
            each._replace(looks_at=looks_at) if each.owner == self.owner else each
            for each in self._kept.tickets
        ]
        self.desk.write("UPDATE tickets SET looks_at = ? WHERE owner = ?", looks_at, self.owner)

    def leave(self) -> None:
        """Wait no more."""
        self._dismiss(self.owner)

    def _dismiss(self, owner: str) -> None:
        left = [each for each in self._kept.tickets if each.owner != owner]
        if len(left) < len(self._kept.tickets):
            self._kept.tickets = left
            self.desk.write("DELETE FROM tickets WHERE owner = ?", owner)

    def forgo(self, taken: Iterable[Taken], before: float, now: float) -> None:
        """Free what others took before a moment and hold still, as if answered now: they hang."""
        for each in taken:
            if each.at < before and each.owner != self.owner:
                self.answer(each, now, 0.0, lost=True)

    def bury(self, owner: str, now: float) -> bool:
        """Free a dead process's place at once, its slots as if answered now; say if it was dead."""
        if self.desk.lives(owner):
            return False
        for each in self.unanswered():
            if each.owner == owner:
                self.answer(each, now, 0.0, lost=True)
        self._dismiss(owner)
        return True

    def close(self) -> None:
        """Leave for good; where that cannot be written, others see that we are gone."""
        with suppress(Busy, StorageFailed), self.transaction():
            self.leave()
        self.desk.close()


@dataclass(frozen=True)
class ForeignUse:
    """Somebody else used an actor's budget: how many answers showed it, and when last (UTC)."""

    actor: str
    answers: int
    last_at: datetime


def foreign_uses(ledger: Engine) -> list[ForeignUse]:
    """Return which actors somebody else uses too, as far as answers showed."""
    columns = BUDGETS.c.actor, BUDGETS.c.foreign_uses, BUDGETS.c.foreign_at
    query = select(*columns).where(BUDGETS.c.foreign_uses > 0).order_by(BUDGETS.c.actor)
    with ledger.connect() as rows:
        return [
            ForeignUse(actor, answers, datetime.fromtimestamp(at, UTC))
            for actor, answers, at in rows.execute(query)
        ]
