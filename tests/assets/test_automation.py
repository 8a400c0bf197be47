"""The nightly schedule, and the sensors that publish, follow connections and fail killed runs."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.errors import DagsterUserCodeExecutionError

from assets.raw import RANGE_END_TAG, RANGE_START_TAG, SCHEDULED_AT_TAG
from assets.resources import HOME_TAG, PROCESS_TAG, HomeResource
from pipelines.metadata.processes import this_process
from tests.assets.homes import ONE, STREAMS, Site, key
from tests.homes import make_home

Status = dg.DagsterRunStatus
EVENTS = {
    Status.FAILURE: dg.DagsterEventType.RUN_FAILURE,
    Status.SUCCESS: dg.DagsterEventType.RUN_SUCCESS,
    Status.CANCELED: dg.DagsterEventType.RUN_CANCELED,
}
READ, OTHER = frozenset({ONE.raw("usage")}), frozenset({ONE.published})


@pytest.mark.long
def test_a_tick_requests_today_of_groups_of_connections(site: Site, tmp_path: Path) -> None:
    make_home(site.home.root, site.sandbox, "gamma", skip=["billing"])
    make_home(site.home.root, site.sandbox, "idle", skip=["partners", "usage", "billing"])
    defs, due = site.defs, datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=1)
    (tmp_path / "dagster").mkdir()  # on disk: a schedule opens the instance by its folder
    with dg.DagsterInstance.local_temp(str(tmp_path / "dagster")) as instance:

        def tick(due: datetime) -> Any:
            repository = defs.get_repository_def()
            with dg.build_schedule_context(instance, due, repository_def=repository) as context:
                return defs.resolve_schedule_def("nightly").evaluate_tick(context)

        (whole,) = tick(due).run_requests
        site.home.settings_file.write_text("connections_at_once = 1\n")
        defs = site.defs
        requests = {str(each.partition_key): each for each in tick(due).run_requests or ()}
        late = tick(due - timedelta(hours=25))
        says = misspell(site.home.connections_file)
        with pytest.raises(DagsterUserCodeExecutionError) as failed:
            tick(due)
        assert re.search(says, str(failed.value.user_exception))
        names = instance.get_dynamic_partitions(ONE.connections)
        assert sorted(names) == ["acme", "beta", "gamma", "idle"]
    assert [whole.tags[name] for name in (RANGE_START_TAG, RANGE_END_TAG)] == [
        key("acme"),
        key("gamma"),
    ]
    assert whole.tags[SCHEDULED_AT_TAG] == due.isoformat()
    assert {asset.path[-1] for asset in whole.asset_selection or ()} == set(STREAMS)
    assert set(requests) == {key(name) for name in ("acme", "beta", "gamma")}
    request = requests[key("gamma")]
    assert request.tags[SCHEDULED_AT_TAG] == due.isoformat()
    assert request.tags["dagster/partition/connection"] == "gamma"
    assert {asset.path[-1] for asset in request.asset_selection or ()} == {"partners", "usage"}
    assert not late.run_requests
    assert "Missed by more than a day" in str(late.skip_message)


def misspell(file: Path) -> str:
    """Write a field that does not exist into a file; return what has to be said of it."""
    text = file.read_text() if file.exists() else ""
    file.write_text(text.replace("[beta]", "[beta]\nadress = 'x'") or "adress = 'x'")
    return rf"adress: no such field\. Correct {file}"


def evaluate(
    site: Site, name: str, cursor: str | None = None, defs: dg.Definitions | None = None
) -> Any:
    defs, home = defs or site.defs, HomeResource(path=str(site.home.root))
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
    assert ("queued or running: 1." in str(first.skip_message)) == ((Status.STARTED, READ) in runs)


def test_publishing_follows_a_run_of_a_machine_whose_clock_is_wrong(site: Site) -> None:
    add_run(site, Status.SUCCESS, READ)
    first = evaluate(site, "publish_after_reads")
    assert len(first.run_requests) == 1
    run = add_run(site, Status.STARTED, READ)
    an_hour_ago = (datetime.now(UTC) - timedelta(hours=1)).timestamp()
    ended = dg.DagsterEvent(EVENTS[Status.SUCCESS].value, run.job_name)
    site.instance.report_dagster_event(ended, run.run_id, timestamp=an_hour_ago)
    later = evaluate(site, "publish_after_reads", first.cursor)
    assert len(later.run_requests) == 1
    # The cursor of an earlier release is a time.
    time = datetime.now(UTC).isoformat()
    assert evaluate(site, "publish_after_reads", time).cursor == later.cursor


def test_partitions_follow_the_connections_file(site: Site) -> None:
    instance = site.instance
    instance.delete_dynamic_partition(ONE.connections, "beta")
    instance.add_dynamic_partitions(ONE.connections, ["amce", "former"])
    shown = dg.AssetMaterialization(ONE.raw("usage"), partition=key("former"))
    instance.report_runless_asset_event(shown)
    evaluated = evaluate(site, "connections")
    # `amce` was misspelled in a dialog; `former` has scans.
    assert set(instance.get_dynamic_partitions(ONE.connections)) == {"acme", "beta", "former"}
    assert evaluated.skip_message == "Connections: acme, beta. Removed: amce."


@pytest.mark.parametrize("name", ["connections", "findings"])
@pytest.mark.parametrize("file", ["connections_file", "settings_file"])
def test_a_misspelled_field_fails_the_tick_and_names_the_file(
    site: Site, name: str, file: str
) -> None:
    defs, says = site.defs, misspell(getattr(site.home, file))
    with pytest.raises(dg.Failure, match=says):
        evaluate(site, name, defs=defs)


def test_the_findings_sensor_runs_the_checks_when_findings_change(site: Site) -> None:
    first = evaluate(site, "findings")
    assert len(first.run_requests or ()) == 1
    assert not evaluate(site, "findings", first.cursor).run_requests


def test_started_runs_whose_process_is_gone_are_failed(site: Site) -> None:
    read = site.run_raw(key("acme"))
    tags = site.instance.get_runs()[0].tags
    assert tags[PROCESS_TAG] == f"{read.run_id} {this_process()}"
    assert tags[HOME_TAG] == "home"
    unknown, alive, dead, retry = (add_run(site, Status.STARTED) for _ in range(4))
    # A later process has the same number; a retry has the tags of the run before.
    gone = f"{dead.run_id} {this_process()}1"
    notes = (alive, f"{alive.run_id} {this_process()}"), (dead, gone), (retry, gone)
    for run, note in notes:
        site.instance.add_run_tags(run.run_id, {HOME_TAG: tags[HOME_TAG], PROCESS_TAG: note})
    first = evaluate(site, "killed_runs")  # its process may begin to show itself again
    assert "1 of 3 started runs. Failed, as they had none before: 0." in first.skip_message
    second = evaluate(site, "killed_runs", f"{first.cursor} {alive.run_id}")
    assert "1 of 3 started runs. Failed, as they had none before: 1." in second.skip_message
    started = site.instance.get_runs(dg.RunsFilter(statuses=[Status.STARTED]))
    assert {run.run_id for run in started} == {run.run_id for run in (unknown, alive, retry)}
