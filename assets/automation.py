"""Jobs and schedules: what can be launched, and what starts without a person."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import dagster as dg

from assets.partitions import partition_key, register_connections
from assets.raw import SCHEDULED_AT_TAG, raw_key
from assets.resources import HomeResource, LogProgress, failure
from assets.warehouse import nothing_published
from pipelines.app import versions
from pipelines.app.verify import verify_files
from pipelines.config.connections import Connection
from pipelines.config.settings import Settings
from pipelines.core.errors import ConfigurationError

READ_JOB = "nightly_sync"
PUBLISH_JOB = "publish"
CHECK_JOB = "checks"
OLDEST_TICK = timedelta(hours=24)  # of an older one, the service can say nothing any more
MAINTENANCE_CRON = "0 6 * * 0"


@dg.op(description="Builds a version from the archive, without a base and without any request.")
def rebuild_version(context: dg.OpExecutionContext, home: HomeResource) -> None:
    """Build and publish a version anew."""
    with home.session() as session:
        built = versions.rebuild(session, LogProgress(context.log))
        if built.version is None:
            raise nothing_published(built)
        context.log.info("Published version %s.", built.version.number)


@dg.op(description="Compares every scan file and the published version with their digests.")
def verify_archive(home: HomeResource) -> None:
    """Fail if a scan file or the published version is damaged or lost."""
    with home.session() as session:
        damaged = verify_files(session).damaged
    if damaged:
        raise failure("\n".join(["Some files are damaged.", *map(str, damaged)]))


@dg.job(description="Builds a version anew from the archive, without any request.")
def rebuild() -> None:
    """Rebuild the published version."""
    rebuild_version()


@dg.job(description="Verifies the archive.")
def maintenance() -> None:
    """Check what is kept."""
    verify_archive()


def nightly_schedule(
    settings: Settings, partitions: dg.MultiPartitionsDefinition
) -> dg.ScheduleDefinition:
    """Return the schedule of the nightly sync: one run for each connection."""

    @dg.schedule(
        name="nightly",
        job_name=READ_JOB,
        cron_schedule=settings.schedule,
        execution_timezone=settings.time_zone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Reads every connection of connections.toml, one run each.",
    )
    def nightly(
        context: dg.ScheduleEvaluationContext,
    ) -> Iterator[dg.RunRequest | dg.SkipReason]:
        tick = context.scheduled_execution_time.astimezone(UTC)
        try:
            register_connections(context.instance, settings)
            connections = settings.connections()
        except ConfigurationError as error:
            yield dg.SkipReason(str(error))
            return
        if datetime.now(UTC) - tick > OLDEST_TICK:
            yield dg.SkipReason("Missed by more than a day. A later tick reads the lists.")
            return
        for connection in connections.values():
            yield _nightly_run(settings, partitions, connection, tick)

    return nightly


def _nightly_run(
    settings: Settings,
    partitions: dg.MultiPartitionsDefinition,
    connection: Connection,
    tick: datetime,
) -> dg.RunRequest:
    """Request the current day: a late tick cannot read its own day any more."""
    key = partition_key(connection.name, datetime.now(UTC).date())
    return dg.RunRequest(
        run_key=f"{connection.name}|{tick.isoformat()}",
        partition_key=key,
        asset_selection=[raw_key(stream.name) for stream in settings.streams_of(connection)],
        # With the tags of the partition, Dagster does not look each connection up by itself.
        tags={**partitions.get_tags_for_partition_key(key), SCHEDULED_AT_TAG: tick.isoformat()},
    )


def maintenance_schedule(settings: Settings) -> dg.ScheduleDefinition:
    """Return the weekly schedule of the job `maintenance`."""
    return dg.ScheduleDefinition(
        name="weekly_maintenance",
        job=maintenance,
        cron_schedule=MAINTENANCE_CRON,
        execution_timezone=settings.time_zone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
