"""What the code location is made of, and that loading it reads neither homes nor secrets."""

import importlib

import dagster as dg
import pytest

from assets import definitions
from assets.names import Names
from assets.resources import HomeResource
from pipelines.checks.catalogue import CHECKS
from pipelines.config.home import Home
from pipelines.config.settings import load_settings
from pipelines.finance.reconcile.statements import RULES, TABLES
from tests.assets.homes import STREAMS


def test_importing_reads_no_setting_and_loading_does(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARTNER_SYNC_HOME", str(home.root))
    monkeypatch.setenv("PARTNER_SYNC_MISSPELLED", "1")
    importlib.reload(definitions)
    with pytest.raises(dg.Failure, match="PARTNER_SYNC_MISSPELLED: no such field"):
        definitions.defs()


def test_the_definitions_are_complete_and_loadable_without_connections(home: Home) -> None:
    home.connections_file.unlink()
    defs = definitions.deployment(definitions.home_defs(Names(), load_settings(home)))
    dg.Definitions.validate_loadable(defs)
    graph = defs.resolve_asset_graph()
    layers = {f"{layer}/{stream}" for layer in ("raw", "warehouse") for stream in STREAMS}
    names = {key.to_user_string() for key in graph.get_all_asset_keys()}
    tables = {f"reconciliation/{table}" for table in TABLES}
    others = {"service", "published/warehouse", "reports/finance", "exports/tables"}
    assert names == layers | tables | others
    assert {key.to_user_string() for key in graph.external_asset_keys} == {"service"}
    partitioned = [key for key in graph.get_all_asset_keys() if graph.get(key).is_partitioned]
    assert {key.path[0] for key in partitioned} == {"raw"}
    of_lists = {check.code for check in CHECKS if check.scope == "list"}
    names = {key.name for key in graph.asset_check_keys}
    assert names == {*(check.code for check in CHECKS), *RULES}
    for key in graph.asset_check_keys:
        of_rule = "reconciliation" if key.name in RULES else "published"
        assert key.asset_key.path[0] == ("warehouse" if key.name in of_lists else of_rule)
    jobs = {job.name for job in defs.jobs or ()}
    assert jobs == {"nightly_sync", "publish", "checks", "rebuild", "maintenance"}
    assert {each.name for each in defs.schedules or ()} == {"nightly", "weekly_maintenance"}
    sensors = {each.name for each in defs.sensors or ()}
    assert sensors == {"publish_after_reads", "connections", "findings", "killed_runs"}
    assert set(HomeResource.model_fields) == {"path", "name"}  # and no secret
