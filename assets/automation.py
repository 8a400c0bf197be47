"""Schedules, names of jobs, and the job `maintenance` of a home."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import dagster as dg

from assets.names import Names, connection_days, partition_key, register_connections
from assets.raw import RANGE_END_TAG, RANGE_START_TAG, SCHEDULED_AT_TAG
from assets.resources import expected_failures, failure, home_in
from pipelines.app.maintenance import prune_files, verify_files
from pipelines.config.connections import Connection
from pipelines.config.settings import Settings, Stream

NIGHTLY_SYNC_JOB = "nightly_sync"  # it reads; a sensor launches the job `publish` then
PUBLISH_JOB = "publish"
REBUILD_JOB = "rebuild"
CHECKS_JOB = "checks"
# The service says how it is now. For an older tick, that is another day.
OLDEST_TICK = timedelta(hours=24)
MAINTENANCE_CRON = "0 6 * * 0"


def maintenance_job(names: Names) -> dg.JobDefinition:
    """Return the job that verifies scan files and versions, then deletes old ones."""

    @dg.op(
        name=names.of("verify_archive"),
        out=dg.Out(dg.Nothing),
        required_resource_keys={names.resource},
        pool=names.resource,
    )
    def verify_archive(context: dg.OpExecutionContext) -> None:
        """Compare scan files, versions and copies of closed months with their digests."""
        with home_in(context, names).session() as session:
            verified = verify_files(session)
        if verified["damaged"]:
            files = [f"{file['message']} {file['remedy']}".strip() for file in verified["damaged"]]
            raise failure("\n".join(["Some files are damaged.", *files]))
        context.log.info("%s files were verified. None is damaged.", f"{verified['files']:,}")

    @dg.op(
        name=names.of("prune_archive"),
        ins={"verified": dg.In(dg.Nothing)},
        required_resource_keys={names.resource},
        pool=names.resource,
    )
    def prune_archive(context: dg.OpExecutionContext) -> None:
        """Delete old scan files and versions, if the setting keep_days is set."""
        with home_in(context, names).session() as session:
            if session.settings.keep_days:
                deleted = prune_files(session, None)
                context.log.info("%s old scan files and versions were deleted.", len(deleted))

    @dg.job(name=names.of("maintenance"))
    def maintenance() -> None:
        """Verify scan files and versions, then delete old ones."""
        prune_archive(verify_archive())

    return maintenance


def nightly_schedule(names: Names, settings: Settings) -> dg.ScheduleDefinition:
    """Return the schedule of the nightly sync: one run for `connections_at_once` connections."""

    @dg.schedule(
        name=names.of("nightly"),
        job_name=names.of(NIGHTLY_SYNC_JOB),
        cron_schedule=settings.schedule,
        execution_timezone=settings.time_zone.key,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Reads every connection of connections.toml, many in one run.",
    )
    def nightly(context: dg.ScheduleEvaluationContext) -> list[dg.RunRequest] | dg.SkipReason:
        tick = context.scheduled_execution_time.astimezone(UTC)
        with expected_failures():
            connections = register_connections(context.instance, names, settings)
        if datetime.now(UTC) - tick > OLDEST_TICK:
            return dg.SkipReason("Missed by more than a day. A later tick reads the lists.")
        known = context.instance.get_dynamic_partitions(names.connections)
        groups = _groups(settings, [connections.get(name) for name in known])
        return [_request(names, settings, group, tick) for group in groups]

    return nightly


def _groups(
    settings: Settings, connections: Sequence[Connection | None]
) -> Iterator[list[Connection]]:
    """Yield groups of connections that one run reads at the same time.

    `connections` are in the order of their partitions, None for one that is not configured. The
    partitions of a run follow each other, so a group ends at one that reads nothing.
    """
    group = list[Connection]()
    for connection in connections:
        is_read = connection is not None and bool(settings.streams_of(connection))
        if group and (not is_read or len(group) == settings.connections_at_once):
            yield group
            group = []
        if connection is not None and is_read:
            group.append(connection)
    if group:
        yield group


def _request(
    names: Names, settings: Settings, group: list[Connection], tick: datetime
) -> dg.RunRequest:
    """Request the current day: a late tick cannot read its own day any more."""
    today = datetime.now(UTC).date()
    first = partition_key(group[0].name, today)
    last = partition_key(group[-1].name, today)
    streams = dict[str, Stream]()
    for connection in group:
        streams |= {stream.name: stream for stream in settings.streams_of(connection)}
    tags = {SCHEDULED_AT_TAG: tick.isoformat()}
    key = None
    if len(group) == 1:
        key = first
        # With the tags of the partition, Dagster does not look each connection up by itself.
        tags |= connection_days(names, settings).get_tags_for_partition_key(key)
    else:
        tags |= {RANGE_START_TAG: first, RANGE_END_TAG: last}
    return dg.RunRequest(
        run_key=f"{group[0].name}|{tick.isoformat()}",
        partition_key=key,
        asset_selection=[names.raw(name) for name in streams],
        tags=tags,
    )


def maintenance_schedule(
    names: Names, settings: Settings, job: dg.JobDefinition
) -> dg.ScheduleDefinition:
    """Return the weekly schedule of the job `maintenance`."""
    return dg.ScheduleDefinition(
        name=names.of("weekly_maintenance"),
        job=job,
        cron_schedule=MAINTENANCE_CRON,
        execution_timezone=settings.time_zone.key,
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
