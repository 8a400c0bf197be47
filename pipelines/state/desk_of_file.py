"""A shared request budget in the ledger's SQLite file, or in memory for one process alone.

Plain sqlite3 on a connection of its own, because a slot is taken on the event loop: 0.1 ms instead
of 0.5, and commits that outlive the process though not a power cut (after which the times, which
are seconds of CLOCK_MONOTONIC, mean nothing anyway).
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from pipelines.state import database
from pipelines.state.desk import ACCOUNT, SLOT, TICKET, Busy, Kept, Slot, Ticket
from pipelines.state.presence import Presence
from pipelines.state.tables import BUDGETS, SLOTS, TICKETS

BOOT = Path("/proc/sys/kernel/random/boot_id")
LONGEST_BLOCKING = 0.02  # seconds that another's commit may hold up the event loop
TABLES = (BUDGETS, SLOTS, TICKETS)
DDL = [str(CreateTable(table).compile(dialect=sqlite.dialect())) for table in TABLES] + [
    str(CreateIndex(index).compile(dialect=sqlite.dialect())) for index in SLOTS.indexes
]
READ = {
    table: f"SELECT {', '.join(columns)} FROM {table} WHERE actor = ?"
    for table, columns in (("budgets", ACCOUNT), ("slots", SLOT), ("tickets", TICKET))
}


class FileDesk:
    """A place at one actor's rows in a file; without a ledger the rows are this process's own."""

    poll = 0.003
    remote = False
    returned = False

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
        self.owner = self._presence.name
        self.boot = BOOT.read_text(encoding="ascii").strip() if BOOT.exists() else ""

    @contextmanager
    def transaction(self) -> Iterator[Kept]:
        """Keep every other process out; raise Busy where one is in, StorageFailed for the disk."""
        try:
            self._sql.execute("BEGIN IMMEDIATE")
            with self._sql:  # commits, or rolls back
                yield self._read()
        except sqlite3.OperationalError as error:
            code = database.trouble(error)
            if code == sqlite3.SQLITE_BUSY:
                raise Busy from None
            raise (database.in_words(error) if code else error) from None

    def _read(self) -> Kept:
        account, slots, tickets = (self._sql.execute(READ[t.name], (self._actor,)) for t in TABLES)
        return Kept(
            account.fetchone(), [Slot(*row) for row in slots], [Ticket(*row) for row in tickets]
        )

    def write(self, statement: str, *values: object) -> None:
        """Change rows, seen by others at the end of the transaction."""
        self._sql.execute(statement, values)

    def number(self, table: str) -> int:
        """Return one more than the greatest number of all actors."""
        query = f"SELECT coalesce(max(number), 0) + 1 FROM {table}"
        return int(self._sql.execute(query).fetchone()[0])

    def lives(self, owner: str) -> bool:
        """Say whether a process holds its lock file."""
        return self._presence.lives(owner)

    def earliest(self, moment: float) -> float:
        """Return the moment: every process of this machine has the same clock."""
        return moment

    latest = earliest

    def hurry(self, seconds: float) -> None:
        """Let transactions wait for others, who may be at it on the event loop no longer."""
        self._sql.execute(f"PRAGMA busy_timeout = {seconds * 1000:.0f}")

    def close(self) -> None:
        """Leave for good."""
        self._sql.close()
        self._presence.close()

    def die(self) -> None:
        """End as by kill -9: the lock goes, everything else stays as it is."""
        self._presence.drop()
        self._sql.close()
