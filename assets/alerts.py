"""Dagster's sensors for alerts: after a failed run, and every few minutes for what grows old.

Here: when. Not here: what is an alert and who is told (pipelines.run.alerting).
"""

from datetime import UTC, datetime, timedelta

import dagster as dg

from pipelines import run, settings
from pipelines.errors import ConfigurationError
from pipelines.run import Session, Watch

A_DAY = timedelta(days=1)


@dg.run_failure_sensor(
    name="failed_runs",
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Records that a run failed, a crashed one too, and tells alerts.",
)
def failed_runs(context: dg.RunFailureSensorContext) -> None:
    """Mark the run in the ledger, then tell what stands."""
    with run.open(settings.load(), Watch(waiting=context.log.info)) as session:
        run.fail(session, context.dagster_run.run_id)


@dg.sensor(
    name="alerts",
    minimum_interval_seconds=300,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Tells alerts that are new, stand for another day, or are over: stale data too.",
)
def alerts(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """Judge how things stand; ask for no run."""
    try:
        with run.open(settings.load(), Watch(waiting=context.log.info)) as session:
            _catch_up(context, session)
            standing = run.alert(session)
    except ConfigurationError as error:
        return dg.SkipReason(str(error))
    told = ", ".join(f"{each.alert.heading} ({each.finding.about})" for each in standing)
    return dg.SkipReason(f"stands: {told}" if told else "nothing is the matter")


def _catch_up(context: dg.SensorEvaluationContext, session: Session) -> None:
    """Record the runs that failed while the ledger was away: Dagster tells `failed_runs` once."""
    now = session.clock.now()
    failed = dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE], updated_after=now - A_DAY)
    ended = {
        each.dagster_run.run_id: datetime.fromtimestamp(each.end_time, UTC)
        for each in context.instance.get_run_records(failed)
        if each.end_time
    }
    run.catch_up(session, ended)
