"""The chain in Dagster: what materializes, what is marked, and what fails only in the last step."""

from pathlib import Path

import dagster as dg
import duckdb
import httpx
import pytest

from assets.definitions import defs
from pipelines.cli.sandbox import Service
from pipelines.reports import REPORTS
from pipelines.streams import STREAMS
from pipelines.warehouse import conflicts
from tests.assets.conftest import ON_DISK, TODAY, Materialize, yesterday

SCHEMAS = ("archive", "current", "history")
KEYS = {f"{group}/{stream.name}" for group in SCHEMAS for stream in STREAMS} | {
    "published/warehouse"
}
KEYS |= {f"reports/{report.name}" for report in REPORTS}


def admitted(service: Service) -> int:
    """Return how many requests the service has admitted."""
    return int(httpx.get(f"{service.url}/__sandbox__/statistics").json()["admitted"])


def materialized(result: dg.ExecuteInProcessResult) -> set[str]:
    """Return the assets that a run materialized."""
    return {
        event.asset_key.to_user_string()
        for event in result.all_events
        if event.is_step_materialization and event.asset_key
    }


def why(result: dg.ExecuteInProcessResult) -> str:
    """Return the words with which the last step failed."""
    failure = result.failure_data_for_node("published__warehouse")
    assert failure is not None
    assert failure.error is not None
    return failure.error.message


@ON_DISK
def test_today_is_read_folded_and_published_and_the_secret_is_in_no_log(
    materialize: Materialize, instance: dg.DagsterInstance, service: Service, tmp_path: Path
) -> None:
    result = materialize()

    assert result.success
    assert materialized(result) == KEYS
    assert all(each.passed for each in result.get_asset_check_evaluations())
    with duckdb.connect(tmp_path / "home" / "warehouse.duckdb", read_only=True) as reader:
        assert reader.execute("SELECT count(*) FROM current.usage").fetchone() == (600,)
    log = " ".join(str(entry) for entry in instance.all_logs(result.run_id))
    assert "usage" in log
    assert service.environment["PARTNER_SYNC_CLIENT_SECRET"] not in log


def test_a_day_that_was_read_costs_no_request_unless_it_is_to_be_read_again(
    materialize: Materialize, service: Service
) -> None:
    materialize()
    before = admitted(service)

    assert materialize().success
    assert admitted(service) == before

    assert materialize(refetch=True).success

    # Whoami, the pages, and on a slow machine two guesses at most.
    assert admitted(service) - before - (1 + 1 + 3 + 1) in {0, 1, 2}


def test_an_unread_past_day_fails_in_the_last_step_after_today_was_published(
    materialize: Materialize, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    result = materialize(yesterday(), TODAY)

    assert not result.success
    failed = [event.step_key for event in result.all_events if event.is_step_failure]
    assert failed == ["published__warehouse"]
    words = why(result)
    assert f"default|{yesterday()}: billing was not read on {yesterday()}" in words
    assert f"default|{TODAY}" not in words
    key = dg.AssetKey(["published", "warehouse"])
    assert instance.get_materialized_partitions(key) == {f"default|{TODAY}"}
    with duckdb.connect(tmp_path / "home" / "warehouse.duckdb", read_only=True) as reader:
        assert reader.execute("SELECT count(*) FROM current.billing").fetchone() == (60,)
    assert_each_day_has_its_own_rows(instance)


def assert_each_day_has_its_own_rows(instance: dg.DagsterInstance) -> None:
    """Compare what a range run said of a day that was read, and of one that was not."""
    key = dg.AssetKey(["archive", "usage"])
    records = instance.fetch_materializations(key, limit=10).records
    metadata = {
        record.partition_key: record.asset_materialization.metadata
        for record in records
        if record.asset_materialization
    }
    today = metadata[f"default|{TODAY}"]
    assert today["dagster/partition_row_count"].value == 600
    assert int(str(today["requests"].value)) in {3, 4, 5}  # two guesses at most
    assert today["429s"].value == 0
    assert str(today["proof"].value).startswith("usage: COMPLETE. 600 rows, ")
    unread = metadata[f"default|{yesterday()}"]
    assert "dagster/partition_row_count" not in unread
    assert str(unread["status"].value).startswith("not read: usage was not read on")


def test_a_forbidden_service_fails_and_publishes_nothing(
    materialize: Materialize, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARTNER_SYNC_CLIENT_SECRET", "wrong")

    result = materialize()

    assert not result.success
    evaluations = {each.check_name: each.passed for each in result.get_asset_check_evaluations()}
    assert evaluations == {
        "read_to_its_end": False,
        "proven": False,
        "no_repeated_rows": True,
        "interface_unchanged": True,
        "folded": False,
        "nothing_lost": True,
        "row_count_kept": True,
        "keys_are_unique": True,
        "required_fields": True,
        "columns_unchanged": True,
        "as_described": True,
    }
    assert "no token: 401" in why(result)
    assert not (tmp_path / "home" / "warehouse.duckdb").exists()


def test_a_key_twice_in_a_page_fails_its_check_and_the_other_is_set_aside(
    materialize: Materialize, service: Service, tmp_path: Path
) -> None:
    materialize()  # settles which field is the key
    faults = f"{service.url}/__sandbox__/faults"
    fault = {"name": "key-twice", "path": "/v2/partners"}
    httpx.post(faults, json=fault, trust_env=False).raise_for_status()
    try:
        result = materialize(refetch=True)
    finally:
        httpx.delete(faults, trust_env=False)

    assert result.success
    unique = {
        each.asset_key.path[-1]: each.passed
        for each in result.get_asset_check_evaluations()
        if each.check_name == "keys_are_unique"
    }
    assert unique == {"partners": False, "usage": True, "billing": True}
    with duckdb.connect(tmp_path / "home" / "warehouse.duckdb", read_only=True) as reader:
        changed = "SELECT count(*) FROM current.partners WHERE external_id = 'changed'"
        assert reader.execute(changed).fetchone() == (0,)
        aside = reader.execute("SELECT reason FROM quarantine.partners").fetchall()
    assert {reason for (reason,) in aside} == {conflicts.REASON}


def test_a_refetch_that_fails_is_no_success(
    materialize: Materialize, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert materialize().success
    monkeypatch.setenv("PARTNER_SYNC_CLIENT_SECRET", "wrong")

    again = materialize(refetch=True)

    assert not again.success
    assert "no token: 401" in why(again)


def test_the_definitions_load_and_name_their_schedules() -> None:
    dg.Definitions.validate_loadable(defs)
    assert {schedule.name for schedule in defs.schedules or ()} == {"nightly", "freshness"}
    assert {sensor.name for sensor in defs.sensors or ()} >= {
        "connections",
        "lost_runs",
        "failed_runs",
        "alerts",
    }
