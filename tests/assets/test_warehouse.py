"""The job `publish`: what is built, what the checks say, and what is never green."""

import dagster as dg

from assets.keys import PUBLISHED, table_key
from pipelines.config.home import Home
from tests.assets.homes import (
    STREAMS,
    archive_day,
    failure_text,
    key,
    materialized,
    run_job,
    run_raw,
)
from tests.homes import rows
from tests.sandbox.running import Running

USAGE_ROWS = "SELECT count(*) FROM current.usage"


def checks(result: dg.ExecuteInProcessResult) -> dict[str, bool]:
    return {
        f"{each.asset_key.to_user_string()} {each.check_name}": each.passed
        for each in result.get_asset_check_evaluations()
    }


def test_without_a_read_nothing_is_materialized_and_unknown_checks_fail(
    home: Home, instance: dg.DagsterInstance
) -> None:
    text = failure_text(run_job(home, instance, "publish"), "build")

    assert "no list has been read yet" in text
    assert instance.get_latest_materialization_event(PUBLISHED) is None
    assert not home.link.exists()
    result = run_job(home, instance, "checks")
    assert result.success
    assert set(checks(result).values()) == {False}


def test_a_version_of_all_connections_is_published_and_checked(
    home: Home, instance: dg.DagsterInstance
) -> None:
    run_raw(home, instance, key("acme"), key("beta"))

    result = run_job(home, instance, "publish")

    assert result.success
    assert rows(home, USAGE_ROWS) == [(120,)]
    for stream in STREAMS:
        assert instance.get_latest_materialization_event(table_key(stream))
    event = instance.get_latest_materialization_event(PUBLISHED)
    assert event
    assert event.asset_materialization
    metadata = {name: value.value for name, value in event.asset_materialization.metadata.items()}
    assert (metadata["version"], metadata["scans loaded"], metadata["rows new"]) == (1, 6, 170)
    assert set(checks(result).values()) == {True}


def test_what_was_read_is_published_although_another_stream_failed(
    home: Home, instance: dg.DagsterInstance, sandbox: Running
) -> None:
    sandbox.fault("scope-revoked", "/v2/usage")
    text = failure_text(run_raw(home, instance, key("acme")))
    assert "acme/usage" in text
    assert "acme/billing" not in text
    assert (materialized(instance, "usage"), materialized(instance, "billing")) == (
        set(),
        {key("acme")},
    )

    result = run_job(home, instance, "publish")

    assert result.success
    assert rows(home, "SELECT count(*) FROM current.billing") == [(20,)]
    failed = {name for name, passed in checks(result).items() if not passed}
    assert "warehouse/usage list_not_loaded" in failed


def test_publishing_again_rebuilding_and_maintenance_need_no_request(
    home: Home, instance: dg.DagsterInstance, sandbox: Running
) -> None:
    archive_day(home, "acme", 0, "usage")
    run_job(home, instance, "publish")
    before = sandbox.statistics()["admitted"]

    assert run_job(home, instance, "publish").success
    assert home.link.readlink().name == "v00000001.duckdb"
    assert run_job(home, instance, "rebuild").success
    assert home.link.readlink().name == "v00000002.duckdb"
    assert run_job(home, instance, "maintenance").success
    assert sandbox.statistics()["admitted"] == before
    assert rows(home, USAGE_ROWS) == [(60,)]

    damaged = next(home.archive.glob("acme/usage/*"))
    damaged.chmod(0o600)
    damaged.write_bytes(damaged.read_bytes()[:-40])
    assert str(damaged) in failure_text(run_job(home, instance, "maintenance"), "verify_archive")
