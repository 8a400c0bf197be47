"""One deployment of many homes: each has its own names, and none waits for another or harms it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets import definitions
from assets.definitions import deployment, home_defs, homes_in
from assets.names import Names, register_connections
from assets.resources import HOME_TAG, PROCESS_TAG, HomeResource
from pipelines.config.home import Home
from pipelines.config.homes import HOMES
from pipelines.config.settings import load_settings
from pipelines.metadata.processes import this_process
from tests.assets.homes import ONE, QUIET, Site, failure_text, key
from tests.homes import make_home, rows
from tests.sandbox.running import Running

NORTH, SOUTH, EAST = "north", "south-1", "east"
NAMES = {NORTH: Names("north"), SOUTH: Names("south_1"), EAST: Names("east")}
USAGE_ROWS = "SELECT count(*) FROM current.usage"


def configured(folder: Path, *names: str) -> Path:
    """Return a folder of homes that are configured, and never ask a service."""
    for name in names:
        Home(folder / name).prepare().connections_file.write_text(
            f"[{name}-shop]\nsurface = 'merchant'\nbase_url = 'https://example.com'\n"
            "secret = 'A_KEY'\n"
        )
    return folder


def names_in(defs: dg.Definitions) -> dict[str, set[str]]:
    """Return the names of what Dagster shows of definitions, by their kind."""
    dg.Definitions.validate_loadable(defs)
    repository = defs.get_repository_def()
    jobs = [job for job in repository.get_all_jobs() if not job.name.startswith("__")]
    partitions = [job.partitions_def for job in jobs if job.partitions_def]
    return {
        "assets": {asset.to_user_string() for asset in repository.asset_graph.get_all_asset_keys()},
        "jobs": {job.name for job in jobs},
        "steps": {node.name for job in jobs for node in job.all_node_defs},
        "pools": {step.pool or "none" for job in jobs for step in steps_of(job)},
        "partitions": {name for each in partitions for name in dynamic_names(each)},
        "schedules": {each.name for each in repository.schedule_defs},
        "sensors": {each.name for each in repository.sensor_defs},
        "resources": {*repository.get_top_level_resources()} - {"io_manager"},
    }


def steps_of(job: dg.JobDefinition) -> Iterator[dg.OpDefinition]:
    """Yield the steps of a job, without the job itself."""
    for node in job.all_node_defs:
        if isinstance(node, dg.OpDefinition):
            yield node


def dynamic_names(partitions: dg.PartitionsDefinition[Any]) -> Iterator[str]:
    assert isinstance(partitions, dg.MultiPartitionsDefinition)
    for dimension in partitions.partitions_defs:
        if isinstance(dimension.partitions_def, dg.DynamicPartitionsDefinition):
            assert dimension.partitions_def.name
            yield dimension.partitions_def.name


def groups_in(defs: dg.Definitions) -> set[str | None]:
    graph = defs.resolve_asset_graph()
    return {graph.get(asset).group_name for asset in graph.get_all_asset_keys()}


def test_the_names_of_a_home_of_many_begin_with_its_own(tmp_path: Path) -> None:
    defs = deployment(*homes_in(configured(tmp_path, NORTH, SOUTH, EAST)))
    many = names_in(defs)
    alone = deployment(home_defs(ONE, load_settings(Home(tmp_path / NORTH))))
    for kind, names in names_in(alone).items():
        separator = "/" if kind == "assets" else "__"
        assert names
        wanted = {f"{each.home}{separator}{name}" for each in NAMES.values() for name in names}
        assert many[kind] == wanted
    assert groups_in(defs) == {names.home for names in NAMES.values()}
    layers = {"raw", "warehouse", "published", "reconciliation", "reports", "default"}
    assert groups_in(alone) == layers


def test_a_home_that_cannot_be_read_takes_no_other_one_down(tmp_path: Path) -> None:
    folder = configured(tmp_path, NORTH, EAST, "a-b", "a_b")
    (folder / EAST / "config" / "settings.toml").write_text("schedul = 'x'\n")
    (folder / "around").symlink_to("around")
    (folder / "notes").mkdir()
    defs = deployment(*homes_in(folder))
    names = names_in(defs)
    reasons = {
        EAST: "schedul: no such field. Correct",
        "a_b": "The folders a-b and a_b in .* have the same name in Dagster, a_b: none of these",
        "around": "The home .*/around does not exist",
    }
    assert groups_in(defs) == {NORTH, *reasons}
    assert {name for name in names["jobs"] if not name.startswith(NORTH)} == {
        f"{home}__publish" for home in reasons
    }
    with dg.DagsterInstance.ephemeral() as instance:
        for home, reason in reasons.items():
            asset = defs.resolve_asset_graph().get(Names(home).published)
            assert "This home cannot be read." in (asset.description or "")
            job = defs.resolve_job_def(f"{home}__publish")
            run = job.execute_in_process(instance=instance, raise_on_error=False, run_config=QUIET)
            text = failure_text(run, f"{home}__published__warehouse")
            assert re.search(f"{reason}.* Then reload the code location.", text)
            keys = [run_key(defs, instance, f"{home}__unreadable") for _tick in range(2)]
            assert keys[0] == keys[1]


def run_key(defs: dg.Definitions, instance: dg.DagsterInstance, sensor: str) -> str | None:
    repository = defs.get_repository_def()
    context = dg.build_sensor_context(instance, repository_def=repository)
    (request,) = defs.resolve_sensor_def(sensor).evaluate_tick(context).run_requests or ()
    return request.run_key


@pytest.mark.parametrize("folder", ["homes", "empty", "nowhere"])
def test_the_environment_names_the_folder(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    configured(tmp_path / "homes", NORTH, SOUTH)
    monkeypatch.setenv(HOMES, str(tmp_path / folder))
    if folder == "homes":
        assert groups_in(definitions.defs()) == {"north", "south_1"}
    else:
        with pytest.raises(dg.Failure, match=f"{folder}.* Set {HOMES} to the folder"):
            definitions.defs()


class SiteOfMany(Site):
    """A home of many in one instance."""

    @property
    def defs(self) -> dg.Definitions:
        return deployment(*homes_in(self.home.root.parent))


@pytest.fixture
def sites(tmp_path: Path, sandbox: Running) -> Iterator[list[SiteOfMany]]:
    """Three homes of one deployment, whose connections have the same name."""
    with dg.DagsterInstance.ephemeral() as instance:
        made = list[SiteOfMany]()
        for name, names in NAMES.items():
            home = make_home(tmp_path / "homes" / name, sandbox)
            register_connections(instance, names, load_settings(home))
            made.append(SiteOfMany(home, instance, sandbox, names=names))
        yield made


@pytest.mark.long
def test_what_is_read_and_published_of_a_home_touches_no_other_one(sites: list[SiteOfMany]) -> None:
    north, south, _east = sites
    north.instance.add_dynamic_partitions(north.names.connections, ["another"])
    for site in (north, south):
        assert site.run_raw(key("acme")).success
    assert north.run_job("publish").success
    assert rows(north.home, USAGE_ROWS) == [(60,)]
    assert [site.home.link.exists() for site in sites] == [True, False, False]
    assert [len(site.shown(site.names.published)) for site in sites] == [1, 0, 0]
    assert [site.materialized("usage") for site in sites] == [{key("acme")}, {key("acme")}, set()]
    connections = [site.instance.get_dynamic_partitions(site.names.connections) for site in sites]
    assert connections == [["acme", "another"], ["acme"], ["acme"]]
    assert north.run_export("csv", "current.usage").success
    assert north.run_job("maintenance").success
    assert not south.home.exports.exists()
    south.home.link.symlink_to("nothing of ours")  # what one home cannot do, another one can
    assert not south.run_job("publish").success
    assert north.run_job("rebuild").success
    launched = [evaluate(site, "publish_after_reads").run_requests for site in sites]
    assert [bool(requests) for requests in launched] == [True, True, False]


def test_a_home_fails_no_run_of_another(sites: list[SiteOfMany]) -> None:
    north, south, _east = sites
    run = dg.DagsterRun(job_name="south_1__publish", status=dg.DagsterRunStatus.STARTED)
    north.instance.add_run(run)
    gone = f"{run.run_id} {this_process()}1"
    tags = {HOME_TAG: south.names.resource, PROCESS_TAG: gone}
    north.instance.add_run_tags(run.run_id, tags)
    assert evaluate(north, "killed_runs").skip_message == "No run is started."
    assert "1 of 1 started runs" in str(evaluate(south, "killed_runs").skip_message)


def evaluate(site: SiteOfMany, sensor: str) -> Any:
    """Evaluate a sensor of a home."""
    defs = site.defs
    name = site.names.resource
    resources = {name: HomeResource(path=str(site.home.root), name=name)}
    context = dg.build_sensor_context(
        site.instance, resources=resources, repository_def=defs.get_repository_def()
    )
    return defs.resolve_sensor_def(site.names.of(sensor)).evaluate_tick(context)
