"""What a materialization is of: one connection on one sync date, the same for the whole chain."""

from datetime import date

import dagster as dg

from pipelines import settings

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


def days(context: dg.AssetExecutionContext) -> list[tuple[str, date]]:
    """Return partition key and day of everything a run covers; a range run covers many."""
    return [
        (key, date.fromisoformat(key.keys_by_dimension["date"]))
        for key in context.partition_keys
        if isinstance(key, dg.MultiPartitionKey)
    ]
