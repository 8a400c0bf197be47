"""Keys of assets, and partitions of `raw/<stream>`: one connection on one UTC day.

Connections come from connections.toml only. The sensor `connections` makes new ones known here.
"""

from datetime import date
from typing import Final

import dagster as dg

from pipelines.config.connections import Connection
from pipelines.config.settings import Settings

SERVICE: Final = dg.AssetKey(["service"])
PUBLISHED: Final = dg.AssetKey(["published", "warehouse"])
REPORT: Final = dg.AssetKey(["reports", "finance"])
EXPORTS: Final = dg.AssetKey(["exports", "tables"])
CONNECTIONS: Final = "connections"  # name of the dynamic partitions


def raw_key(stream: str) -> dg.AssetKey:
    """Return the key of a stream's raw asset."""
    return dg.AssetKey(["raw", stream])


def table_key(stream: str) -> dg.AssetKey:
    """Return the key of a stream's table in the warehouse."""
    return dg.AssetKey(["warehouse", stream])


def reconciliation_key(table: str) -> dg.AssetKey:
    """Return the key of a table of reconciliation."""
    return dg.AssetKey(["reconciliation", table])


def connection_days(settings: Settings) -> dg.MultiPartitionsDefinition:
    """Return the partitions: connections that are known to Dagster, days up to today."""
    days = dg.DailyPartitionsDefinition(
        start_date=settings.start_date.isoformat(),
        timezone="UTC",
        # Dagster's last partition is the last day that is over. Only the day that has begun can be
        # read.
        end_offset=1,
    )
    connections = dg.DynamicPartitionsDefinition(name=CONNECTIONS)
    return dg.MultiPartitionsDefinition({"connection": connections, "day": days})


def partition_key(connection: str, day: date) -> dg.MultiPartitionKey:
    """Return the key of one connection and day: `connection|day`."""
    return dg.MultiPartitionKey({"connection": connection, "day": day.isoformat()})


def register_connections(instance: dg.DagsterInstance, settings: Settings) -> dict[str, Connection]:
    """Make the connections known as partitions; return them. Raises ConfigurationError."""
    configured = settings.connections()
    instance.add_dynamic_partitions(CONNECTIONS, list(configured))
    return configured
