"""The rows of a shared request budget: an actor's account, its slots and its queue.

Only rows: what they mean for the next request is `api/budget.py`. Plain sqlite3 on a connection of
its own, because a slot is taken on the event loop: 0.1 ms instead of 0.5, and commits that outlive
the process though not a power cut (after which the times mean nothing anyway). Everything happens
inside `transaction`, one process at a time.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Engine, select
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from pipelines.state import database
from pipelines.state.presence import Presence
from pipelines.state.tables import BUDGETS, SLOTS, TICKETS

BOOT = Path("/proc/sys/kernel/random/boot_id")
LONGEST_BLOCKING = 0.02  # seconds that another's commit may hold up the event loop
LOST_FOR = 30.0  # seconds in which a request without an answer may still arrive
RELEASE = (
    "answered_at - CASE WHEN lost THEN 0 WHEN owner = :owner THEN :credit "
    "ELSE min(:credit, credit) END"
)
ANSWERED = "actor = :actor AND answered_at > :since"
TABLES = (BUDGETS, SLOTS, TICKETS)
DDL = [str(CreateTable(table).compile(dialect=sqlite.dialect())) for table in TABLES] + [
    str(CreateIndex(index).compile(dialect=sqlite.dialect())) for index in SLOTS.indexes
]


class Busy(Exception):
    """Another process writes the state database just now."""


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


COLUMNS = [field.name for field in fields(Account)]
READ = f"SELECT {', '.join(COLUMNS)} FROM budgets WHERE actor = ?"
SAVE = (
    f"INSERT OR REPLACE INTO budgets ({', '.join(COLUMNS)}, actor) VALUES ({'?, ' * len(COLUMNS)}?)"
)


class Taken(NamedTuple):
    """A slot that a request holds."""

    number: int
    owner: str
    at: float


class Ticket(NamedTuple):
    """A place in the queue; a process has one, however many of its requests wait."""

    number: float
    owner: str
    lane: str
    looks_at: float


class Slots:
    """The rows of one actor, as one process of those that share them sees them."""

    def __init__(self, ledger: Engine | None, actor: str) -> None:
        file = str(ledger.url.database) if ledger else ":memory:"
        self._actor = actor
        self._sql = sqlite3.connect(file, timeout=LONGEST_BLOCKING, isolation_level=None)
        self._sql.execute("PRAGMA synchronous = NORMAL")
        # Whoever writes the ledger moves these pages too, off the event loop.
        self._sql.execute("PRAGMA wal_autocheckpoint = 0")
        if ledger is None:
            for statement in DDL:
                self._sql.execute(statement)
        self._presence = Presence(Path(file).parent / "present" if ledger else None)
        self._boot = BOOT.read_text(encoding="ascii").strip() if BOOT.exists() else ""

    @property
    def owner(self) -> str:
        """The name of this process among those that share."""
        return self._presence.name

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Keep every other process out; raise Busy where one is in, StorageFailed for the disk."""
        try:
            self._sql.execute("BEGIN IMMEDIATE")
            with self._sql:  # commits, or rolls back
                yield
        except sqlite3.OperationalError as error:
            code = database.trouble(error)
            if code == sqlite3.SQLITE_BUSY:
                raise Busy from None
            raise (database.in_words(error) if code else error) from None

    def account(self, now: float, wall: datetime) -> Account:
        """Return the account; after a reboot the old times are void, but for a Retry-After."""
        row = self._sql.execute(READ, (self._actor,)).fetchone()
        if row is None:
            return Account(self._boot)
        account = Account(*row)
        if account.boot == self._boot:
            return account
        for table in ("slots", "tickets"):
            self._sql.execute(f"DELETE FROM {table} WHERE actor = ?", (self._actor,))
        return replace(
            account,
            boot=self._boot,
            learned_at=0.0,
            blocked_until=now + max(0.0, account.blocked_to - wall.timestamp()),
            ease_at=now + account.hold,
            incident_at=0.0,
            sent_at=0.0,
        )

    def save(self, account: Account) -> None:
        """Keep the account."""
        self._sql.execute(SAVE, (*astuple(account), self._actor))

    def take(self, now: float) -> Taken:
        """Take a slot; the answer is to come."""
        insert = "INSERT INTO slots (actor, owner, taken_at, credit, lost) VALUES (?, ?, ?, 0, 0)"
        done = self._sql.execute(insert, (self._actor, self.owner, now))
        return Taken(done.lastrowid or 0, self.owner, now)

    def answer(self, taken: Taken, at: float, credit: float, *, lost: bool) -> None:
        """Note when a slot's request was answered, or given up."""
        update = "UPDATE slots SET answered_at = ?, credit = ?, lost = ? WHERE answered_at IS NULL"
        self._sql.execute(
            f"{update} AND number = ? AND owner = ? AND taken_at = ?", (at, credit, lost, *taken)
        )

    def unanswered(self) -> list[Taken]:
        """Return the slots whose requests are on their way, whosever they are."""
        query = "SELECT number, owner, taken_at FROM slots WHERE actor = ? AND answered_at IS NULL"
        return [Taken(*row) for row in self._sql.execute(query, (self._actor,))]

    def held(self, since: float, credit: float) -> int:
        """Count the slots that were answered later than `since`, less what their path credits."""
        query = f"SELECT count(*) FROM slots WHERE {ANSWERED} AND {RELEASE} > :since"
        return int(self._sql.execute(query, self._asked(since, credit)).fetchone()[0])

    def release(self, since: float, credit: float, place: int) -> float:
        """Return the moment of answer, less credit, of the slot at a place among those held."""
        query = (
            f"SELECT {RELEASE} AS release FROM slots WHERE {ANSWERED} AND release > :since "
            f"ORDER BY release LIMIT 1 OFFSET {place:d}"
        )
        return float(self._sql.execute(query, self._asked(since, credit)).fetchone()[0])

    def least_credit(self) -> float:
        """Return the least that the path was worth to others of late; 0 where nobody knows it."""
        query = "SELECT min(credit) FROM slots WHERE actor = ? AND credit > 0 AND owner != ?"
        return float(self._sql.execute(query, (self._actor, self.owner)).fetchone()[0] or 0.0)

    def explained(self, since: float) -> int:
        """Count our requests that the service may have in a window that begins at `since`."""
        query = (
            "SELECT count(*) FROM slots WHERE actor = ? AND (answered_at IS NULL "
            "OR answered_at >= CASE WHEN lost THEN ? ELSE ? END)"
        )
        asked = (self._actor, since - LOST_FOR, since)
        return int(self._sql.execute(query, asked).fetchone()[0])

    def sweep(self, before: float) -> None:
        """Forget the slots that were answered before."""
        delete = (
            "DELETE FROM slots WHERE actor = ? AND answered_at < ? "
            "AND (NOT lost OR answered_at < ?)"
        )
        self._sql.execute(delete, (self._actor, before, before - LOST_FOR))

    def tickets(self) -> list[Ticket]:
        """Return who waits."""
        query = "SELECT number, owner, lane, looks_at FROM tickets WHERE actor = ?"
        return [Ticket(*row) for row in self._sql.execute(query, (self._actor,))]

    def queue(self, lane: str, looks_at: float) -> None:
        """Wait behind everybody in a lane."""
        insert = "INSERT OR REPLACE INTO tickets (actor, owner, lane, looks_at) VALUES (?, ?, ?, ?)"
        self._sql.execute(insert, (self._actor, self.owner, lane, looks_at))

    def rest(self, looks_at: float) -> None:
        """Keep the place, and say when we look again."""
        update = "UPDATE tickets SET looks_at = ? WHERE owner = ?"
        self._sql.execute(update, (looks_at, self.owner))

    def leave(self) -> None:
        """Wait no more."""
        self._sql.execute("DELETE FROM tickets WHERE owner = ?", (self.owner,))

    def forgo(self, taken: Iterable[Taken], before: float, now: float) -> None:
        """Free what others took before a moment and hold still, as if answered now: they hang."""
        for each in taken:
            if each.at < before and each.owner != self.owner:
                self.answer(each, now, 0.0, lost=True)

    def bury(self, owner: str, now: float) -> bool:
        """Free a dead process's place at once, its slots as if answered now; say if it was dead."""
        if self._presence.lives(owner):
            return False
        update = (
            "UPDATE slots SET answered_at = ?, lost = 1 WHERE owner = ? AND answered_at IS NULL"
        )
        self._sql.execute(update, (now, owner))
        self._sql.execute("DELETE FROM tickets WHERE owner = ?", (owner,))
        return True

    def wait_for_others(self, seconds: float = 5.0) -> None:
        """Let transactions wait where they may take their time: at the end."""
        self._sql.execute(f"PRAGMA busy_timeout = {seconds * 1000:.0f}")

    def close(self) -> None:
        """Leave for good; where that cannot be written, others see that we are gone."""
        with suppress(sqlite3.OperationalError):
            self.leave()
        self._sql.close()
        self._presence.close()

    def _asked(self, since: float, credit: float) -> dict[str, object]:
        return {"actor": self._actor, "owner": self.owner, "since": since, "credit": credit}


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
