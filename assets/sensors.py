"""Sensors: publishing after reads, new connections, lists that become stale."""

from datetime import UTC, datetime, timedelta
from hashlib import sha256

import dagster as dg

from assets.automation import CHECK_JOB, PUBLISH_JOB, READ_JOB
from assets.partitions import CONNECTIONS
from assets.raw import raw_key
from pipelines.app.checkup import evaluate_checks
from pipelines.app.session import open_session
from pipelines.config.settings import Settings
from pipelines.core.errors import ConfigurationError, PartnerSyncError

FINISHED = [
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.CANCELED,
]
UNFINISHED = [status for status in dg.DagsterRunStatus if status not in FINISHED]
FIRST_LOOK = timedelta(days=1)  # how far the first evaluation looks back
RAW = raw_key("").path[0]


def reads(run: dg.DagsterRun) -> bool:
    """Return whether a run materializes `raw/*`: a nightly one, a backfill, or a person's."""
    keys = run.asset_selection or ()
    return run.job_name == READ_JOB or any(key.path[0] == RAW for key in keys)


@dg.sensor(
    job_name=PUBLISH_JOB,
    minimum_interval_seconds=15,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Launches `publish` after runs that read, once none is queued or under way.",
)
def publish_after_reads(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
    """Launch one build for all runs that read, however they ended.

    It compares states instead of following single runs, so that a run that was stopped, killed or
    deleted does not hold back what the others read.
    """
    instance = context.instance
    unfinished = instance.get_runs(dg.RunsFilter(statuses=UNFINISHED))
    if waiting := sum(map(reads, unfinished)):
        return dg.SkipReason(f"Reading runs that are queued or under way: {waiting}.")
    if lost := _publication_not_started(instance):
        return dg.RunRequest(run_key=f"again after {lost}")
    latest = _latest_end_of_read(instance, context.cursor)
    if latest is None:
        return dg.SkipReason("No reading run has ended since the last publication.")
    context.update_cursor(latest)
    return dg.RunRequest(run_key=latest)


def _latest_end_of_read(instance: dg.DagsterInstance, cursor: str | None) -> str | None:
    """Return when the last reading run after the cursor ended, as the next cursor."""
    since = datetime.fromisoformat(cursor) if cursor else datetime.now(UTC) - FIRST_LOOK
    ended = instance.get_run_records(dg.RunsFilter(statuses=FINISHED, updated_after=since))
    times = [record.update_timestamp for record in ended if reads(record.dagster_run)]
    return max(times).isoformat() if times else None


def _publication_not_started(instance: dg.DagsterInstance) -> str | None:
    """Return the newest run of `publish` if Dagster could not start its process."""
    newest = instance.get_run_records(dg.RunsFilter(job_name=PUBLISH_JOB), limit=1)
    failed = [each for each in newest if each.dagster_run.status is dg.DagsterRunStatus.FAILURE]
    return next((each.dagster_run.run_id for each in failed if each.start_time is None), None)


def connections_sensor(settings: Settings) -> dg.SensorDefinition:
    """Return the sensor that makes the partitions follow connections.toml."""

    @dg.sensor(
        name="connections",
        minimum_interval_seconds=60,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Adds new connections of connections.toml, and removes misspelled ones.",
    )
    def connections(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        try:
            configured = list(settings.connections())
        except ConfigurationError as error:
            return dg.SkipReason(str(error))
        known = set(context.instance.get_dynamic_partitions(CONNECTIONS))
        new = [name for name in configured if name not in known]
        unknown = [name for name in known if name not in configured]
        wrong = sorted(set(unknown) - _materialized(context.instance, settings)) if unknown else []
        if not new and not wrong:
            return dg.SkipReason("The connections are unchanged.")
        partitions = dg.DynamicPartitionsDefinition(name=CONNECTIONS)
        requests: list[dg.AddDynamicPartitionsRequest | dg.DeleteDynamicPartitionsRequest] = [
            partitions.build_add_request(new),
            partitions.build_delete_request(wrong),
        ]
        return dg.SensorResult(dynamic_partitions_requests=requests)

    return connections


def _materialized(instance: dg.DagsterInstance, settings: Settings) -> set[str]:
    """Return the connections that any scan was ever shown for; they stay when removed."""
    keys = (
        key
        for stream in settings.all_streams()
        for key in instance.get_materialized_partitions(raw_key(stream))
    )
    return {key.split("|")[0] for key in keys}


def findings_sensor(settings: Settings) -> dg.SensorDefinition:
    """Return the sensor that runs the checks when a finding appears or clears.

    Lists become stale while nothing runs, and decisions on the command line change findings too.
    """

    @dg.sensor(
        name="findings",
        job_name=CHECK_JOB,
        minimum_interval_seconds=900,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Evaluates the checks when a list becomes stale or a finding changes.",
    )
    def findings(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        try:
            with open_session(settings.places) as session:
                found = evaluate_checks(session)
        except PartnerSyncError as error:
            return dg.SkipReason(str(error))
        names = sorted(
            f"{each.code}|{each.connection}|{each.stream}|{each.subject}" for each in found
        )
        digest = sha256("\n".join(names).encode()).hexdigest()
        if digest == context.cursor:
            return dg.SkipReason(f"{len(names)} findings, the same as before.")
        context.update_cursor(digest)
        return dg.RunRequest()

    return findings
