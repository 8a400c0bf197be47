"""Sensors: publishing after reads, new connections, findings that change, killed runs."""

import json
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256

import dagster as dg
import psutil

from assets.automation import CHECK_JOB, PUBLISH_JOB, READ_JOB
from assets.keys import CONNECTIONS, raw_key, register_connections
from assets.resources import HomeResource
from pipelines.app.checkup import findings_of, run_checks
from pipelines.app.notify import notify_findings
from pipelines.app.session import open_session
from pipelines.config.settings import Settings
from pipelines.core.errors import ConfigurationError, PartnerSyncError

sensor = partial(dg.sensor, default_status=dg.DefaultSensorStatus.RUNNING)
Status = dg.DagsterRunStatus
FINISHED = [Status.SUCCESS, Status.FAILURE, Status.CANCELED]
UNFINISHED = [status for status in Status if status not in FINISHED]
FIRST_LOOK = timedelta(days=1)  # how far the first evaluation looks back
RAW = raw_key("").path[0]
SERVER_TAG = ".dagster/grpc_info"  # set by Dagster: the code server that started the run
LOCAL_HOSTS = {"localhost", "127.0.0.1"}
CLOCK_STEP_SECONDS = 1.0  # start times of processes are rounded
KILLED = "The process of this run is gone. A retry resumes what it had read."


def reads(run: dg.DagsterRun) -> bool:
    """Return whether a run materializes `raw/*`: a nightly one, a backfill, or a person's."""
    keys = run.asset_selection or ()
    return run.job_name == READ_JOB or any(key.path[0] == RAW for key in keys)


@sensor(
    job_name=PUBLISH_JOB,
    minimum_interval_seconds=15,
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
    failed = [each for each in newest if each.dagster_run.status is Status.FAILURE]
    return next((each.dagster_run.run_id for each in failed if each.start_time is None), None)


@sensor(minimum_interval_seconds=60, description="Makes the partitions follow connections.toml.")
def connections(context: dg.SensorEvaluationContext, home: HomeResource) -> dg.SkipReason:
    """Add new connections and remove misspelled ones; a removed one that has scans stays."""
    instance = context.instance
    try:
        settings = home.settings()
        configured = register_connections(instance, settings)
    except ConfigurationError as error:
        return dg.SkipReason(str(error))
    unknown = set(instance.get_dynamic_partitions(CONNECTIONS)) - configured.keys()
    wrong = unknown - _materialized(instance, settings) if unknown else unknown
    for name in wrong:
        instance.delete_dynamic_partition(CONNECTIONS, name)
    removed = ", ".join(sorted(wrong)) or "none"
    return dg.SkipReason(f"Connections: {', '.join(configured)}. Removed: {removed}.")


def _materialized(instance: dg.DagsterInstance, settings: Settings) -> set[str]:
    """Return the connections that any scan was ever shown for."""
    return {
        key.split("|")[0]
        for stream in settings.streams
        for key in instance.get_materialized_partitions(raw_key(stream))
    }


@sensor(
    job_name=CHECK_JOB,
    minimum_interval_seconds=900,
    description="Evaluates the checks when a list becomes stale or a finding changes.",
)
def findings(
    context: dg.SensorEvaluationContext, home: HomeResource
) -> dg.RunRequest | dg.SkipReason:
    """Run the checks when a finding appears or clears; tell people of it (setting `notify`).

    Lists become stale while nothing runs, and decisions on the command line change findings too.
    """
    try:
        with open_session(home.settings().places) as session:
            found = findings_of(run_checks(session))
            notify_findings(session)
    except PartnerSyncError as error:
        return dg.SkipReason(str(error))
    names = sorted((each.code, each.connection, each.stream, each.subject) for each in found)
    digest = sha256(repr(names).encode()).hexdigest()
    if digest == context.cursor:
        return dg.SkipReason(f"{len(names)} findings, the same as before.")
    context.update_cursor(digest)
    return dg.RunRequest()


@sensor(
    minimum_interval_seconds=60,
    description="Fails runs without a process, so that they are retried.",
)
def killed_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """Fail the started runs of this machine that no process works on.

    A code server reports its run workers that die. If both are killed, by a restart of the machine
    for example, nobody does: the run would stay "started" and hold back publishing.
    """
    started = context.instance.get_runs(dg.RunsFilter(statuses=[Status.STARTED]))
    killed = [run for run in started if is_killed(context.instance, run)]
    for run in killed:
        context.instance.report_run_failed(run, KILLED)
    return dg.SkipReason(f"{len(killed)} of {len(started)} started runs had no process.")


def is_killed(instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
    """Return whether a run of this machine has a logged process, and that process is gone."""
    server = json.loads(run.tags.get(SERVER_TAG, "{}"))
    if not (server.get("socket") or server.get("host") in LOCAL_HOSTS):
        return False
    processes = [
        (int(str(pid.value)), entry.timestamp)
        for entry in instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ENGINE_EVENT)
        if entry.dagster_event
        and (pid := entry.dagster_event.engine_event_data.metadata.get("pid"))
    ]
    if not processes or _is_running(*processes[-1]):
        return False
    now = instance.get_run_by_id(run.run_id)  # it may have ended meanwhile
    return now is not None and not now.is_finished


def _is_running(process_id: int, logged_at: float) -> bool:
    """Return whether the process that logged something still runs; a later one is another."""
    try:
        return psutil.Process(process_id).create_time() <= logged_at + CLOCK_STEP_SECONDS
    except psutil.NoSuchProcess:
        return False
