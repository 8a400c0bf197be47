"""The sensor `lost_workers`: runs that wait for a Celery worker that is gone are failed.

Celery tells nobody that a worker was killed together with the step that it had: the run would wait
until its time limit. Who is gone for two looks is gone; Dagster tries a failed run again, and its
steps go on from the pages that are linked. Not here: runs without Celery (lost).
"""

from collections.abc import Mapping, Sequence

import dagster as dg
import msgspec
from kombu.exceptions import OperationalError

from assets.worker import app

SECONDS_TO_ANSWER = 5.0
LOOKS = 20  # from one that reads the events of all runs to the next: ten minutes
TASK_TAG = "dagster-celery/task_id"  # Dagster's own: the task that conducts the run
WORKER = "Celery worker"  # Dagster's own: in the event of a step that a worker begins
ENDS = {
    dg.DagsterEventType.STEP_SUCCESS,
    dg.DagsterEventType.STEP_FAILURE,
    dg.DagsterEventType.STEP_UP_FOR_RETRY,  # it waits with the conductor, for any worker
}
Answers = Mapping[str, list[Mapping[str, str]]]  # by the name of a worker: the tasks it has
WORDS = (
    "The Celery worker that had a step of this run, or conducted it, answers no more: it was "
    "killed, or its machine is off. What was read is archived; the run that follows goes on from "
    "there."
)


class Look(msgspec.Struct):
    """What one look leaves to the next one; at first nobody is known."""

    answered: set[str] = msgspec.field(default_factory=set)  # workers by name
    waiting: set[str] = msgspec.field(default_factory=set)  # runs whose worker did not
    left: int = 0  # looks until the events of all runs are read, whoever answers


@dg.sensor(
    name="lost_workers",
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Fails runs whose Celery worker is gone for two looks, so that they go on.",
)
def lost_workers(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """Fail what waits for nobody; end what conducts it, which would wait for ever."""
    before = kept(context.cursor)
    begun = context.instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]))
    conducted = [run for run in begun if TASK_TAG in run.tags]
    try:
        answers = _answers() if conducted else {}
    except OperationalError as error:
        return dg.SkipReason(f"the broker does not answer, nobody knows who is gone: {error}")
    waiting, now = look(context.instance, conducted, answers, before)
    gone = [run for run in waiting if run.run_id in before.waiting]
    for run in gone:
        context.instance.report_run_failed(run, WORDS)
        app.control.revoke(run.tags[TASK_TAG], terminate=True, signal="SIGKILL")
    context.update_cursor(msgspec.json.encode(now).decode())
    failed = ", ".join(run.run_id for run in gone)
    return dg.SkipReason(f"wait for a worker that is gone: {len(waiting)}; failed: {failed or 0}")


def kept(cursor: str | None) -> Look:
    """Return what the look before left; of an older release nothing."""
    try:
        return msgspec.json.decode(cursor or "{}", type=Look)
    except msgspec.DecodeError:
        return Look()


def _answers() -> Answers:
    answers: Answers = app.control.inspect(timeout=SECONDS_TO_ANSWER).active() or {}
    return answers


def look(
    instance: dg.DagsterInstance, conducted: Sequence[dg.DagsterRun], answers: Answers, before: Look
) -> tuple[list[dg.DagsterRun], Look]:
    """Return the runs whose conductor, or a worker of one of whose steps, is gone; what to keep.

    Which workers a run has is in its events. They are read where somebody who answered before does
    not, then and at the next look, of runs that waited already, and of all runs every ten minutes:
    who came and went in between has answered no look.
    """
    if not conducted:
        return [], Look()
    tasks = {task["id"] for had in answers.values() for task in had}
    missed = not before.answered <= answers.keys()
    every = missed or not before.left
    waiting = []
    for run in conducted:
        lost = run.tags[TASK_TAG] not in tasks
        if every or run.run_id in before.waiting:
            lost = lost or not _at_work(instance, run) <= answers.keys()
        now = instance.get_run_by_id(run.run_id) if lost else None  # it may have ended meanwhile
        if now and not now.is_finished:
            waiting.append(now)
    left = 0 if missed else LOOKS if every else before.left - 1
    return waiting, Look(set(answers), {run.run_id for run in waiting}, left)


def _at_work(instance: dg.DagsterInstance, run: dg.DagsterRun) -> set[str]:
    """Return the workers that have a step of a run, as the run's events tell."""
    workers: dict[str, str] = {}
    for each in instance.all_logs(run.run_id, of_type={dg.DagsterEventType.ENGINE_EVENT, *ENDS}):
        event = each.dagster_event
        if event is None or event.step_key is None:
            continue
        if event.event_type in ENDS:
            workers.pop(event.step_key, None)
        elif event.event_type is dg.DagsterEventType.ENGINE_EVENT:
            told = event.engine_event_data.metadata.get(WORKER)
            if isinstance(told, dg.TextMetadataValue) and told.text:
                workers[event.step_key] = told.text
    return set(workers.values())
