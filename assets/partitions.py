"""What a materialization is of: one connection on one sync date, the same for the whole chain."""

from dataclasses import dataclass
from datetime import date

import dagster as dg

from pipelines import settings
from pipelines.errors import ConfigurationError

CONNECTIONS = "connections"
_settings = settings.load()

PARTITIONS = dg.MultiPartitionsDefinition(
    {
        "connection": dg.DynamicPartitionsDefinition(name=CONNECTIONS),
        # The service has no date filter: a date is the UTC day we asked. One more than the past
        # days, or today could not be chosen.
        "date": dg.DailyPartitionsDefinition(
            start_date=_settings.start_date.isoformat(), timezone="UTC", end_offset=1
        ),
    }
)


@dataclass(frozen=True)
class Part:
    """One partition of a run: its key, and the connection and day that the key names."""

    key: dg.MultiPartitionKey
    connection: str
    day: date


def parts(context: dg.AssetExecutionContext) -> list[Part]:
    """Return everything a run covers; a range run covers many days, and may many connections."""
    return [
        Part(
            key,
            key.keys_by_dimension["connection"],
            date.fromisoformat(key.keys_by_dimension["date"]),
        )
        for key in context.partition_keys
        if isinstance(key, dg.MultiPartitionKey)
    ]


def request(connection: str, day: date, run_key: str) -> dg.RunRequest:
    """Return the request of a run for a connection that is known already.

    Its tags say the partition, so that Dagster takes it as it is; else it would look up each
    connection by itself.
    """
    if day < _settings.start_date:
        words = f"start_date is {_settings.start_date}: {day} is before it and cannot be chosen"
        raise ConfigurationError(words)
    key = dg.MultiPartitionKey({"connection": connection, "date": day.isoformat()})
    tags = PARTITIONS.get_tags_for_partition_key(key)
    return dg.RunRequest(run_key=run_key, partition_key=key, tags=tags)


def register(instance: dg.DagsterInstance) -> list[str]:
    """Make the configured connections known as partitions; return their names."""
    names = list(settings.load().connections())
    instance.add_dynamic_partitions(CONNECTIONS, names)
    return names
