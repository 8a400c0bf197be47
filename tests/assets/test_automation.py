"""The nightly schedule, and the sensors that publish, follow connections and fail killed runs."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.events import EngineEventData

from assets.definitions import build_defs
from assets.keys import CONNECTIONS, PUBLISHED, raw_key
from assets.raw import SCHEDULED_AT_TAG
from assets.resources import HomeResource
from assets.sensors import is_killed
from pipelines.config.home import Home
from pipelines.config.settings import load_settings
from tests.assets.homes import key
from tests.homes import make_home
from tests.sandbox.running import Running

Status = dg.DagsterRunStatus
EVENTS = {
    Status.FAILURE: dg.DagsterEventType.RUN_FAILURE,
    Status.SUCCESS: dg.DagsterEventType.RUN_SUCCESS,
    Status.CANCELED: dg.DagsterEventType.RUN_CANCELED,
}
READ = frozenset({raw_key("usage")})
OTHER = frozenset({PUBLISHED})


def test_a_tick_requests_today_of_every_connection_with_its_own_time(
    home: Home, tmp_path: Path, sandbox: Running
) -> None:
    make_home(home.root, sandbox, "gamma", skip=["billing"])
    defs = build_defs(load_settings(home))
    due = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=1)
    (tmp_path / "dagster").mkdir()  # on disk: a schedule opens the instance by its folder
    with dg.DagsterInstance.local_temp(str(tmp_path / "dagster")) as instance:

        def tick(due: datetime) -> Any:
            context = dg.build_schedule_context(
                instance, due, repository_def=defs.get_repository_def()
            )
            return defs.resolve_schedule_def("nightly").evaluate_tick(context)

        requests = {str(each.partition_key): each for each in tick(due).run_requests or ()}
        late = tick(due - timedelta(hours=25))
        home.connections_file.unlink()
        without_connections = tick(due)
        registered = set(instance.get_dynamic_partitions(CONNECTIONS))

    assert set(requests) == {key(name) for name in ("acme", "beta", "gamma")}
    request = requests[key("gamma")]
    assert request.tags[SCHEDULED_AT_TAG] == due.isoformat()
    assert request.tags["dagster/partition/connection"] == "gamma"
    assert {asset.path[-1] for asset in request.asset_selection or ()} == {"partners", "usage"}
    assert registered == {"acme", "beta", "gamma"}
    assert not late.run_requests
    assert "Missed by more than a day" in str(late.skip_message)
    assert "names no connection" in str(without_connections.skip_message)


def evaluate(home: Home, instance: dg.DagsterInstance, name: str, cursor: str | None = None) -> Any:
    defs = build_defs(load_settings(home))
    context = dg.build_sensor_context(
        instance,
        cursor,
        repository_def=defs.get_repository_def(),
        resources={"home": HomeResource(path=str(home.root))},
    )
    return defs.resolve_sensor_def(name).evaluate_tick(context)


def add_run(
    instance: dg.DagsterInstance,
    status: Status,
    assets: frozenset[dg.AssetKey] | None = None,
    job: str = "__ASSET_JOB",
    tags: dict[str, str] | None = None,
) -> dg.DagsterRun:
    run = dg.DagsterRun(job, status=Status.STARTED, asset_selection=assets, tags=tags)
    instance.add_run(run)
    if event := EVENTS.get(status):
        instance.report_dagster_event(dg.DagsterEvent(event.value, run.job_name), run.run_id)
    return run


@pytest.mark.parametrize(
    ("runs", "launches"),
    [
        ([(Status.SUCCESS, READ)], True),
        ([(Status.FAILURE, READ)], True),
        ([(Status.CANCELED, READ), (Status.STARTED, None)], True),
        ([(Status.SUCCESS, READ), (Status.STARTED, READ)], False),
        ([(Status.SUCCESS, OTHER)], False),
    ],
)
def test_publishing_follows_the_last_reading_run_however_it_ended_and_once(
    home: Home, instance: dg.DagsterInstance, runs: list[Any], *, launches: bool
) -> None:
    for status, assets in runs:
        add_run(instance, status, assets)

    first = evaluate(home, instance, "publish_after_reads")
    again = evaluate(home, instance, "publish_after_reads", first.cursor)

    assert (len(first.run_requests or ()), again.run_requests or []) == (launches, [])
    assert ("under way: 1." in str(first.skip_message)) == ((Status.STARTED, READ) in runs)


def test_a_publication_whose_process_could_not_start_is_launched_again_once(
    home: Home, instance: dg.DagsterInstance
) -> None:
    lost = add_run(instance, Status.FAILURE, job="publish")

    (request,) = evaluate(home, instance, "publish_after_reads").run_requests

    assert request.run_key == f"again after {lost.run_id}"
    add_run(instance, Status.SUCCESS, job="publish")
    assert not evaluate(home, instance, "publish_after_reads").run_requests


def test_partitions_follow_the_connections_file(home: Home, instance: dg.DagsterInstance) -> None:
    instance.delete_dynamic_partition(CONNECTIONS, "beta")
    instance.add_dynamic_partitions(CONNECTIONS, ["amce", "former"])
    shown = dg.AssetMaterialization(raw_key("usage"), partition=key("former"))
    instance.report_runless_asset_event(shown)

    evaluated = evaluate(home, instance, "connections")

    # `amce` was misspelled in a dialog; `former` has scans.
    assert set(instance.get_dynamic_partitions(CONNECTIONS)) == {"acme", "beta", "former"}
    assert evaluated.skip_message == "Connections: acme, beta. Removed: amce."


def test_the_findings_sensor_runs_the_checks_when_findings_change(
    home: Home, instance: dg.DagsterInstance
) -> None:
    first = evaluate(home, instance, "findings")
    again = evaluate(home, instance, "findings", first.cursor)

    assert len(first.run_requests or ()) == 1
    assert not again.run_requests


def test_a_started_run_without_its_process_is_killed(instance: dg.DagsterInstance) -> None:
    local = {".dagster/grpc_info": '{"host": "localhost", "socket": "a socket"}'}
    here = add_run(instance, Status.STARTED, tags=local)
    elsewhere = add_run(instance, Status.STARTED)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        data = EngineEventData({"pid": dg.MetadataValue.text(str(process.pid))})
        for run in (here, elsewhere):
            instance.report_engine_event("Started process for run", run, data)
        assert not is_killed(instance, here)
        process.kill()
    assert is_killed(instance, here)
    assert not is_killed(instance, elsewhere)
