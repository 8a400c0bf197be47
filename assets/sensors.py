"""Sensors of a home: publishing after reads, new connections, findings that change, killed runs."""

from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Final, Literal

import dagster as dg

from assets.automation import CHECKS_JOB, NIGHTLY_SYNC_JOB, PUBLISH_JOB
from assets.names import Names, register_connections
from assets.resources import HOME_TAG, PROCESS_TAG, home_in
from pipelines.app.checkup import findings_of, run_checks
from pipelines.app.notify import notify_findings
from pipelines.app.session import AppSession
from pipelines.config.settings import Settings
from pipelines.metadata.processes import is_alive

sensor = partial(dg.sensor, default_status=dg.DefaultSensorStatus.RUNNING)
Status = dg.DagsterRunStatus
FINISHED = [Status.SUCCESS, Status.FAILURE, Status.CANCELED]
UNFINISHED = [status for status in Status if status not in FINISHED]
Ended = Literal[
    dg.DagsterEventType.RUN_SUCCESS,
    dg.DagsterEventType.RUN_FAILURE,
    dg.DagsterEventType.RUN_CANCELED,
]
ENDS: Final[list[Ended]] = [
    dg.DagsterEventType.RUN_SUCCESS,
    dg.DagsterEventType.RUN_FAILURE,
    dg.DagsterEventType.RUN_CANCELED,
]
MOST_ENDS = 1000  # the newest, of each kind
# How far the first evaluation looks back, which has no cursor.
FIRST_LOOK = timedelta(days=1)
KILLED = "The process of this run was killed. A retry resumes it."


def home_sensors(names: Names) -> list[dg.SensorDefinition]:
    """Return the sensors of a home."""
    return [
        _publish_after_reads(names),
        _connections(names),
        _findings(names),
        _killed_runs(names),
    ]


def reads(names: Names, run: dg.DagsterRun) -> bool:
    """Return whether a run reads lists of a home: a nightly one, a backfill, or a person's."""
    if run.job_name == names.of(NIGHTLY_SYNC_JOB):
        return True
    return any(names.is_raw(key) for key in run.asset_selection or ())


def _publish_after_reads(names: Names) -> dg.SensorDefinition:
    @sensor(
        name=names.of("publish_after_reads"),
        job_name=names.of(PUBLISH_JOB),
        minimum_interval_seconds=15,
        description="Launches `publish` after runs of `raw/*`, when none is queued or running.",
    )
    def publish_after_reads(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        """Launch one build for all runs that read, however they ended.

        It compares states instead of following single runs, so that a run that was stopped, killed
        or deleted does not hold back what the others read. A run that takes long publishes what the
        others have read itself, as `sync` does.
        """
        instance = context.instance
        unfinished = instance.get_runs(dg.RunsFilter(statuses=UNFINISHED))
        waiting = [run for run in unfinished if reads(names, run)]
        if waiting:
            return dg.SkipReason(f"Runs of raw/* that are queued or running: {len(waiting)}.")
        latest = _latest_end_of_read(instance, names, context.cursor)
        if latest is None:
            return dg.SkipReason("No run of raw/* has ended since the last `publish`.")
        context.update_cursor(latest)
        return dg.RunRequest(run_key=latest)

    return publish_after_reads


def _latest_end_of_read(
    instance: dg.DagsterInstance, names: Names, cursor: str | None
) -> str | None:
    """Return the number of the last end of a reading run after the cursor, as the next cursor.

    Dagster's storage gives the numbers. Times are those of the machine that a run was on: its clock
    may be wrong.
    """
    after = None
    since: float | None = (datetime.now(UTC) - FIRST_LOOK).timestamp()
    # Earlier releases had a time as the cursor.
    if cursor and cursor.isdecimal():
        after = int(cursor)
        since = None
    numbers = list[int]()
    for event_type in ENDS:
        ends = dg.RunStatusChangeRecordsFilter(
            event_type, after_storage_id=after, after_timestamp=since
        )
        records = instance.fetch_run_status_changes(ends, limit=MOST_ENDS).records
        if not records:
            continue
        found = instance.get_runs(dg.RunsFilter(run_ids=[record.run_id for record in records]))
        reading = {run.run_id for run in found if reads(names, run)}
        numbers += [record.storage_id for record in records if record.run_id in reading]
    return str(max(numbers)) if numbers else None


def _connections(names: Names) -> dg.SensorDefinition:
    @sensor(
        name=names.of("connections"),
        minimum_interval_seconds=60,
        description="Updates the partitions from connections.toml.",
        required_resource_keys={names.resource},
    )
    def connections(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        """Add new connections and remove misspelled ones; a removed one that has scans stays."""
        instance = context.instance
        with home_in(context, names).session() as session:
            settings = session.settings
            configured = register_connections(instance, names, settings)
        unknown = set(instance.get_dynamic_partitions(names.connections)) - configured.keys()
        misspelled = set[str]()
        # Only then: it reads which partitions of every stream are materialized.
        if unknown:
            misspelled = unknown - _materialized(instance, names, settings)
        for name in misspelled:
            instance.delete_dynamic_partition(names.connections, name)
        removed = ", ".join(sorted(misspelled)) or "none"
        return dg.SkipReason(f"Connections: {', '.join(configured)}. Removed: {removed}.")

    return connections


def _materialized(instance: dg.DagsterInstance, names: Names, settings: Settings) -> set[str]:
    """Return the connections that any scan was ever shown for."""
    connections = set[str]()
    for stream in settings.streams:
        for key in instance.get_materialized_partitions(names.raw(stream)):
            connection, _separator, _day = key.partition("|")
            connections.add(connection)
    return connections


def _findings(names: Names) -> dg.SensorDefinition:
    @sensor(
        name=names.of("findings"),
        job_name=names.of(CHECKS_JOB),
        minimum_interval_seconds=900,
        description="Evaluates the checks when a list becomes stale or a finding changes.",
        required_resource_keys={names.resource},
    )
    def findings(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        """Run the checks when a finding appears or clears; tell people of it (setting `notify`).

        Lists become stale while nothing runs, and decisions on the command line change findings
        too.
        """
        with home_in(context, names).session() as session:
            open_findings = findings_of(run_checks(session))
            notify_findings(session)
        subjects = [
            (finding.code, finding.connection, finding.stream, finding.subject)
            for finding in open_findings
        ]
        # By their subjects: a message has figures that differ each time.
        digest = sha256(repr(sorted(subjects)).encode()).hexdigest()
        if digest == context.cursor:
            return dg.SkipReason(f"{len(subjects)} findings, the same as before.")
        context.update_cursor(digest)
        return dg.RunRequest()

    return findings


def _killed_runs(names: Names) -> dg.SensorDefinition:
    @sensor(
        name=names.of("killed_runs"),
        minimum_interval_seconds=15,
        description="Fails runs whose process was killed, so that they are retried.",
        required_resource_keys={names.resource},
    )
    def killed_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        """Fail the started runs whose process is gone twice; with SQLite, those of this machine.

        After PostgreSQL was away, a process needs seconds until it can show that it lives: once is
        not enough. A code server reports its run workers that die. If both are killed, by a restart
        of the machine for example, nobody does: the run would stay "started" and hold back
        publishing.
        """
        home = home_in(context, names)
        # Its metadata database knows no process of another home.
        of_home = dg.RunsFilter(statuses=[Status.STARTED], tags={HOME_TAG: home.name})
        started = context.instance.get_runs(of_home)
        if not started:
            return dg.SkipReason("No run is started.")
        with home.session() as session:
            gone = [run for run in started if _is_gone(session, context.instance, run)]
        before = (context.cursor or "").split()
        killed = [run for run in gone if run.run_id in before]
        for run in killed:
            context.instance.report_run_failed(run, KILLED)
        context.update_cursor(" ".join(run.run_id for run in gone))
        return dg.SkipReason(
            f"Without a process: {len(gone)} of {len(started)} started runs. "
            f"Failed, as they had none before: {len(killed)}."
        )

    return killed_runs


def _is_gone(session: AppSession, instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
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
