"""Here: one session of this process on PostgreSQL, which holds its name and its locks.

They are advisory locks of the session. The server frees them when the session ends: with the
process, or when the connection is lost. Not here: locks in files, and who waits (locks).
"""

import math
import os
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from sqlalchemy import Connection, Engine, Row, TextClause, text

from pipelines.core.errors import StorageFailed
from pipelines.metadata.processes import HELD_KEYS, lock_key, this_command, this_process
from pipelines.metadata.server import when_reachable

# Seconds between two looks whether the name is still held. If the session is lost, others may take
# this process for dead for so long.
LOOK_SECONDS: Final = 2.0
# The server shows 63 bytes. An idle session is never ended for being idle.
BEGIN: Final = text(
    "SELECT set_config('application_name', :name, false),"
    " set_config('idle_session_timeout', '0', false), pg_advisory_lock_shared(:key)"
)
LOOK: Final = text("SELECT 1")
TAKE: Final = text("SELECT pg_try_advisory_lock(hashtextextended(current_schema(), :key))")
FREE: Final = text("SELECT pg_advisory_unlock(hashtextextended(current_schema(), :key))")
IS_HELD: Final = text(f"""
SELECT EXISTS (
    SELECT FROM {HELD_KEYS}
    WHERE held.pid = pg_backend_pid() AND held.key = hashtextextended(current_schema(), :key)
) AS is_held
""")
HOLDER: Final = text(f"""
SELECT activity.application_name,
    to_char(activity.backend_start AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') AS since
FROM {HELD_KEYS} JOIN pg_stat_activity AS activity USING (pid)
WHERE held.key = hashtextextended(current_schema(), :key)
""")


class ServerSession:
    """The session of this process on one server. A lost one is followed by another one.

    What was taken in a session that was lost stays lost: see `holds`. While a session begins, the
    server may be away for `patience` seconds.
    """

    def __init__(self, engine: Engine, patience: float) -> None:
        self._engine = engine
        self._patience = patience
        # Reading and an early build are in different threads.
        self._guard = threading.RLock()
        self._connection: Connection | None = None
        self._looked_at = -math.inf
        self._taken = dict[str, Connection | None]()  # by name, where it was taken

    def this_process(self) -> str:
        """Return the name of this process, and hold it: so others see that it lives.

        Raises StorageFailed.
        """
        with self._guard:
            if time.monotonic() - self._looked_at > LOOK_SECONDS:
                self._execute(LOOK)
                self._looked_at = time.monotonic()
        return this_process()

    def take(self, name: str) -> bool:
        """Try to take a lock; return whether it is ours now. Raises StorageFailed."""
        with self._guard:
            # A session would get a lock that it has a second time.
            if name in self._taken:
                return False
            ((is_taken,),) = self._execute(TAKE, name)
            if is_taken:
                self._taken[name] = self._connection
            return bool(is_taken)

    def holds(self, name: str) -> bool:
        """Return whether a lock that was taken is still ours."""
        with self._guard:
            if not self._is_same_session(name):
                return False
            rows = self._try(IS_HELD, name)
            return rows is not None and bool(rows[0].is_held)

    def free(self, name: str) -> None:
        """Free a lock that was taken. If its session was lost, the server has done so."""
        with self._guard:
            if self._is_same_session(name):
                self._try(FREE, name)
            del self._taken[name]

    def holder(self, name: str) -> str:
        """Return who holds a lock, as a part of a sentence. Raises StorageFailed."""
        with self._guard:
            rows = self._execute(HOLDER, name)
        for row in rows:
            # Sessions of another user of the server have no name here.
            if row.application_name:
                return f"held by {row.application_name}, connected since {row.since} UTC"
        return "held by a process of another machine"

    def _is_same_session(self, name: str) -> bool:
        return self._connection is not None and self._taken.get(name) is self._connection

    def _execute(self, statement: TextClause, name: str = "") -> Sequence[Row[Any]]:
        """Execute a statement about a lock. If the session was lost, begin another one."""
        rows = self._try(statement, name)
        if rows is not None:
            return rows
        self._connection = when_reachable(self._begin, self._patience)
        return self._connection.execute(statement, {"key": lock_key(name)}).all()

    def _begin(self) -> Connection:
        """Begin a session that holds the name of this process."""
        connection = self._engine.connect()
        process = f"process {os.getpid()} on {socket.gethostname()} (`{this_command()}`)"
        try:
            connection.execute(BEGIN, {"name": process, "key": lock_key(this_process())})
        except BaseException:
            connection.close()
            raise
        return connection

    def _try(self, statement: TextClause, name: str) -> Sequence[Row[Any]] | None:
        """Execute a statement about a lock; None, and no session, if the session was lost."""
        if self._connection is None:
            return None
        with suppress(StorageFailed):
            return self._connection.execute(statement, {"key": lock_key(name)}).all()
        self._connection.close()
        self._connection = None
        return None
