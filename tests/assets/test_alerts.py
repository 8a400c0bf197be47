"""Dagster's sensors for alerts: a failed run is in the ledger and told, and nothing is launched."""

from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest

from assets.alerts import alerts, failed_runs
from assets.freshness import deadlines
from pipelines import run
from pipelines.settings import load
from pipelines.state import runs
from tests.virtual import EPOCH

SET = {
    **dict.fromkeys(("BASE_URL", "AUTH_URL"), "https://127.0.0.1:9"),
    **dict.fromkeys(("AUDIENCE", "CLIENT_ID"), "nobody"),
}


@dg.op
def breaks() -> None:
    raise dg.Failure("the last step fails")


@dg.job
def breaking() -> None:
    breaks()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in SET.items():
        monkeypatch.setenv(f"PARTNER_SYNC_{name}", value)
    monkeypatch.setenv("PARTNER_SYNC_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.mark.usefixtures("home")
def test_a_run_that_crashed_is_recorded_and_stands_as_an_alert(
    instance: dg.DagsterInstance,
) -> None:
    with dg.build_sensor_context(instance=instance) as context:
        before = alerts(context)
        assert isinstance(before, dg.SkipReason)
        assert before.skip_message == "nothing is the matter"
        result = breaking.execute_in_process(instance=instance, raise_on_error=False)
        with run.open(load()) as session:
            runs.begin(session.ledger, result.run_id, "default", EPOCH.date(), EPOCH)
        failure = dg.build_run_status_sensor_context(
            sensor_name="failed_runs",
            dagster_event=result.get_run_failure_event(),
            dagster_instance=instance,
            dagster_run=result.dagster_run,
        ).for_run_failure()
        failed_runs(failure)
        after = alerts(context)
    with run.open(load()) as session:
        assert runs.latest(session.ledger, 1)[0].outcome == "failed"
    assert isinstance(after, dg.SkipReason)
    assert after.skip_message == "stands: Failed run (default)"


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(("said", "then"), [(None, "failed"), ("published", "partial")])
def test_a_run_that_failed_while_the_ledger_was_away_is_recorded_later(
    instance: dg.DagsterInstance, said: str | None, then: str
) -> None:
    failed = breaking.execute_in_process(instance=instance, raise_on_error=False).run_id
    now = datetime.now(UTC)
    with run.open(load()) as session:
        for connection, name in (("default", failed), ("other", "under way")):
            runs.begin(session.ledger, name, connection, now.date(), now)
        if said:
            runs.end(session.ledger, failed, said, now)
    with dg.build_sensor_context(instance=instance) as context:
        told = alerts(context)
    assert isinstance(told, dg.SkipReason)
    assert told.skip_message == "stands: Failed run (default)"
    with run.open(load()) as session:
        outcomes = {each.run: each.outcome for each in runs.latest(session.ledger, 2)}
    assert outcomes == {failed: then, "under way": None}


@pytest.mark.usefixtures("home")
def test_a_failed_run_that_is_recorded_later_ended_when_it_did(
    instance: dg.DagsterInstance,
) -> None:
    failed = breaking.execute_in_process(instance=instance, raise_on_error=False).run_id
    now = datetime.now(UTC)
    with run.open(load()) as session:
        for name in (failed, "again"):
            runs.begin(session.ledger, name, "default", now.date(), now)
        runs.end(session.ledger, "again", "published", now)
    with dg.build_sensor_context(instance=instance) as context:
        told = alerts(context)
    assert isinstance(told, dg.SkipReason)
    assert told.skip_message == "nothing is the matter"


def test_what_is_not_configured_is_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTNER_SYNC_MISSPELT", "1")
    with dg.build_sensor_context() as context:
        told = alerts(context)
    with dg.build_schedule_context() as context_of_schedule:
        skipped = deadlines(context_of_schedule)
    for each in (told, skipped):
        assert isinstance(each, dg.SkipReason)
        assert "no such setting: PARTNER_SYNC_MISSPELT" in str(each.skip_message)
    assert not (home / "state").exists()


def test_both_run_unless_somebody_stops_them() -> None:
    assert {each.default_status for each in (alerts, failed_runs)} == {
        dg.DefaultSensorStatus.RUNNING
    }
