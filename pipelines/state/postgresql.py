"""What several machines share in PostgreSQL, by its URL, and what its failures mean.

psycopg2 is loaded by SQLAlchemy where such a database is opened, and nowhere else. Not here: the
ledger's tables (database, tables), its locks (locks), the lake (warehouse).
"""

import os
import socket
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from sqlalchemy import URL, Engine, ExceptionContext, create_engine, event
from sqlalchemy.pool import ConnectionPoolEntry

from pipelines.errors import ConfigurationError, StorageFailed

# Seconds: a server that does not answer, a peer that is gone without a word. The server is told
# too: it frees the locks of a machine that lost its power after a minute, not after two hours.
PATIENCE = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
SESSION = (
    "SET tcp_keepalives_idle = 30",
    "SET tcp_keepalives_interval = 10",
    "SET tcp_keepalives_count = 3",
)
# Connection, rolled back in favour of another, resources, shut down, disk.
TROUBLE = {"08", "40", "53", "57", "58"}
READ_ONLY = "25006"
US = "partner-sync "
LOCKED = "locked"  # marks a connection that may hold a lock: nobody may have it afterwards
DATABASES = 8  # that a process keeps connections to: it has two, tests one after the other


@dataclass(frozen=True)
class Named:
    """What a database is to people, and the setting that leads to it."""

    what: str
    setting: str


LEDGER = Named("the state database", "PARTNER_SYNC_STATE")
CATALOG = Named("the lake's catalog", "PARTNER_SYNC_WAREHOUSE")


def engine(url: str | URL, named: Named = LEDGER) -> Engine:
    """Return the process's engine on a database, whose connections last; nothing is asked of it.

    Opening one takes PostgreSQL 8 ms of processor time, and a step of a run would open five. One
    that died while nobody used it is replaced before anybody does (pre-ping): after PostgreSQL was
    away the same process goes on.
    """
    return _engine(url, named, os.getpid())  # what a fork has of its parent's belongs to the parent


@lru_cache(DATABASES)
def _engine(url: str | URL, named: Named, process: int) -> Engine:
    name = f"{US}{socket.gethostname()}, process {process}"
    try:
        made = create_engine(
            url,
            max_overflow=-1,  # as many as are wanted at once: locks and presence have one each
            pool_pre_ping=True,
            connect_args={**PATIENCE, "application_name": name},
        )
    except ModuleNotFoundError:
        raise ConfigurationError(
            f"{named.setting} names a PostgreSQL, and its client is not installed: "
            "install partner-sync[distributed]"
        ) from None
    event.listen(made, "connect", _configure)
    event.listen(made, "checkin", _let_go)
    event.listen(made, "handle_error", partial(_refuse, named))
    return made


def trouble(error: BaseException | None) -> bool:
    """Tell whether an error is the server's, the network's or the disk's doing; else a defect."""
    code = getattr(error, "pgcode", None)
    if code:
        return code[:2] in TROUBLE or code == READ_ONLY
    return type(error).__name__ in {"OperationalError", "InterfaceError"}  # no answer at all


def in_words(error: BaseException, named: Named = LEDGER) -> StorageFailed:
    """Say what it means that a database cannot be reached or written."""
    said = " ".join(str(error).split()) or type(error).__name__
    return StorageFailed(
        f"{named.what} cannot be used: {said.rstrip('.')}. What was read until now is kept: see "
        f"that PostgreSQL runs and can be reached ({named.setting}), and run sync again: it goes "
        "on."
    )


def _refuse(named: Named, context: ExceptionContext) -> None:
    original = context.original_exception
    if not context.is_pre_ping and trouble(original):
        raise in_words(original, named) from None


def _let_go(_connection: object, record: ConnectionPoolEntry) -> None:
    """Close a connection that comes back marked: interrupted or forgotten, with a lock or without.

    A lock outlives the transaction, and who has the connection next would not know of it.
    """
    if record.info.pop(LOCKED, None):
        record.invalidate()


def _configure(connection: Any, _record: object) -> None:
    """Let the server notice a machine that is gone; a transaction would undo what is set."""
    connection.autocommit = True
    with connection.cursor() as cursor:
        for statement in SESSION:
            cursor.execute(statement)
    connection.autocommit = False
