"""Sensors: publishing after reads, new connections, findings that change, killed runs."""

from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256

import dagster as dg

from assets.automation import CHECKS_JOB, NIGHTLY_SYNC_JOB, PUBLISH_JOB
from assets.keys import CONNECTIONS, raw_key, register_connections
from assets.resources import PROCESS_TAG, HomeResource
from pipelines.app.checkup import findings_of, run_checks
from pipelines.app.notify import notify_findings
from pipelines.app.session import AppSession
from pipelines.config.settings import Settings
from pipelines.metadata.processes import is_alive

sensor = partial(dg.sensor, default_status=dg.DefaultSensorStatus.RUNNING)
Status = dg.DagsterRunStatus
FINISHED = [Status.SUCCESS, Status.FAILURE, Status.CANCELED]
UNFINISHED = [status for status in Status if status not in FINISHED]
# How far the first evaluation looks back, which has no cursor.
FIRST_LOOK = timedelta(days=1)
RAW = raw_key("").path[0]
KILLED = "The process of this run was killed. A retry resumes it."


def reads(run: dg.DagsterRun) -> bool:
    """Return whether a run materializes `raw/*`: a nightly one, a backfill, or a person's."""
    keys = run.asset_selection or ()
    return run.job_name == NIGHTLY_SYNC_JOB or any(key.path[0] == RAW for key in keys)


@sensor(
    job_name=PUBLISH_JOB,
    minimum_interval_seconds=15,
    description="Launches `publish` after runs of `raw/*`, when none is queued or running.",
)
def publish_after_reads(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
    """Launch one build for all runs that read, however they ended.

    It compares states instead of following single runs, so that a run that was stopped, killed or
    deleted does not hold back what the others read. A run that takes long publishes what the others
    have read itself, as `sync` does.
    """
    instance = context.instance
    unfinished = instance.get_runs(dg.RunsFilter(statuses=UNFINISHED))
    if waiting := sum(map(reads, unfinished)):
        return dg.SkipReason(f"Runs of raw/* that are queued or running: {waiting}.")
    latest = _latest_end_of_read(instance, context.cursor)
    if latest is None:
        return dg.SkipReason("No run of raw/* has ended since the last `publish`.")
    context.update_cursor(latest)
    return dg.RunRequest(run_key=latest)


def _latest_end_of_read(instance: dg.DagsterInstance, cursor: str | None) -> str | None:
    """Return when the last reading run after the cursor ended, as the next cursor."""
    since = datetime.fromisoformat(cursor) if cursor else datetime.now(UTC) - FIRST_LOOK
    ended = instance.get_run_records(dg.RunsFilter(statuses=FINISHED, updated_after=since))
    times = [record.update_timestamp for record in ended if reads(record.dagster_run)]
    return max(times).isoformat() if times else None


@sensor(minimum_interval_seconds=60, description="Updates the partitions from connections.toml.")
def connections(context: dg.SensorEvaluationContext, home: HomeResource) -> dg.SkipReason:
    """Add new connections and remove misspelled ones; a removed one that has scans stays."""
    instance = context.instance
    with home.session() as session:
        settings = session.settings
        configured = register_connections(instance, settings)
    unknown = set(instance.get_dynamic_partitions(CONNECTIONS)) - configured.keys()
    misspelled = set[str]()
    # Only then: it reads which partitions of every stream are materialized.
    if unknown:
        misspelled = unknown - _materialized(instance, settings)
    for name in misspelled:
        instance.delete_dynamic_partition(CONNECTIONS, name)
    removed = ", ".join(sorted(misspelled)) or "none"
    return dg.SkipReason(f"Connections: {', '.join(configured)}. Removed: {removed}.")


def _materialized(instance: dg.DagsterInstance, settings: Settings) -> set[str]:
    """Return the connections that any scan was ever shown for."""
    names = set[str]()
    for stream in settings.streams:
        for key in instance.get_materialized_partitions(raw_key(stream)):
            connection, _separator, _day = key.partition("|")
            names.add(connection)
    return names


@sensor(
    job_name=CHECKS_JOB,
    minimum_interval_seconds=900,
    description="Evaluates the checks when a list becomes stale or a finding changes.",
)
def findings(
    context: dg.SensorEvaluationContext, home: HomeResource
) -> dg.RunRequest | dg.SkipReason:
    """Run the checks when a finding appears or clears; tell people of it (setting `notify`).

    Lists become stale while nothing runs, and decisions on the command line change findings too.
    """
    with home.session() as session:
        open_findings = findings_of(run_checks(session))
        notify_findings(session)
    names = [
        (finding.code, finding.connection, finding.stream, finding.subject)
        for finding in open_findings
    ]
    # By their names: a message has figures that differ each time.
    digest = sha256(repr(sorted(names)).encode()).hexdigest()
    if digest == context.cursor:
        return dg.SkipReason(f"{len(names)} findings, the same as before.")
    context.update_cursor(digest)
    return dg.RunRequest()


@sensor(
    minimum_interval_seconds=60,
    description="Fails runs whose process was killed, so that they are retried.",
)
def killed_runs(context: dg.SensorEvaluationContext, home: HomeResource) -> dg.SkipReason:
    """Fail the started runs whose process is gone; with SQLite, those of this machine.

    A code server reports its run workers that die. If both are killed, by a restart of the machine
    for example, nobody does: the run would stay "started" and hold back publishing.
    """
    started = context.instance.get_runs(dg.RunsFilter(statuses=[Status.STARTED]))
    if not started:
        return dg.SkipReason("No run is started.")
    with home.session() as session:
        killed = [run for run in started if _is_killed(session, context.instance, run)]
    for run in killed:
        context.instance.report_run_failed(run, KILLED)
    return dg.SkipReason(f"{len(killed)} of {len(started)} started runs had no process.")


def _is_killed(session: AppSession, instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
    """Return whether the process that HomeResource noted is gone. A retry has its parent's tags."""
    run_id, _, owner = run.tags.get(PROCESS_TAG, "").partition(" ")
    if run_id != run.run_id or _lives(session, owner):
        return False
    # It may have ended since the runs were listed: then its process is gone for a good reason.
    now = instance.get_run_by_id(run.run_id)
    return now is not None and not now.is_finished


def _lives(session: AppSession, owner: str) -> bool:
    with session.metadata.transaction() as db:
        return is_alive(db.connection(), owner)
