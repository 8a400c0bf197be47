"""The job `publish`: what is built, what the checks say, and what is never green."""

import dagster as dg
import duckdb

from pipelines.config.home import Home
from tests.assets.homes import STREAMS, archive_day, failure_text, key, run_job, run_raw, today
from tests.sandbox.running import Running

PUBLISHED = dg.AssetKey(["published", "warehouse"])


def rows(home: Home, stream: str) -> int:
    with duckdb.connect(home.link, read_only=True) as db:
        found = db.sql(f"SELECT count(*) FROM current.{stream}").fetchone()
    assert found
    return int(found[0])


def checks(result: dg.ExecuteInProcessResult) -> dict[str, bool]:
    return {
        f"{each.asset_key.to_user_string()} {each.check_name}": each.passed
        for each in result.get_asset_check_evaluations()
    }


def test_without_a_read_nothing_is_materialized(home: Home, instance: dg.DagsterInstance) -> None:
    result = run_job(home, instance, "publish")

    assert not result.success
    assert "no list has been read yet" in failure_text(result, "build")
    assert instance.get_latest_materialization_event(PUBLISHED) is None
    assert not home.link.exists()


def test_a_version_of_all_connections_is_published_and_checked(
    home: Home, instance: dg.DagsterInstance
) -> None:
    run_raw(home, instance, key("acme", today()), key("beta", today()))

    result = run_job(home, instance, "publish")

    assert result.success
    assert rows(home, "usage") == 120
    for stream in STREAMS:
        assert instance.get_latest_materialization_event(dg.AssetKey(["warehouse", stream]))
    event = instance.get_latest_materialization_event(PUBLISHED)
    assert event
    assert event.asset_materialization
    metadata = {name: value.value for name, value in event.asset_materialization.metadata.items()}
    assert (metadata["version"], metadata["scans loaded"], metadata["rows new"]) == (1, 6, 170)
    evaluated = checks(result)
    assert evaluated
    assert [name for name, passed in evaluated.items() if not passed] == []


def test_what_was_read_is_published_although_another_stream_failed(
    home: Home, instance: dg.DagsterInstance, sandbox: Running
) -> None:
    sandbox.fault("scope-revoked", "/v2/usage")
    assert not run_raw(home, instance, key("acme", today())).success

    result = run_job(home, instance, "publish")

    assert result.success
    assert rows(home, "billing") == 20
    evaluated = checks(result)
    assert not all(passed for name, passed in evaluated.items() if "warehouse/usage" in name)


def test_the_checks_job_reports_unknown_as_failed(home: Home, instance: dg.DagsterInstance) -> None:
    result = run_job(home, instance, "checks")

    assert result.success
    assert not all(checks(result).values())


def test_publishing_again_rebuilding_and_maintenance_need_no_request(
    home: Home, instance: dg.DagsterInstance, sandbox: Running
) -> None:
    archive_day(home, "acme", today(), ["usage"])
    run_job(home, instance, "publish")
    before = sandbox.statistics()["admitted"]

    assert run_job(home, instance, "publish").success
    assert home.link.readlink().name == "v00000001.duckdb"
    assert run_job(home, instance, "rebuild").success
    assert home.link.readlink().name == "v00000002.duckdb"
    assert run_job(home, instance, "maintenance").success

    assert sandbox.statistics()["admitted"] == before
    assert rows(home, "usage") == 60


def test_maintenance_names_a_damaged_scan_file(home: Home, instance: dg.DagsterInstance) -> None:
    archive_day(home, "acme", today(), ["usage"])
    damaged = next(home.archive.glob("acme/usage/*"))
    damaged.chmod(0o600)
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 0xFF
    damaged.write_bytes(content)

    result = run_job(home, instance, "maintenance")

    assert not result.success
    assert str(damaged) in failure_text(result, "verify_archive")
