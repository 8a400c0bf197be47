"""The nightly sync: one run for each connection, on the UTC day of the tick."""

from collections.abc import Iterator
from datetime import UTC

import dagster as dg

from assets.partitions import CONNECTIONS
from pipelines import settings

_settings = settings.load()

NIGHTLY = dg.define_asset_job("nightly_sync", selection="*")


@dg.schedule(
    job=NIGHTLY,
    name="nightly",
    cron_schedule=_settings.schedule,
    execution_timezone=_settings.time_zone,
    default_status=dg.DefaultScheduleStatus.RUNNING,
)
def nightly(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest]:
    """Ask for a run of every connection; its run key stops a second one for the same day."""
    day = context.scheduled_execution_time.astimezone(UTC).date().isoformat()
    register(context.instance)
    for connection in context.instance.get_dynamic_partitions(CONNECTIONS):
        yield dg.RunRequest(
            run_key=f"{connection}|{day}",
            partition_key=dg.MultiPartitionKey({"connection": connection, "date": day}),
        )


def register(instance: dg.DagsterInstance) -> None:
    """Make the configured connections known as partitions."""
    instance.add_dynamic_partitions(CONNECTIONS, ["default"])
