"""The sensor `lost_runs`: runs whose process is gone are failed, so that Dagster tries them again.

A run worker that dies is told by the code server that started it. Where both are gone (a restart
of the machine, kill -9 of both) nobody tells, and the run would keep its place in the queue until
its time limit. Not here: runs of other machines, which no process number of this one tells of.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import dagster as dg

SERVER_TAG = ".dagster/grpc_info"  # Dagster's own: which code server started the run
OURS = {"localhost", "127.0.0.1"}
WORKER = b"spawn_main"  # in the command line of every run worker
PROCESSES = Path("/proc")
WORDS = (
    "The process of this run is gone, and with it the code server that started it: the machine was "
    "restarted, or both were killed. What was read is archived; the run that follows goes on from "
    "there."
)


@dg.sensor(
    name="lost_runs",
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Fails runs whose process is gone, so that they are tried again.",
)
def lost_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """Fail what nobody works on any more."""
    lost = list(_lost(context.instance))
    for run in lost:
        context.instance.report_run_failed(run, WORDS)
    return dg.SkipReason(f"runs without a process: {', '.join(run.run_id for run in lost) or 0}")


def _lost(instance: dg.DagsterInstance) -> Iterator[dg.DagsterRun]:
    """Yield the runs that have begun on this machine, are not over, and have no process."""
    begun = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])
    for run in instance.get_runs(begun):
        worker = _worker(instance, run)
        if worker is None or _works(worker):
            continue
        now = instance.get_run_by_id(run.run_id)  # it may have come to its end meanwhile
        if now and not now.is_finished:
            yield now


def _worker(instance: dg.DagsterInstance, run: dg.DagsterRun) -> int | None:
    """Return a run's process number, None where it is not one of this machine."""
    server = json.loads(run.tags.get(SERVER_TAG, "{}"))
    here = server.get("socket") or server.get("host") in OURS
    if not PROCESSES.is_dir() or not here:
        return None
    events = instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ENGINE_EVENT)
    told = [
        event.dagster_event.engine_event_data.metadata.get("pid")
        for event in events
        if event.dagster_event
    ]
    numbers = [each.text for each in told if isinstance(each, dg.TextMetadataValue) and each.text]
    return int(numbers[-1]) if numbers else None


def _works(number: int) -> bool:
    try:
        return WORKER in (PROCESSES / str(number) / "cmdline").read_bytes()
    except OSError:
        return False
