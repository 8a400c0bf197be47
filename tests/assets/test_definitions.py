"""What the code location is made of, and that loading it reads neither homes nor secrets."""

import importlib

import dagster as dg
import pytest

from assets import definitions
from assets.resources import HomeResource
from pipelines.checks.catalogue import CHECKS
from pipelines.config.home import Home
from pipelines.config.settings import load_settings
from pipelines.core.errors import ConfigurationError
from tests.assets.homes import STREAMS


def test_importing_reads_no_setting_and_loading_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTNER_SYNC_MISSPELLED", "1")

    importlib.reload(definitions)

    with pytest.raises(ConfigurationError, match="no setting PARTNER_SYNC_MISSPELLED"):
        definitions.defs()


def test_the_definitions_are_loadable_without_connections(home: Home) -> None:
    home.connections_file.unlink()
    dg.Definitions.validate_loadable(definitions.build_defs(load_settings(home)))


def test_every_layer_and_the_service_are_in_the_graph(home: Home) -> None:
    graph = definitions.build_defs(load_settings(home)).resolve_asset_graph()

    names = {key.to_user_string() for key in graph.get_all_asset_keys()}
    layers = {f"{layer}/{stream}" for layer in ("raw", "warehouse") for stream in STREAMS}
    assert names == layers | {"service", "published/warehouse"}
    assert {key.to_user_string() for key in graph.external_asset_keys} == {"service"}
    partitioned = {
        key.path[0] for key in graph.get_all_asset_keys() if graph.get(key).is_partitioned
    }
    assert partitioned == {"raw"}


def test_every_check_of_the_catalogue_is_an_asset_check(home: Home) -> None:
    graph = definitions.build_defs(load_settings(home)).resolve_asset_graph()

    assert {key.name for key in graph.asset_check_keys} == {
        check.code.replace("-", "_") for check in CHECKS
    }
    assert {key.asset_key.path[0] for key in graph.asset_check_keys} <= {"warehouse", "published"}


def test_jobs_schedules_and_sensors_have_their_names(home: Home) -> None:
    defs = definitions.build_defs(load_settings(home))

    jobs = {job.name for job in defs.jobs or ()}
    assert jobs == {"nightly_sync", "publish", "checks", "rebuild", "maintenance"}
    assert {each.name for each in defs.schedules or ()} == {"nightly", "weekly_maintenance"}
    assert {each.name for each in defs.sensors or ()} == {
        "publish_after_reads",
        "connections",
        "findings",
        "killed_runs",
    }


def test_the_resource_holds_a_path_and_nothing_else() -> None:
    assert set(HomeResource.model_fields) == {"path"}
