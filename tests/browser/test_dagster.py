"""Dagster as an operator sees it: the schedule, a backfill, a stopped run, a failed stream."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import select

from assets.raw import BACKFILL_TAG
from pipelines.metadata.tables import Run, Scan
from tests.assets.deployment import LOGS, Deployment, deployed, until
from tests.assets.homes import ONE, STREAMS, Site, days_ago, key, stay_within_a_day
from tests.assets.test_deployment import runs_of_schedule
from tests.browser.operator import Operator, browser
from tests.homes import make_home
from tests.sandbox.running import ENVIRONMENT, SECRET, started

pytestmark = pytest.mark.timeout(900)

NO_SCAN = "The archive has no scan of this day, and the service cannot be asked about the past."
DAYS = 10  # that can be chosen
EVERY_MINUTE = "* * * * *"  # until it has ticked; an operator launches all other runs


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    """A connection with scans of the last and the third last day, and usage of several pages."""
    stay_within_a_day(minutes=6)
    start = days_ago(DAYS - 1).isoformat()
    sizes = ("--partners=25", "--usage=1500", "--billing=50")
    with started("--rate=1000", *sizes) as sandbox, dg.DagsterInstance.ephemeral() as unused:
        home = make_home(tmp_path / "home", sandbox, secret="SANDBOX_CLIENT_SECRET")
        site = Site(home, unused, sandbox)
        site.archive_day("acme", 1)
        site.archive_day("acme", 3)
        settings = {"PARTNER_SYNC_START_DATE": start, "PARTNER_SYNC_SCHEDULE": EVERY_MINUTE}
        with deployed(site, **settings, **ENVIRONMENT) as made:
            yield made


def test_schedule_backfill_stopped_run_and_failed_stream(deployment: Deployment) -> None:
    for run in runs_of_schedule(deployment):
        assert run.tags["dagster/partition"] == key("acme")
    with browser(f"http://127.0.0.1:{deployment.port}", "acme") as operator:
        check_backfill(operator, deployment)
        check_stopped_run(operator, deployment)
        check_failed_stream(operator, deployment)
    check_rerun(deployment)
    for run in deployment.runs():
        deployment.ask(LOGS, id=run.run_id)
    assert not any(SECRET in answer for answer in deployment.answers)
    files = [path for path in deployment.home.root.rglob("*") if path.is_file()]
    secret = {path.name for path in files if SECRET.encode() in content(path)}
    assert secret == {"acme-secret"}


def content(path: Path) -> bytes:
    """Return what a file has; nothing if the daemon, which still runs, has just deleted it."""
    with suppress(FileNotFoundError):
        return path.read_bytes()
    return b""


def check_backfill(operator: Operator, deployment: Deployment) -> None:
    """Two days are materialized and published; the day between, which nobody read, is failed."""
    unread = days_ago(2).isoformat()
    dialog = operator.select_days(f"[{days_ago(3)}...{days_ago(1)}]")
    operator.picture("backfill-dialog")
    operator.launch(dialog)
    operator.sees("100% completed", "Failed")
    operator.sees_days("usage", failed=1, materialized=3, missing=DAYS - 4)
    for stream in STREAMS:
        assert deployment.materialized(stream) == {key("acme", day) for day in (0, 1, 3)}
    operator.page.get_by_text(unread).first.click()
    operator.sees(f"acme|{unread}", "failed, and did not materialize this asset.")
    operator.picture("backfill-days", height=720)
    operator.page.get_by_role("button", name="View logs").click()
    operator.filter_log("Steps failed")
    operator.sees("Failure", *(f"acme/{stream} {unread}: {NO_SCAN}" for stream in STREAMS))
    operator.picture("backfill-reason")
    sees_published(operator, deployment)
    operator.picture("published", height=670)


def check_stopped_run(operator: Operator, deployment: Deployment) -> None:
    """A stopped run is canceled, and no day and no run is failed by it; the next one resumes."""
    late = deployment.sandbox.fault("late", "/v2/usage", after=2, value=600.0)
    operator.launch_today()
    until(lambda: deployment.sandbox.befallen(late), "a page that is late")
    operator.terminate()
    operator.sees("Canceled")
    operator.picture("stopped")
    operator.sees_days("usage", failed=1, materialized=3, missing=DAYS - 4)
    with deployment.database() as db:
        assert "interrupted" in {run.outcome for run in db.scalars(select(Run))}
        scans = select(Scan.scan_id).where(Scan.stream == "usage", Scan.sha256.is_(None))
        (open_scan,) = db.scalars(scans)
    deployment.sandbox.reset()
    operator.launch_today()
    operator.sees("Success")
    operator.filter_log("resuming")
    operator.sees("usage: resuming the interrupted scan of")
    operator.picture("resumed", height=480)
    until(lambda: newest_scan(deployment) == open_scan, "the materialization of the resumed scan")
    failed = [run for run in deployment.runs() if run.status is dg.DagsterRunStatus.FAILURE]
    assert [BACKFILL_TAG in run.tags for run in failed] == [True]


def newest_scan(deployment: Deployment) -> object:
    return deployment.shown(ONE.raw("usage"))[key("acme")]["scan_id"]


def check_failed_stream(operator: Operator, deployment: Deployment) -> None:
    """A stream that cannot be read is failed with the reason; the others are materialized."""
    deployment.sandbox.fault("scope-revoked", "/v2/billing")
    operator.launch_today()
    operator.sees("Failure")
    operator.filter_log("Steps failed")
    operator.sees(f"acme/billing {days_ago(0)}: The service answered /v2/billing with status 403")
    operator.picture("failed-stream")
    operator.sees_days("billing", failed=2, materialized=2)
    operator.sees_days("usage", failed=1, materialized=3)
    sees_published(operator, deployment)
    operator.page.goto("/runs")
    operator.sees("publish_a", "Canceled", "Failure", "Failed")
    operator.picture("runs")


def check_rerun(deployment: Deployment) -> None:
    """A failed day is materialized once it has a scan."""
    deployment.sandbox.reset()
    deployment.archive_day("acme", 2)
    assert deployment.ended(deployment.run(key("acme", 2))) == "SUCCESS"
    for stream in STREAMS:
        assert key("acme", 2) in deployment.materialized(stream)


def sees_published(operator: Operator, deployment: Deployment) -> None:
    """See that the sensor has published what was read, once all runs have ended."""

    def is_idle() -> bool:
        runs = deployment.runs()
        return all(run.is_finished for run in runs) and runs[0].job_name == "publish"

    until(is_idle, "the run of `publish`")
    operator.page.goto("/assets/published/warehouse?view=events")
    operator.sees(f"Materialized in run {deployment.runs('publish')[0].run_id[:8]}")
    operator.page.goto("/assets")
    operator.sees("published / warehouse", "Materialized")
