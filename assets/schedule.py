"""The nightly sync: one run for each connection, on the UTC day of the tick."""

from collections.abc import Iterator
from datetime import UTC, timedelta

import dagster as dg

from assets import once
from assets.partitions import CONNECTIONS, register, request
from pipelines import run, settings
from pipelines.clock import SYSTEM
from pipelines.errors import ConfigurationError

_settings = settings.load()

# A night that reads for longer than this is a night that hangs; what it read is kept.
LONGEST = timedelta(hours=12)
NIGHTLY = dg.define_asset_job(
    "nightly_sync",
    description="Reads every list of a connection, folds it and publishes all of it together.",
    selection=dg.AssetSelection.all(),
    tags={
        "dagster/max_runtime": str(int(LONGEST.total_seconds())),
        "dagster/priority": "1",  # before what a person asked for, where runs queue
    },
)


@dg.schedule(
    job=NIGHTLY,
    name="nightly",
    cron_schedule=_settings.schedule,
    execution_timezone=_settings.time_zone,
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="One run a night for each connection of connections.toml, on the UTC day.",
)
def nightly(
    context: dg.ScheduleEvaluationContext,
) -> Iterator[dg.RunRequest | dg.SkipReason]:
    """Ask for a run of every connection that no tick of that day has asked for.

    A connection that was taken out of connections.toml is not asked for any more. A daemon that was
    away makes up for up to five ticks; those whose day can no more be read are passed over.
    """
    of = context.scheduled_execution_time.astimezone(UTC).date()
    day = of.isoformat()
    if SYSTEM.now() >= run.closes(of):
        until = f"{run.closes(of):%Y-%m-%d %H:%M}"
        yield dg.SkipReason(f"{day} can be read no more: its runs could until {until} UTC")
        return
    keys = {f"{connection}|{day}": connection for connection in register(context.instance)}
    asked = once.asked(context.instance, keys)
    new = [key for key in keys if key not in asked]
    if not new:
        yield dg.SkipReason(f"every connection has had its run of {day}")
    for key in new:
        yield request(keys[key], of, key)


@dg.sensor(
    name="connections",
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Makes what is new in connections.toml known as partitions.",
)
def follow(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
    """Add the connections that are configured and not known yet; none is ever taken away."""
    try:
        configured = settings.load().connections()
    except ConfigurationError as error:
        return dg.SkipReason(str(error))
    known = set(context.instance.get_dynamic_partitions(CONNECTIONS))
    new = [name for name in configured if name not in known]
    if not new:
        return dg.SkipReason("no new connection")
    definition = dg.DynamicPartitionsDefinition(name=CONNECTIONS)
    return dg.SensorResult(dynamic_partitions_requests=[definition.build_add_request(new)])
