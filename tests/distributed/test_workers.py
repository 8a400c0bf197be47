"""Celery's workers by their names: every start has one of its own, and its steps tell the same.

Real processes on a Redis of the test's own; and which steps are at a worker. Not here: what is done
about a worker that is gone (killing).
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from celery import Celery, shared_task
from dagster._core.events import EngineEventData
from msgspec.structs import replace

from assets.workers import LOOKS, TASK_TAG, WORKER, Answers, Look, _at_work, kept, look
from tests.distributed.servers import Redis

CHECKOUT = Path(__file__).parents[2]
PATIENCE = 120.0  # seconds; each worker loads the definitions first
QUEUES = ("one", "other")


def _name_told_to_a_step(task: Any) -> object:
    """Return what a step says of its worker: Dagster's tasks read the same."""
    return task.request.hostname


told: Any = shared_task(_name_told_to_a_step, bind=True, name="told")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[str]:
    server = Redis(tmp_path / "redis")
    server.begin()
    yield server.url(0)
    server.end()


@contextmanager
def _worker(folder: Path, broker: str, queue: str) -> Iterator[None]:
    """Run a worker of a queue, as a deployment begins all of them: with one command."""
    variables = {
        **{name: value for name, value in os.environ.items() if "PARTNER_SYNC" not in name},
        "CELERY_BROKER_URL": broker,
        "CELERY_RESULT_BACKEND": broker,
        "DAGSTER_HOME": str(folder),
        "PARTNER_SYNC_HOME": str(folder),
        "PARTNER_SYNC_EXECUTOR": "celery",
    }
    words = ["-A", "assets.worker", "worker", "-n", "same@%h", "-c", "1", "-Q", queue]
    with (folder / f"{queue}.log").open("wb") as log:
        process = subprocess.Popen(
            [str(Path(sys.executable).with_name("celery")), *words, "-I", __name__],
            env=variables,
            cwd=CHECKOUT,
            stdout=log,
            stderr=log,
        )
    try:
        yield
    finally:
        process.kill()  # its children end with it
        process.wait()


def test_two_workers_that_begin_alike_have_names_of_their_own(tmp_path: Path, broker: str) -> None:
    both = [_worker(tmp_path, broker, queue) for queue in QUEUES]
    with both[0], both[1], Celery(broker=broker, backend=broker) as app:
        asked = [app.send_task("told", queue=queue) for queue in QUEUES]
        names = {each.get(timeout=PATIENCE) for each in asked}
        answered = app.control.inspect(timeout=5.0).active()
    assert len(names) == 2
    assert answered.keys() == names
    assert all(name.startswith("same-") for name in names)


def test_a_step_that_waits_to_be_tried_again_is_at_no_worker() -> None:
    job = dg.GraphDefinition("job").to_job()
    with dg.DagsterInstance.ephemeral() as instance:
        run = instance.create_run_for_job(job)
        begun = EngineEventData({WORKER: "one"})
        instance.report_engine_event("begun", run, begun, step_key="fetch")
        assert _at_work(instance, run) == {"one"}
        waits = dg.DagsterEvent(
            dg.DagsterEventType.STEP_UP_FOR_RETRY.value, job.name, step_key="fetch"
        )
        instance.report_dagster_event(waits, run.run_id)
        assert _at_work(instance, run) == set()


def test_events_are_read_where_a_worker_is_gone_and_every_twentieth_look() -> None:
    here: Answers = {"conductor": [{"id": "task"}], "one": []}
    without: Answers = {"conductor": [{"id": "task"}], "two": []}
    with dg.DagsterInstance.ephemeral() as instance:
        run = instance.create_run_for_job(
            dg.GraphDefinition("job").to_job(), tags={TASK_TAG: "task"}
        )
        instance.report_engine_event(
            "begun", run, EngineEventData({WORKER: "one"}), step_key="fetch"
        )

        def waits(answers: Answers, before: Look) -> tuple[bool, Look]:
            waiting, now = look(instance, [run], answers, before)
            return waiting == [run], now

        assert waits(here, Look()) == (False, quiet := Look(set(here), left=LOOKS))
        assert waits(here, quiet) == (False, Look(set(here), left=LOOKS - 1))
        assert waits(without, quiet) == (True, gone := Look(set(without), {run.run_id}))
        assert waits(without, gone) == (True, Look(set(without), {run.run_id}, LOOKS))
        unseen = Look(set(without), left=1)
        assert waits(without, unseen) == (False, last := Look(set(without), left=0))
        assert waits(without, last) == (True, replace(gone, left=LOOKS))
        assert look(instance, [], {}, last) == ([], Look())


def test_a_run_whose_conductor_is_gone_waits_at_once() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        run = instance.create_run_for_job(
            dg.GraphDefinition("job").to_job(), tags={TASK_TAG: "task"}
        )
        known = Look({"conductor"}, left=LOOKS)
        assert look(instance, [run], {"conductor": [{"id": "other"}]}, known)[0] == [run]


@pytest.mark.parametrize("cursor", [None, "[]", '["a run"]'])
def test_what_an_older_release_kept_is_no_reason_to_fail(cursor: str | None) -> None:
    assert kept(cursor) == Look()
