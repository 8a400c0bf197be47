"""A shared request budget in PostgreSQL, for processes of several machines.

A transaction is two messages: one locks the row of the actor's account and brings its rows, one
writes and commits. Times are seconds of the server's clock. Presence is an advisory lock of the
session: the server drops it when the process ends, or its machine (after half a minute).
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import inf
from typing import Any
from uuid import uuid4

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from pipelines.errors import StorageFailed
from pipelines.state.desk import ACCOUNT, SLOT, TICKET, Busy, Kept, Slot, Ticket

LOCKED = "55P03"  # lock_not_available
# Commits may be lost with a server that is killed, half a second of them: who comes back from
# that keeps everybody still for a window (the rule's). A process that hangs with the lock loses it.
SESSION = """
SET lock_timeout = '250ms'; SET idle_in_transaction_session_timeout = '5s';
SET synchronous_commit = off; SET tcp_keepalives_idle = 15;
SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3
"""
PRESENT = "('x' || substr(owner, 1, 16))::bit(64)::bigint"
DEAD = f"""
SELECT owner FROM (
    SELECT owner FROM slots WHERE actor = $1 AND answered_at IS NULL
    UNION SELECT owner FROM tickets WHERE actor = $1
) AS owners WHERE owner <> $2 AND CASE WHEN pg_try_advisory_lock_shared({PRESENT})
    THEN pg_advisory_unlock_shared({PRESENT}) ELSE false END
"""
PREPARE = f"""
PREPARE hold (text) AS SELECT actor FROM budgets WHERE actor = $1 FOR UPDATE;
PREPARE look (text, text) AS SELECT extract(epoch FROM clock_timestamp())::float8,
    (SELECT json_build_array({", ".join(ACCOUNT)}) FROM budgets WHERE actor = $1),
    (SELECT json_agg(json_build_array({", ".join(SLOT)})) FROM slots WHERE actor = $1),
    (SELECT json_agg(json_build_array({", ".join(TICKET)})) FROM tickets WHERE actor = $1),
    (SELECT json_agg(owner) FROM ({DEAD}) AS dead),
    nextval(pg_get_serial_sequence('slots', 'number')),
    nextval(pg_get_serial_sequence('tickets', 'number'))
"""
BEGIN = "BEGIN; EXECUTE hold (%s); EXECUTE look (%s, %s)"
OPEN = (
    f"INSERT INTO budgets (actor, {', '.join(ACCOUNT)}) "
    f"VALUES (%s, %s, NULL{', 0' * (len(ACCOUNT) - 2)}) ON CONFLICT DO NOTHING"
)
DRIFT = 0.0005  # the most that a clock which is being set right runs faster or slower
AWAY = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0)  # seconds before each try to reach it


@dataclass
class Ahead:
    """What the server's clock is ahead of this process's, in seconds: at least and at most."""

    least: float = -inf
    most: float = inf
    heard: float = 0.0

    def hear(self, asked: float, told: float, answered: float) -> None:
        """Learn from what the server told between two moments of this process's clock."""
        drift = DRIFT * (answered - self.heard)
        self.least = max(self.least - drift, told - answered)
        self.most = min(self.most + drift, told - asked)
        if self.least > self.most:  # one of the clocks was set
            self.least, self.most = told - answered, told - asked
        self.heard = answered


class ServerDesk:
    """A place at one actor's rows in PostgreSQL."""

    boot = "server"  # its clock goes on
    poll = 0.01
    remote = True

    def __init__(self, ledger: Engine, actor: str) -> None:
        self.owner = ""
        self.returned = False
        self._ledger = ledger
        self._actor = actor
        self._driver: Any = ledger.dialect.loaded_dbapi
        self._connection: Any = None
        self._ahead = Ahead()
        self._away: tuple[float, ...] = AWAY
        self._dead: set[str] = set()
        self._writes: list[bytes] = []
        self._numbers: dict[str, int] = {}

    @contextmanager
    def transaction(self) -> Iterator[Kept]:
        """Keep every other process out; raise Busy where one is in, StorageFailed in words."""
        kept = self._enter()
        try:
            yield kept
            self._sent(b";".join([*self._writes, b"COMMIT"]))
        except (self._driver.OperationalError, self._driver.InterfaceError):
            self._drop()  # whether it was committed, nobody knows: our old name is buried
            raise Busy from None
        except BaseException:
            with suppress(self._driver.Error):
                self._sent("ROLLBACK")
            raise

    def _enter(self) -> Kept:
        """Lock the account and read the rows; try for a minute to reach a server that is away."""
        for wait in self._away:
            time.sleep(wait)
            try:
                if self._connection is None:
                    self._open()
                return self._looked()
            except (self._driver.OperationalError, self._driver.InterfaceError) as error:
                if getattr(error, "pgcode", None) == LOCKED:
                    self._sent("ROLLBACK")
                    raise Busy from None
                self._drop()
            except (DBAPIError, StorageFailed):
                self._drop()
        raise StorageFailed(
            "the state database (PostgreSQL) cannot be reached, so no request may be sent: others "
            "could be sending. What was read until now is kept; run sync again when it is back: "
            "it goes on."
        )

    def _looked(self) -> Kept:
        self._writes.clear()
        asked = time.monotonic()
        cursor = self._sent(BEGIN, (self._actor, self._actor, self.owner))
        told, account, slots, tickets, dead, slot, ticket = cursor.fetchone()
        self._ahead.hear(asked, told, time.monotonic())
        self._dead = set(dead or ())
        self._numbers = {"slots": slot, "tickets": ticket}
        if account is None:  # nothing was there to lock
            self._sent("ROLLBACK")
            self._sent(OPEN, (self._actor, self.boot))
            return self._looked()
        return Kept(
            tuple(account),
            [Slot(*row) for row in slots or ()],
            [Ticket(*row) for row in tickets or ()],
        )

    def _open(self) -> None:
        pooled = self._ledger.raw_connection()
        self._connection = pooled.driver_connection
        pooled.detach()
        self._connection.autocommit = True  # transactions begin and end where we say so
        self.returned = bool(self.owner)
        # Another name each time: the server may not know yet that the old session is over.
        self.owner = uuid4().hex
        self._sent(SESSION)
        self._sent(PREPARE)
        self._sent(
            f"SELECT pg_advisory_lock({PRESENT}) FROM (SELECT %s AS owner) AS our", (self.owner,)
        )
        self._sent(OPEN, (self._actor, self.boot))

    def _sent(self, statements: str | bytes, values: tuple[object, ...] | None = None) -> Any:
        cursor = self._connection.cursor()
        cursor.execute(statements, values)
        return cursor

    def _drop(self) -> None:
        if self._connection is not None:
            with suppress(self._driver.Error):
                self._connection.close()
            self._connection = None

    def write(self, statement: str, *values: object) -> None:
        """Change rows, at the end of the transaction."""
        cursor = self._connection.cursor()
        self._writes.append(cursor.mogrify(statement.replace("?", "%s"), values))

    def number(self, table: str) -> int:
        """Return the next of the table's numbers."""
        if table in self._numbers:
            return self._numbers.pop(table)
        query = f"SELECT nextval(pg_get_serial_sequence('{table}', 'number'))"
        return int(self._sent(query).fetchone()[0])

    def lives(self, owner: str) -> bool:
        """Say whether a process's session held its lock when the transaction began."""
        return owner not in self._dead

    def earliest(self, moment: float) -> float:
        """Return the least that the server's clock may show at a moment of ours."""
        return moment + self._ahead.least

    def latest(self, moment: float) -> float:
        """Return the most that the server's clock may show at a moment of ours."""
        return moment + self._ahead.most

    def hurry(self, seconds: float) -> None:
        """Try once to reach a server that is away, and wait so long for others."""
        self._away = (0.0,)
        with suppress(self._driver.Error, AttributeError):
            self._sent("SET lock_timeout = %s", (f"{seconds * 1000:.0f}ms",))

    def close(self) -> None:
        """Leave for good: the lock ends with the session."""
        self._drop()

    def die(self) -> None:
        """End as by kill -9."""
        self._drop()
