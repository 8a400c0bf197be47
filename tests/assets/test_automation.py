"""The nightly schedule, and the sensors that publish, follow connections and fail killed runs."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.events import EngineEventData

from assets.definitions import build_defs
from assets.killed_runs import is_killed
from assets.partitions import CONNECTIONS
from assets.raw import SCHEDULED_AT_TAG
from pipelines.config.connections import add_connection
from pipelines.config.home import Home
from pipelines.config.settings import load_settings
from tests.assets.homes import key, today
from tests.sandbox.running import Running

RAW_USAGE = frozenset({dg.AssetKey(["raw", "usage"])})
Status = dg.DagsterRunStatus


@pytest.fixture
def kept_instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """Yield an instance on disk: a schedule opens it by its folder."""
    folder = tmp_path / "dagster"
    folder.mkdir()
    with dg.DagsterInstance.local_temp(str(folder)) as made:
        yield made


def tick(home: Home, instance: dg.DagsterInstance, due: datetime) -> Any:
    defs = build_defs(load_settings(home))
    context = dg.build_schedule_context(
        instance=instance, scheduled_execution_time=due, repository_def=defs.get_repository_def()
    )
    return defs.resolve_schedule_def("nightly").evaluate_tick(context)


def evaluate(home: Home, instance: dg.DagsterInstance, name: str, cursor: str | None = None) -> Any:
    defs = build_defs(load_settings(home))
    context = dg.build_sensor_context(
        instance=instance, cursor=cursor, repository_def=defs.get_repository_def()
    )
    return defs.resolve_sensor_def(name).evaluate_tick(context)


def test_a_tick_requests_today_of_every_connection_with_its_own_time(
    home: Home, kept_instance: dg.DagsterInstance, sandbox: Running
) -> None:
    add_connection(home.connections_file, "gamma", {**sandbox.connection, "skip": ["billing"]})
    due = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=1)

    requests = {
        str(each.partition_key): each for each in tick(home, kept_instance, due).run_requests or ()
    }

    assert set(requests) == {key(name, today()) for name in ("acme", "beta", "gamma")}
    request = requests[key("gamma", today())]
    assert request.tags[SCHEDULED_AT_TAG] == due.isoformat()
    assert request.tags["dagster/partition/connection"] == "gamma"
    assert {asset.path[-1] for asset in request.asset_selection or ()} == {"partners", "usage"}
    assert set(kept_instance.get_dynamic_partitions(CONNECTIONS)) == {"acme", "beta", "gamma"}


def test_a_tick_that_was_missed_for_more_than_a_day_requests_nothing(
    home: Home, kept_instance: dg.DagsterInstance
) -> None:
    ticked = tick(home, kept_instance, datetime.now(UTC) - timedelta(hours=25))

    assert not ticked.run_requests
    assert "Missed by more than a day" in str(ticked.skip_message)


def test_a_tick_without_connections_says_what_to_do(
    home: Home, kept_instance: dg.DagsterInstance
) -> None:
    home.connections_file.unlink()
    assert "names no connection" in str(tick(home, kept_instance, datetime.now(UTC)).skip_message)


def add_run(instance: dg.DagsterInstance, status: Status, **fields: object) -> dg.DagsterRun:
    values: dict[str, Any] = {"job_name": "__ASSET_JOB", **fields}
    run = dg.DagsterRun(status=Status.STARTED, **values)
    instance.add_run(run)
    if status is Status.STARTED:
        return run
    event = {
        Status.FAILURE: dg.DagsterEventType.RUN_FAILURE,
        Status.SUCCESS: dg.DagsterEventType.RUN_SUCCESS,
        Status.CANCELED: dg.DagsterEventType.RUN_CANCELED,
    }[status]
    instance.report_dagster_event(dg.DagsterEvent(event.value, run.job_name), run.run_id)
    return run


@pytest.mark.parametrize("status", [Status.SUCCESS, Status.FAILURE, Status.CANCELED])
def test_publishing_follows_a_reading_run_however_it_ended_and_once(
    home: Home, instance: dg.DagsterInstance, status: Status
) -> None:
    add_run(instance, status, asset_selection=RAW_USAGE)

    first = evaluate(home, instance, "publish_after_reads")
    again = evaluate(home, instance, "publish_after_reads", first.cursor)

    assert len(first.run_requests or ()) == 1
    assert not again.run_requests


def test_publishing_waits_for_every_reading_run(home: Home, instance: dg.DagsterInstance) -> None:
    add_run(instance, Status.SUCCESS, asset_selection=RAW_USAGE)
    add_run(instance, Status.STARTED, asset_selection=RAW_USAGE)
    add_run(instance, Status.STARTED)

    found = evaluate(home, instance, "publish_after_reads")

    assert not found.run_requests
    assert found.skip_message == "Reading runs that are queued or under way: 1."


def test_a_publication_whose_process_could_not_start_is_launched_again_once(
    home: Home, instance: dg.DagsterInstance
) -> None:
    lost = add_run(instance, Status.FAILURE, job_name="publish")

    (request,) = evaluate(home, instance, "publish_after_reads").run_requests

    assert request.run_key == f"again after {lost.run_id}"
    add_run(instance, Status.SUCCESS, job_name="publish")
    assert not evaluate(home, instance, "publish_after_reads").run_requests


def test_runs_that_read_nothing_are_not_followed(home: Home, instance: dg.DagsterInstance) -> None:
    published = frozenset({dg.AssetKey(["published", "warehouse"])})
    add_run(instance, Status.SUCCESS, asset_selection=published)

    assert not evaluate(home, instance, "publish_after_reads").run_requests


def test_partitions_follow_the_connections_file(home: Home, instance: dg.DagsterInstance) -> None:
    instance.delete_dynamic_partition(CONNECTIONS, "beta")
    instance.add_dynamic_partitions(CONNECTIONS, ["amce", "former"])
    shown = dg.AssetMaterialization(["raw", "usage"], partition=key("former", today()))
    instance.report_runless_asset_event(shown)

    added, deleted = evaluate(home, instance, "connections").dynamic_partitions_requests

    assert list(added.partition_keys) == ["beta"]
    assert list(deleted.partition_keys) == ["amce"]  # misspelled in a dialog; `former` has scans


def test_the_findings_sensor_runs_the_checks_when_findings_change(
    home: Home, instance: dg.DagsterInstance
) -> None:
    first = evaluate(home, instance, "findings")
    again = evaluate(home, instance, "findings", first.cursor)

    assert len(first.run_requests or ()) == 1
    assert not again.run_requests


def test_a_started_run_without_its_process_is_killed(
    instance: dg.DagsterInstance,
) -> None:
    local = {".dagster/grpc_info": '{"host": "localhost", "socket": "a socket"}'}
    runs = {}
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        for name, tags in (("here", local), ("elsewhere", {})):
            runs[name] = add_run(instance, Status.STARTED, tags=tags)
            instance.report_engine_event(
                "Started process for run",
                runs[name],
                EngineEventData({"pid": dg.MetadataValue.text(str(process.pid))}),
            )
        assert not is_killed(instance, runs["here"])
        process.kill()
    assert is_killed(instance, runs["here"])
    assert not is_killed(instance, runs["elsewhere"])
