"""Ends the statement of a database when the process is asked to stop."""

from contextlib import AbstractContextManager, suppress

import duckdb

from pipelines.core import stop


def ended_by_stop(database: duckdb.DuckDBPyConnection) -> AbstractContextManager[None]:
    """Let statements in the block raise duckdb.InterruptException when the process is to stop."""

    def interrupt() -> None:
        with suppress(duckdb.ConnectionException):  # it is closed already
            database.interrupt()

    return stop.woken(interrupt)
