"""Here: connections to a PostgreSQL server, what fails there, and waiting until it can be reached.

Not here: what is done in transactions (engine), the session that holds locks (server_session).
"""

import logging
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from sqlalchemy import Engine, ExceptionContext, create_engine, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, OperationalError

from pipelines.core import stop
from pipelines.core.errors import ConfigurationError, StorageFailed

# Each side notices within 40 seconds that the other one is gone. By default, a machine without
# power would keep its locks for two hours.
KEEPALIVE: Final = {
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "40000",
}
SERVER_KEEPALIVE: Final = (
    "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3"
    " -c tcp_user_timeout=40000"
)
OF_FILE: Final = "Make room, correct the permissions or restore the file from a backup"
OF_SERVER: Final = "Start the PostgreSQL server, or correct metadata_url"
POLL_SECONDS: Final = 0.25
T = TypeVar("T")
logger = logging.getLogger(__name__)


def postgresql_engine(url: str, isolation_level: str, settings: str, **options: Any) -> Engine:
    """Return an engine for a server, with its settings (`-c name=value`) for each session.

    Raises ConfigurationError for a URL that cannot be used.
    """
    _require_encoded(url)
    try:
        # SQLAlchemy's own default is a driver that is not maintained any more.
        driver = make_url(url).set(drivername="postgresql+psycopg")
        given = {name: str(value) for name, value in driver.query.items()}
        query = {**KEEPALIVE, **given}
        query["options"] = f"{SERVER_KEEPALIVE} {given.get('options', '')} {settings}"
        return create_engine(driver.set(query=query), isolation_level=isolation_level, **options)
    except (ArgumentError, ImportError) as error:
        raise ConfigurationError(
            "The setting metadata_url is not a PostgreSQL URL, or the package psycopg is not "
            "installed. Nothing was read or written.",
            "Set metadata_url to postgresql://user@host/database and install `psycopg`.",
        ) from error


def _require_encoded(url: str) -> None:
    """Raise ConfigurationError for a password that ends the address, so that messages show it."""
    address = url.partition("://")[2].partition("?")[0]
    authority, _slash, database = address.partition("/")
    if authority.count("@") > 1 or "@" in database:
        raise ConfigurationError(
            "The setting metadata_url has more than one @ in its address, or one after a /. "
            "Nothing was read or written.",
            "If the password contains @, / or :, write %40, %2F or %3A.",
        )


def translate_error(context: ExceptionContext) -> None:
    """Raise StorageFailed for what a disk, a server or another process does; not for defects."""
    error = context.original_exception
    is_storage = type(context.sqlalchemy_exception) in {OperationalError, DatabaseError}
    is_defect = getattr(error, "sqlite_errorname", "") == "SQLITE_ERROR"
    if is_storage and not is_defect and context.engine is not None:
        remedy = OF_FILE if context.engine.dialect.name == "sqlite" else OF_SERVER
        raise storage_failed(str(context.engine.url.database), str(error), remedy) from error


def storage_failed(place: str, reason: str, remedy: str = OF_FILE) -> StorageFailed:
    """Return the error for a metadata database that cannot be used, and what to do first."""
    return StorageFailed(
        f"The metadata database {place} cannot be used: {reason}. Pages that were read are kept; "
        "analysts still see the published version.",
        f"{remedy}, then run `partner-sync sync` to resume.",
    )


def when_reachable(act: Callable[[], T], seconds: float) -> T:
    """Return what `act` returns. If it raises StorageFailed, try again for so many seconds.

    It must have no effect where it fails. A server that is restarted is away for some seconds.
    """
    ends = time.monotonic() + seconds
    is_noted = False
    while True:
        try:
            return act()
        except StorageFailed as error:
            if time.monotonic() >= ends:
                raise
            if not is_noted:
                logger.warning("%s Trying again for %.0f seconds.", error, seconds)
                is_noted = True
        stop.raise_if_requested()
        time.sleep(POLL_SECONDS)
