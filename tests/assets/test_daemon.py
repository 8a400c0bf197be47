"""The nightly run by the clock, in real processes, and what kill -9 does to it: nothing."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import duckdb
import pytest

from tests.assets import kept
from tests.assets.deployment import Deployment, deployed, until
from tests.sandbox.running import sandboxed

pytestmark = [pytest.mark.daemon, pytest.mark.timeout(900)]

# Some 30 requests that take their time: most of a run is reading.
LISTS = ("--rate=0", "--latency-ms=1500", "--partners=400", "--usage=1500", "--billing=1500")
ENOUGH = 6  # pages linked, when it is killed
Ended = dg.DagsterRunStatus


# Due every minute, however long a busy machine takes to start the daemon; the first tick of a day
# alone has a run.
MINUTELY = "* * * * *"


@pytest.fixture
def night(tmp_path: Path) -> Iterator[Deployment]:
    """Yield a daemon whose schedule has fired, and whose run has linked some pages."""
    with sandboxed(*LISTS) as service:
        environment = {
            **service.environment,
            "PARTNER_SYNC_WINDOW": "0",
            "PARTNER_SYNC_SCHEDULE": MINUTELY,
        }
        with deployed(tmp_path, environment) as deployment:
            deployment.daemon()
            until(lambda: len(kept.linked(tmp_path / "home")) >= ENOUGH, "pages of the nightly run")
            yield deployment


def ended(deployment: Deployment, count: int) -> list[dg.DagsterRun]:
    """Wait until there are so many runs and all of them are over."""

    def over() -> list[dg.DagsterRun] | None:
        runs = deployment.runs()
        done = len(runs) == count and all(run.is_finished for run in runs)
        return runs if done else None

    return until(over, f"the end of {count} runs", 400)


def assert_whole(home: Path) -> None:
    """Compare what is published with what the service has."""
    with duckdb.connect(home / "warehouse.duckdb", read_only=True) as reader:
        counts = [
            reader.execute(f"SELECT count(*) FROM current.{stream}").fetchone()
            for stream in ("partners", "usage", "billing")
        ]
    assert counts == [(400,), (1500,), (1500,)]


def test_the_schedule_fires_by_the_clock_and_the_run_outlives_its_daemon_and_code_server(
    night: Deployment, tmp_path: Path
) -> None:
    (run,) = night.runs()
    today = datetime.now(UTC).date().isoformat()
    assert run.tags["dagster/partition"] == f"default|{today}"
    assert run.tags["dagster/schedule_name"] == "nightly"
    assert run.tags["dagster/max_runtime"] == "43200"
    servers = [each for each, command in night.below().items() if "spawn_main" not in command]

    night.kill(*servers)  # the daemon among them; the run's own process goes on
    killed = time.time()
    night.daemon()

    (run,) = ended(night, 1)
    assert run.status == Ended.SUCCESS
    assert_whole(tmp_path / "home")
    with night.instance() as instance:  # and what comes next can be launched
        until(lambda: _ticked(instance, killed), "a tick after the kill")


def _ticked(instance: dg.DagsterInstance, since: float) -> bool:
    sensors = instance.all_instigator_state()
    ticks = [
        tick
        for each in sensors
        for tick in instance.get_ticks(each.instigator_origin_id, each.selector_id, after=since)
    ]
    return any(tick.status.value == "SKIPPED" for tick in ticks)


def test_a_run_whose_every_process_is_killed_is_tried_again_and_completes_the_night(
    night: Deployment, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    night.kill(*night.below())
    linked, before = kept.linked(home), kept.requests(home)
    assert len(linked) >= ENOUGH
    assert [run.status for run in night.runs()] == [Ended.STARTED]

    night.daemon()

    lost, again = ended(night, 2)
    assert (lost.status, again.status) == (Ended.FAILURE, Ended.SUCCESS)
    assert again.parent_run_id == lost.run_id
    assert again.tags["dagster/schedule_name"] == "nightly"
    assert kept.asked(home, before) & linked == set()
    assert_whole(home)
