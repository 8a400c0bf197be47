"""The DAGSTER_HOME we ship: what it is set to, made ready, rid of old runs, and of lost ones."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.events import EngineEventData

from assets import published, register, retention
from assets.lost import SERVER_TAG, WORDS, lost_runs
from tests.assets.deployment import CHECKOUT

LOCAL = json.dumps({"host": "localhost", "socket": "/tmp/ours"})  # noqa: S108 nothing opens it
ELSEWHERE = json.dumps({"host": "worker.example.com", "port": 4000})


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "dagster"
    home.mkdir()
    shutil.copyfile(CHECKOUT / "assets" / "dagster.yaml", home / "dagster.yaml")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    monkeypatch.setenv("PARTNER_SYNC_HOME", str(tmp_path / "home"))
    config = tmp_path / "home" / "config"
    config.mkdir(parents=True)
    (config / "connections.toml").write_text(
        "[shop]\nsurface = 'merchant'\nbase_url = 'https://api.example.com'\nsecret = 'A_KEY'\n"
    )
    return home


def test_a_home_is_made_ready_with_its_connections_and_its_limits(
    shipped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert register.main() == 0

    assert capsys.readouterr().out == "connections that can be chosen in Dagster: shop\n"
    with dg.DagsterInstance.from_config(str(shipped)) as instance:
        assert instance.get_dynamic_partitions("connections") == ["shop"]
        assert instance.run_monitoring_enabled
        assert instance.run_monitoring_max_runtime_seconds == 12 * 3600
        assert instance.run_retries_enabled
        assert not instance.run_retries_retry_on_asset_or_op_failure
        assert not instance.telemetry_enabled
        queue = instance.get_concurrency_config().run_queue_config
        assert queue
        assert queue.tag_concurrency_limits == [{"key": "dagster/backfill", "limit": 2}]
        assert queue.max_concurrent_runs == 4


def test_without_a_configuration_registering_is_refused_in_words(
    shipped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (shipped.parent / "home" / "config" / "connections.toml").write_text("")

    assert register.main() == 2

    assert capsys.readouterr().err.startswith("no connection was registered: ")


FIRST, SECOND = DAYS = ["a|2026-11-20", "a|2026-11-21"]


@dg.asset(key=published.KEY, partitions_def=dg.StaticPartitionsDefinition(DAYS))
def warehouse() -> None:
    """Stand for the last link of a night."""


def test_old_runs_are_deleted_but_for_what_a_partition_is_told_by(
    instance: dg.DagsterInstance,
) -> None:
    for day in (FIRST, SECOND, FIRST):
        assert dg.materialize([warehouse], instance=instance, partition_key=day).success
    tomorrow, first = datetime.now(UTC) + timedelta(days=1), date(2026, 11, 20)

    assert retention.delete(instance, tomorrow - timedelta(days=2), first) == 0
    assert retention.delete(instance, tomorrow, first) == 1

    assert instance.get_materialized_partitions(published.KEY) == set(DAYS)
    assert len(instance.get_runs()) == 2
    assert retention.delete(instance, tomorrow, first) == 0
    assert retention.delete(instance, tomorrow, date(2026, 11, 21)) == 1
    assert instance.get_materialized_partitions(published.KEY) == {SECOND}


@pytest.fixture
def worker() -> Iterator[int]:
    """A process that looks like a run's."""
    sleeping = "import time; time.sleep(60)  # spawn_main"
    with subprocess.Popen([sys.executable, "-c", sleeping]) as process:
        yield process.pid
        process.kill()


def begun(instance: dg.DagsterInstance, tag: str, number: int) -> str:
    """Record a run that has begun in a process; return its id."""
    run = dg.DagsterRun(
        job_name="nightly_sync", status=dg.DagsterRunStatus.STARTED, tags={SERVER_TAG: tag}
    )
    instance.add_run(run)
    instance.report_engine_event("Started", run, EngineEventData.in_process(number))
    return run.run_id


def test_runs_without_a_process_are_failed_and_others_are_left_alone(
    instance: dg.DagsterInstance, worker: int
) -> None:
    works = begun(instance, LOCAL, worker)
    lost = begun(instance, LOCAL, 2**22 + 1)  # greater than any process number
    remote = begun(instance, ELSEWHERE, 2**22 + 1)

    with dg.build_sensor_context(instance=instance) as context:
        told = lost_runs(context)

    assert isinstance(told, dg.SkipReason)
    assert told.skip_message == f"runs without a process: {lost}"
    status = {run.run_id: run.status for run in instance.get_runs()}
    failed, going = dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.STARTED
    assert status == {works: going, lost: failed, remote: going}
    words = [each.dagster_event.message for each in instance.all_logs(lost) if each.dagster_event]
    assert WORDS in words
