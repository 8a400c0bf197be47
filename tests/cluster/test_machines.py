"""Two workers of different hosts: the real schedule, a kill, one publication."""

import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import dagster as dg
import psycopg
import pytest

from pipelines.app.pull import pull
from pipelines.config.home import Home
from pipelines.core.errors import PartnerSyncError
from tests.cluster.servers import Cluster, started_cluster
from tests.end_to_end.test_accounts import GOOD, ROWS, accounts, add_good
from tests.homes import rows
from tests.s3_server import NAME
from tests.sandbox.running import Running

USAGE = 40_000  # rows of each account: 80 requests, 16 seconds
FIRST = 20  # requests before the kill
READING = """
SELECT split_part(owner, ':', 1), count(*) FROM runs WHERE ended_at IS NULL GROUP BY 1
"""
RUNS = "SELECT split_part(owner, ':', 1), connection, outcome FROM runs ORDER BY started_at"
T = TypeVar("T")


def until(found: Callable[[], T], what: str, seconds: float = 400) -> T:
    """Wait for something; fail in words when the seconds are over."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if there := found():
            return there
        time.sleep(0.5)
    raise AssertionError(f"{what}: not within {seconds} s")


def settings() -> str:
    """Let the schedule tick once, soon; a run reads two of the four accounts."""
    tick = datetime.now(UTC) + timedelta(seconds=120)
    return f'connections_at_once = 2\nschedule = "{tick.minute} {tick.hour} * * *"\n'


def query(cluster: Cluster, sql: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(cluster.postgresql.url) as connection:
        return connection.execute(sql).fetchall()


def reading(cluster: Cluster) -> dict[str, int]:
    """Return how many connections each host reads; none before the tables are there."""
    with suppress(psycopg.errors.UndefinedTable):
        return dict(query(cluster, READING))
    return {}


def all_ended(instance: dg.DagsterInstance) -> bool:
    return all(run.is_finished for run in instance.get_runs())


def page_requests(service: Running) -> dict[str, int]:
    return dict(service.statistics()["requests"].get("/v2/usage", {}))


def pulled(cluster: Cluster, folder: Path) -> list[tuple[Any, ...]]:
    """Return what an analyst sees, whose machine has the bucket only; nothing at first."""
    with suppress(PartnerSyncError):
        pull(folder, f"s3://{NAME}/home", cluster.bucket.endpoint)
    home = Home(folder)
    return rows(home, ROWS) if home.link.is_symlink() else []


def test_a_worker_is_killed_and_the_night_ends_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with accounts(tmp_path, "--usage", str(USAGE)) as service, started_cluster() as cluster:
        made = add_good(tmp_path / "made", service)
        config = made.settings_file.parent
        cluster.configure(config, ("worker-a", "worker-b", "code-server"), settings())
        for name, value in cluster.environment.items():
            monkeypatch.setenv(name, value)
        with dg.DagsterInstance.get() as instance:  # creates its tables, before two do at once
            assert instance.get_runs() == []
        for machine in ("worker-a", "worker-b"):
            cluster.start_worker(machine)
        cluster.start_code_server()
        cluster.start_daemon()
        until(lambda: reading(cluster) == {"worker-a": 2, "worker-b": 2}, "both workers read")
        until(lambda: page_requests(service).get("200", 0) > FIRST, "some pages are read")
        cluster.kill("worker-a")
        expected = [(name, USAGE) for name in sorted(GOOD)]
        analyst = tmp_path / "analyst"
        until(lambda: pulled(cluster, analyst) == expected, "everything is published")
        with dg.DagsterInstance.get() as instance:
            until(lambda: all_ended(instance), "every run of Dagster has ended")
            statuses = [(run.job_name, run.status.value) for run in instance.get_runs()]
        assert page_requests(service).keys() == {"200"}
        ended = query(cluster, RUNS)
    killed = {connection for host, connection, _outcome in ended if host == "worker-a"}
    complete = {connection for host, connection, outcome in ended if outcome == "complete"}
    assert len(killed) == len(GOOD) / 2
    assert complete == set(GOOD)
    assert {outcome for host, _connection, outcome in ended if host == "worker-a"} == {
        "interrupted"
    }
    assert Counter(statuses)[("nightly_sync", "FAILURE")] == 1  # it was retried
    assert Counter(statuses)[("nightly_sync", "SUCCESS")] == len(GOOD) / 2
    assert ("publish", "SUCCESS") in statuses
