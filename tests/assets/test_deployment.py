"""Real processes over GraphQL: the schedule, backfills, reruns, a stopped run, secrets."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from pipelines.app.session import open_session
from pipelines.metadata.tables import Run, Scan
from tests.assets.deployment import BACKFILL, TERMINATE, Deployment, deployed, until
from tests.assets.homes import archive_day, days_ago, key, new_home, today
from tests.sandbox.running import ENVIRONMENT, SECRET, Running, started

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

EVERY_MINUTE = "* * * * *"


@pytest.fixture
def sandbox() -> Iterator[Running]:
    """Lists of several pages, so that a run can be stopped within one."""
    with started("--rate", "0", "--partners", "25", "--usage", "1500", "--billing", "50") as made:
        yield made


@pytest.fixture
def deployment(
    tmp_path: Path, sandbox: Running, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Deployment]:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    home = new_home(tmp_path / "home", sandbox, "acme", "beta")
    archive_day(home, "acme", days_ago(2))
    archive_day(home, "beta", days_ago(2), ["usage"])
    environment = {**ENVIRONMENT, "PARTNER_SYNC_SCHEDULE": EVERY_MINUTE}
    with deployed(home, environment) as made:
        yield made


def finished(deployment: Deployment, job: str, status: str) -> str | None:
    return next((run["runId"] for run in deployment.runs(job) if run["status"] == status), None)


def idle(deployment: Deployment) -> bool:
    ends = {"SUCCESS", "FAILURE", "CANCELED"}
    return all(run["status"] in ends for run in deployment.runs())


def test_schedule_backfill_and_stopped_run_over_graphql(
    deployment: Deployment, sandbox: Running
) -> None:
    check_schedule(deployment)
    check_backfill(deployment, sandbox)
    check_stopped_run(deployment, sandbox)
    check_secrets(deployment)


def check_schedule(deployment: Deployment) -> None:
    """The tick of a minute reads each connection in a run of its own; one publication follows."""
    until(lambda: len(deployment.runs("nightly_sync")) >= 2, "the tick of a minute")
    deployment.stop_schedule("nightly")
    until(lambda: finished(deployment, "publish", "SUCCESS"), "the publication")
    until(lambda: idle(deployment), "the end of all runs")

    assert deployment.home.link.exists()
    runs = deployment.runs("nightly_sync")
    assert {run["status"] for run in runs} == {"SUCCESS"}, deployment.errors()
    tags = [{tag["key"]: tag["value"] for tag in run["tags"]} for run in runs]
    assert {tag["dagster/partition"] for tag in tags} == {
        key("acme", today()),
        key("beta", today()),
    }
    assert all("partner-sync/scheduled_at" in tag for tag in tags)
    assert len(deployment.runs("publish")) <= len(runs)


def check_backfill(deployment: Deployment, sandbox: Running) -> None:
    """Days with a scan are materialized without a request, the others fail alone."""
    before = sandbox.statistics()["admitted"]
    days = [key(name, days_ago(day)) for name in ("acme", "beta") for day in (1, 2)]

    state = deployment.ended(deployment.backfill(days))

    assert state["status"] == "COMPLETED_FAILED"
    assert sandbox.statistics()["admitted"] == before
    assert deployment.partitions() == expected_states("failed")

    archive_day(deployment.home, "acme", days_ago(1))
    state = deployment.ended(deployment.backfill([key("acme", days_ago(1))]))

    assert state["status"] == "COMPLETED_SUCCESS"
    assert deployment.partitions() == expected_states("materialized")


def expected_states(acme_yesterday: str) -> dict[str, dict[str, str]]:
    """Today was read by the schedule; two days ago `acme` has scans, `beta` one of `usage`."""
    states = {
        stream: {
            key("acme", today()): "materialized",
            key("beta", today()): "materialized",
            key("acme", days_ago(1)): acme_yesterday,
            key("beta", days_ago(1)): "failed",
            key("acme", days_ago(2)): "materialized",
            key("beta", days_ago(2)): "failed",
        }
        for stream in ("billing", "partners", "usage")
    }
    states["usage"][key("beta", days_ago(2))] = "materialized"
    return states


def check_stopped_run(deployment: Deployment, sandbox: Running) -> None:
    """A run that a person stops is canceled, not failed, and the next one resumes its scan."""
    number = sandbox.fault("late", "/v2/usage", after=2, value=30.0)
    backfill = deployment.backfill([key("acme", today())])
    run = until(lambda: started_run(deployment, backfill), "the start of the run")
    until(lambda: sandbox.befallen(number), "a page that is late")

    deployment.ask(TERMINATE, id=run)
    until(lambda: idle(deployment), "the end of the run")

    assert next(each["status"] for each in deployment.runs() if each["runId"] == run) == "CANCELED"
    with open_session(deployment.home) as session, session.metadata.transaction() as db:
        assert "interrupted" in {each.outcome for each in db.scalars(select(Run))}
        scans = select(Scan.scan_id).where(Scan.stream == "usage", Scan.sha256.is_(None))
        (open_scan,) = db.scalars(scans)
    sandbox.reset()

    state = deployment.ended(deployment.backfill([key("acme", today())]))

    assert state["status"] == "COMPLETED_SUCCESS"
    with open_session(deployment.home) as session, session.metadata.transaction() as db:
        assert db.get_one(Scan, open_scan).sha256


def started_run(deployment: Deployment, backfill: str) -> str | None:
    runs = deployment.ask(BACKFILL, id=backfill)["runs"]
    return next((str(run["runId"]) for run in runs if run["status"] == "STARTED"), None)


def check_secrets(deployment: Deployment) -> None:
    """No file of Dagster and no answer of the webserver holds the secret."""
    until(lambda: idle(deployment), "the end of all runs")
    deployment.stop()
    assert not any(SECRET in answer for answer in deployment.answers)
    files = [path for path in deployment.home.root.rglob("*") if path.is_file()]
    assert files
    assert [path.name for path in files if SECRET.encode() in path.read_bytes()] == []
