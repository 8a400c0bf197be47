"""Real processes over GraphQL: the schedule, backfills, reruns, a stopped run, secrets.

Where there is a browser, tests/browser/test_dagster.py tries the same on one connection.
"""

from collections.abc import Iterator

import dagster as dg
import pytest
from sqlalchemy import select

from assets.names import connection_days
from assets.raw import BACKFILL_TAG, RANGE_END_TAG, RANGE_START_TAG, SCHEDULED_AT_TAG
from pipelines.config.settings import load_settings
from pipelines.metadata.tables import Run, Scan
from tests.assets.deployment import LOGS, TERMINATE, Deployment, deployed, until
from tests.assets.homes import ONE, RAW, STREAMS, Site, key, stay_within_a_day
from tests.browser.install import find_chromium
from tests.sandbox.running import ENVIRONMENT, SECRET, Running, started

IN_BROWSER = pytest.mark.slow if find_chromium() else pytest.mark.long
pytestmark = [IN_BROWSER, pytest.mark.timeout(900)]

NO_SCANS = {
    *((stream, "beta", 1) for stream in STREAMS),
    *((stream, "beta", 2) for stream in STREAMS if stream != "usage"),
}


@pytest.fixture
def sandbox() -> Iterator[Running]:
    """Lists of several pages, so that a run can be stopped within one."""
    sizes = ("--partners=25", "--usage=1500", "--billing=50")
    with started("--rate=1000", *sizes) as made:
        yield made


def test_schedule_backfill_rerun_and_stopped_run(site: Site) -> None:
    """All cases share one deployment. The daemon looks for backfills every 30 s: no case waits."""
    stay_within_a_day(minutes=6)
    site.archive_day("acme", 2)
    site.archive_day("beta", 2, "usage")
    with deployed(site, PARTNER_SYNC_SCHEDULE="* * * * *", **ENVIRONMENT) as deployment:
        days = [key(name, day) for name in ("acme", "beta") for day in (1, 2)]
        backfill = deployment.backfill(days)
        check_schedule(deployment)
        check_days_of_backfill(deployment, backfill)
        check_rerun(deployment)
        check_stopped_run(deployment)
        check_publication(deployment)
        assert deployment.backfill_ended(backfill) == "COMPLETED_FAILED"
        for run in deployment.runs():
            deployment.ask(LOGS, id=run.run_id)
    assert not any(SECRET in answer for answer in deployment.answers)
    files = [path for path in site.home.root.rglob("*") if path.is_file()]
    secret = {path.name for path in files if SECRET.encode() in path.read_bytes()}
    assert secret == {"acme-secret", "beta-secret"}


def check_schedule(deployment: Deployment) -> None:
    """The tick of a minute reads all connections in one run."""
    for run in runs_of_schedule(deployment):
        assert [run.tags[name] for name in (RANGE_START_TAG, RANGE_END_TAG)] == [
            key("acme"),
            key("beta"),
        ]


def runs_of_schedule(deployment: Deployment) -> list[dg.DagsterRun]:
    """Stop the schedule once it has ticked; return its runs, which succeeded."""

    def ticked() -> list[dg.DagsterRun] | None:
        runs = [run for run in deployment.runs("nightly_sync") if SCHEDULED_AT_TAG in run.tags]
        return runs or None

    until(ticked, "the tick of a minute")
    deployment.stop_schedule("nightly")
    runs = ticked() or []
    assert {deployment.ended(run.run_id) for run in runs} == {"SUCCESS"}
    return runs


def check_days_of_backfill(deployment: Deployment, backfill: str) -> None:
    """Days with a scan are materialized without a request, the others fail alone."""

    def runs() -> list[dg.DagsterRun] | None:
        found = [run for run in deployment.runs() if run.tags.get(BACKFILL_TAG) == backfill]
        return found if len(found) == 2 else None  # one for each day

    for run in until(runs, "the runs of the backfill"):
        assert deployment.ended(run.run_id) == "FAILURE"
    assert failed(deployment) == NO_SCANS | {(stream, "acme", 1) for stream in STREAMS}
    with deployment.database() as db:
        assert "backfill" not in {run.trigger for run in db.scalars(select(Run))}  # none has read


def check_rerun(deployment: Deployment) -> None:
    """A failed day is materialized once it has a scan."""
    deployment.archive_day("acme", 1)
    assert deployment.ended(deployment.run(key("acme", 1))) == "SUCCESS"
    assert failed(deployment) == NO_SCANS


def failed(deployment: Deployment) -> set[tuple[str, str, int]]:
    """Return where a stream, connection and day failed; all others have to be materialized."""
    days = connection_days(ONE, load_settings(deployment.home))
    keys = {key(name, day): (name, day) for name in ("acme", "beta") for day in range(3)}
    found: dict[tuple[str, str, int], str] = {}
    for stream in STREAMS:
        states = deployment.instance.get_status_by_partition(ONE.raw(stream), list(keys), days)
        assert states
        found |= {(stream, *keys[each]): state.value for each, state in states.items() if state}
    assert len(found) == len(STREAMS) * len(keys)
    assert set(found.values()) == {"MATERIALIZED", "FAILED"}
    return {name for name, state in found.items() if state == "FAILED"}


def check_stopped_run(deployment: Deployment) -> None:
    """A run that a person stops is canceled, not failed, and the next one resumes its scan."""
    sandbox = deployment.sandbox
    number = sandbox.fault("late", "/v2/usage", after=2, value=30.0)
    run = deployment.run(key("acme"))
    until(lambda: sandbox.befallen(number), "a page that is late")
    deployment.ask(TERMINATE, id=run)
    assert deployment.ended(run) == "CANCELED"
    with deployment.database() as db:
        assert "interrupted" in {each.outcome for each in db.scalars(select(Run))}
        scans = select(Scan.scan_id).where(Scan.stream == "usage", Scan.sha256.is_(None))
        (open_scan,) = db.scalars(scans)
    sandbox.reset()
    assert deployment.ended(deployment.run(key("acme"))) == "SUCCESS"
    with deployment.database() as db:
        assert db.get_one(Scan, open_scan).sha256


def check_publication(deployment: Deployment) -> None:
    """One publication follows runs that read, once none of them is left."""

    def is_published() -> bool:
        is_idle = all(run.is_finished for run in deployment.runs())
        return is_idle and any(run.is_success for run in deployment.runs("publish"))

    until(is_published, "the publication")
    assert deployment.home.link.exists()
    selections = [run.asset_selection or () for run in deployment.runs()]
    assert len(deployment.runs("publish")) <= sum(RAW[0] in each for each in selections)
