"""The nightly schedule, and the sensors that publish, follow connections and fail killed runs."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.events import EngineEventData

from assets.keys import CONNECTIONS, PUBLISHED, raw_key
from assets.raw import SCHEDULED_AT_TAG
from assets.resources import HomeResource
from assets.sensors import is_killed
from tests.assets.homes import Site, key
from tests.homes import make_home

Status = dg.DagsterRunStatus
EVENTS = {
    Status.FAILURE: dg.DagsterEventType.RUN_FAILURE,
    Status.SUCCESS: dg.DagsterEventType.RUN_SUCCESS,
    Status.CANCELED: dg.DagsterEventType.RUN_CANCELED,
}
READ, OTHER = frozenset({raw_key("usage")}), frozenset({PUBLISHED})


def test_a_tick_requests_today_of_each_connection_with_its_time(site: Site, tmp_path: Path) -> None:
    make_home(site.home.root, site.sandbox, "gamma", skip=["billing"])
    defs, due = site.defs, datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=1)
    (tmp_path / "dagster").mkdir()  # on disk: a schedule opens the instance by its folder
    with dg.DagsterInstance.local_temp(str(tmp_path / "dagster")) as instance:

        def tick(due: datetime) -> Any:
            repository = defs.get_repository_def()
            context = dg.build_schedule_context(instance, due, repository_def=repository)
            return defs.resolve_schedule_def("nightly").evaluate_tick(context)

        requests = {str(each.partition_key): each for each in tick(due).run_requests or ()}
        late = tick(due - timedelta(hours=25))
        site.home.connections_file.unlink()
        assert "names no connection" in str(tick(due).skip_message)
        assert set(instance.get_dynamic_partitions(CONNECTIONS)) == {"acme", "beta", "gamma"}
    assert set(requests) == {key(name) for name in ("acme", "beta", "gamma")}
    request = requests[key("gamma")]
    assert request.tags[SCHEDULED_AT_TAG] == due.isoformat()
    assert request.tags["dagster/partition/connection"] == "gamma"
    assert {asset.path[-1] for asset in request.asset_selection or ()} == {"partners", "usage"}
    assert not late.run_requests
    assert "Missed by more than a day" in str(late.skip_message)


def evaluate(site: Site, name: str, cursor: str | None = None) -> Any:
    defs, home = site.defs, HomeResource(path=str(site.home.root))
    options: dict[str, Any] = {"repository_def": defs.get_repository_def()}
    context = dg.build_sensor_context(site.instance, cursor, resources={"home": home}, **options)
    return defs.resolve_sensor_def(name).evaluate_tick(context)


def add_run(
    site: Site, status: Status, assets: frozenset[dg.AssetKey] | None = None, **values: Any
) -> dg.DagsterRun:
    """Add a run, by default of a selection of assets."""
    values = {"job_name": "__ASSET_JOB", **values}
    run = dg.DagsterRun(status=Status.STARTED, asset_selection=assets, **values)
    site.instance.add_run(run)
    if event := EVENTS.get(status):
        site.instance.report_dagster_event(dg.DagsterEvent(event.value, run.job_name), run.run_id)
    return run


READS = {
    "succeeded": ([(Status.SUCCESS, READ)], True),
    "failed": ([(Status.FAILURE, READ)], True),
    "canceled beside another run": ([(Status.CANCELED, READ), (Status.STARTED, None)], True),
    "another one is under way": ([(Status.SUCCESS, READ), (Status.STARTED, READ)], False),
    "no reading run": ([(Status.SUCCESS, OTHER)], False),
}


@pytest.mark.parametrize(("runs", "launches"), READS.values(), ids=READS)
def test_publishing_follows_the_last_reading_run_however_it_ended_and_once(
    site: Site, runs: list[Any], *, launches: bool
) -> None:
    for status, assets in runs:
        add_run(site, status, assets)
    first = evaluate(site, "publish_after_reads")
    again = evaluate(site, "publish_after_reads", first.cursor)
    assert (len(first.run_requests or ()), again.run_requests or []) == (launches, [])
    assert ("under way: 1." in str(first.skip_message)) == ((Status.STARTED, READ) in runs)


def test_a_publication_whose_process_could_not_start_is_launched_again_once(site: Site) -> None:
    lost = add_run(site, Status.FAILURE, job_name="publish")
    (request,) = evaluate(site, "publish_after_reads").run_requests
    assert request.run_key == f"again after {lost.run_id}"
    add_run(site, Status.SUCCESS, job_name="publish")
    assert not evaluate(site, "publish_after_reads").run_requests


def test_partitions_follow_the_connections_file(site: Site) -> None:
    instance = site.instance
    instance.delete_dynamic_partition(CONNECTIONS, "beta")
    instance.add_dynamic_partitions(CONNECTIONS, ["amce", "former"])
    shown = dg.AssetMaterialization(raw_key("usage"), partition=key("former"))
    instance.report_runless_asset_event(shown)
    evaluated = evaluate(site, "connections")
    # `amce` was misspelled in a dialog; `former` has scans.
    assert set(instance.get_dynamic_partitions(CONNECTIONS)) == {"acme", "beta", "former"}
    assert evaluated.skip_message == "Connections: acme, beta. Removed: amce."


def test_the_findings_sensor_runs_the_checks_when_findings_change(site: Site) -> None:
    first = evaluate(site, "findings")
    assert len(first.run_requests or ()) == 1
    assert not evaluate(site, "findings", first.cursor).run_requests


def test_a_started_run_without_its_process_is_killed(site: Site) -> None:
    local = {".dagster/grpc_info": '{"host": "localhost", "socket": "a socket"}'}
    here = add_run(site, Status.STARTED, tags=local)
    elsewhere = add_run(site, Status.STARTED)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        data = EngineEventData({"pid": dg.MetadataValue.text(str(process.pid))})
        for run in (here, elsewhere):
            site.instance.report_engine_event("Started process for run", run, data)
        assert not is_killed(site.instance, here)
        process.kill()
    assert [is_killed(site.instance, run) for run in (here, elsewhere)] == [True, False]
