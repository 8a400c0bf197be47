"""Partitions of `raw/<stream>`: one connection on one UTC day.

Connections come from connections.toml only. The sensor `connections` makes new ones known here.
"""

from datetime import date
from typing import NamedTuple

import dagster as dg

from pipelines.config.settings import Settings

CONNECTIONS = "connections"


class Partition(NamedTuple):
    """One partition key and its two parts."""

    key: str
    connection: str
    day: date


def connection_days(settings: Settings) -> dg.MultiPartitionsDefinition:
    """Return the partitions: connections that are known to Dagster, days up to today."""
    days = dg.DailyPartitionsDefinition(
        start_date=settings.start_date,
        timezone="UTC",
        end_offset=1,  # the day that has begun is the one that can be read
    )
    connections = dg.DynamicPartitionsDefinition(name=CONNECTIONS)
    return dg.MultiPartitionsDefinition({"connection": connections, "day": days})


def partition_key(connection: str, day: date) -> dg.MultiPartitionKey:
    """Return the key of one connection and day."""
    return dg.MultiPartitionKey({"connection": connection, "day": day.isoformat()})


def run_partitions(context: dg.AssetExecutionContext) -> list[Partition]:
    """Return all partitions of a run. A backfill's run has many days, sometimes connections too."""
    found = []
    for key in context.partition_keys:
        if not isinstance(key, dg.MultiPartitionKey):
            raise TypeError(f"not a partition of a connection and a day: {key}")
        parts = key.keys_by_dimension
        found.append(Partition(key, parts["connection"], date.fromisoformat(parts["day"])))
    return found


def register_connections(instance: dg.DagsterInstance, settings: Settings) -> list[str]:
    """Make the configured connections known as partitions; return their names."""
    names = list(settings.connections())
    instance.add_dynamic_partitions(CONNECTIONS, names)
    return names
