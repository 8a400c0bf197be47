"""Dagster's own PostgreSQL storage with connections that last: `deploy/distributed/dagster.yaml`.

Dagster opens one for each statement, so that no instance holds any: 450 for a run of ours, 22 ms of
PostgreSQL's processor time each (docs/decisions.md). Here a process keeps as many as it wants at a
time, five at most: a step two, the daemon one for each of its threads. Only who installed the extra
`distributed` can import it.
"""

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

from dagster._serdes import ConfigurableClassData
from dagster_postgres import DagsterPostgresStorage
from dagster_postgres.utils import pg_url_from_config
from sqlalchemy import Engine, create_engine

_FOUND = set[str]()  # where this process has made sure already that there are tables


class PooledStorage(DagsterPostgresStorage):
    """What `storage: postgres:` is, configured the same."""

    def __init__(
        self, postgres_url: str, inst_data: ConfigurableClassData | None, *, tables: bool
    ) -> None:
        """Let the three storages of an instance have the engine of their process."""
        super().__init__(postgres_url, tables and postgres_url not in _FOUND, inst_data)
        _FOUND.add(postgres_url)
        for storage in (self.run_storage, self.event_log_storage, self.schedule_storage):
            # Dagster offers it to its web server alone, and there without looking whether a
            # connection still lives: after a restart of PostgreSQL a step would fail.
            storage._engine = _engine(postgres_url, os.getpid())  # noqa: SLF001

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> "PooledStorage":
        """Return the storage of an instance."""
        tables = bool(config_value.get("should_autocreate_tables", True))
        return cls(pg_url_from_config(config_value), inst_data, tables=tables)


@cache
def _engine(url: str, process: int) -> Engine:
    """Return the engine of a process: what a fork has of its parent's belongs to the parent."""
    del process
    return create_engine(url, isolation_level="AUTOCOMMIT", max_overflow=-1, pool_pre_ping=True)
