"""The sensor `killed_runs`: fails runs whose process is gone, so that Dagster retries them.

A code server reports its run workers that die. If both are killed, by a restart of the machine for
example, nobody does: the run would stay "started" and hold back publishing.
"""

import json

import dagster as dg
import psutil

SERVER_TAG = ".dagster/grpc_info"  # set by Dagster: the code server that started the run
LOCAL_HOSTS = {"localhost", "127.0.0.1"}
CLOCK_STEP_SECONDS = 1.0  # start times of processes are rounded
MESSAGE = "The process of this run is gone. A retry resumes what it had read."


@dg.sensor(
    name="killed_runs",
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Fails runs whose process is gone, so that Dagster retries them.",
)
def killed_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """Fail the started runs of this machine that no process works on."""
    started = context.instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]))
    killed = [run for run in started if is_killed(context.instance, run)]
    for run in killed:
        context.instance.report_run_failed(run, MESSAGE)
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
        started_at = psutil.Process(process_id).create_time()
    except psutil.NoSuchProcess:
        return False
    return started_at <= logged_at + CLOCK_STEP_SECONDS
