"""What is materialized, for which partitions, with which proof, and what fails."""

import os
import signal
import threading
import time
from datetime import timedelta

import dagster as dg
import pytest
from sqlalchemy import select

from assets.raw import SCHEDULED_AT_TAG, read_request
from assets.scans import DayScan, NoScan, scans_of_day
from pipelines.app.progress import NoProgress
from pipelines.app.session import open_session
from pipelines.app.sync import ReadRequest
from pipelines.config.connections import add_connection
from pipelines.config.home import Home
from pipelines.core.clock import SystemClock
from pipelines.metadata.tables import Run, Scan
from tests.assets.homes import (
    STREAMS,
    archive_day,
    days_ago,
    failure_text,
    key,
    log_text,
    materialized,
    proofs,
    run_raw,
    today,
)
from tests.sandbox.running import SECRET, Running


def requests(sandbox: Running) -> int:
    return int(sandbox.statistics()["admitted"])


def test_today_is_read_and_each_partition_carries_its_proof(
    home: Home, instance: dg.DagsterInstance
) -> None:
    result = run_raw(home, instance, key("acme", today()))

    assert result.success
    for stream in STREAMS:
        assert materialized(instance, stream) == {key("acme", today())}
    proof = proofs(instance, "usage")[key("acme", today())]
    assert str(proof["proof"]).startswith("usage: COMPLETE. 60 rows, ")
    assert proof["rows"] == proof["dagster/partition_row_count"] == 60
    assert (proof["method"], proof["source"]) == ("one_page", "service")
    assert proof["scan_id"]
    assert SECRET not in log_text(instance, result)


def test_past_days_are_shown_without_a_request_and_days_without_a_scan_fail_alone(
    home: Home, instance: dg.DagsterInstance, sandbox: Running
) -> None:
    archive_day(home, "acme", days_ago(3))
    archive_day(home, "acme", days_ago(1), ["usage"])
    before = requests(sandbox)

    result = run_raw(home, instance, key("acme", days_ago(3)), key("acme", days_ago(1)))

    assert not result.success
    assert requests(sandbox) == before
    good, bad, half = (key("acme", days_ago(days)) for days in (3, 2, 1))
    assert materialized(instance, "usage") == {good, half}
    assert materialized(instance, "billing") == materialized(instance, "partners") == {good}
    scans = {day: proof["scan_id"] for day, proof in proofs(instance, "usage").items()}
    assert len(set(scans.values())) == 2
    assert proofs(instance, "usage")[good]["source"] == "archive"
    text = failure_text(result)
    assert f"acme/usage {days_ago(2)}: The archive has no scan" in text
    assert f"acme/billing {days_ago(1)}" in text
    assert f"acme/usage {days_ago(1)}" not in text
    assert bad not in {*materialized(instance, "usage"), *materialized(instance, "billing")}


def test_a_range_of_good_days_succeeds_with_a_proof_for_each_day(
    home: Home, instance: dg.DagsterInstance
) -> None:
    archive_day(home, "acme", days_ago(1))

    result = run_raw(home, instance, key("acme", days_ago(1)), key("acme", today()))

    assert result.success
    shown = proofs(instance, "billing")
    assert {day: proof["source"] for day, proof in shown.items()} == {
        key("acme", days_ago(1)): "archive",
        key("acme", today()): "service",
    }
    assert len({proof["scan_id"] for proof in shown.values()}) == 2


def test_one_run_may_hold_two_connections_and_each_is_read(
    home: Home, instance: dg.DagsterInstance
) -> None:
    result = run_raw(home, instance, key("acme", today()), key("beta", today()))

    assert result.success
    assert materialized(instance, "usage") == {key("acme", today()), key("beta", today())}


def test_a_failed_stream_does_not_hold_back_the_others(
    home: Home, instance: dg.DagsterInstance, sandbox: Running
) -> None:
    sandbox.fault("scope-revoked", "/v2/usage")

    result = run_raw(home, instance, key("acme", today()))

    assert not result.success
    assert materialized(instance, "usage") == set()
    assert materialized(instance, "billing") == {key("acme", today())}
    assert f"acme/usage {today()}: " in failure_text(result)


def test_a_misspelled_connection_fails_by_name_and_creates_nothing(
    home: Home, instance: dg.DagsterInstance, sandbox: Running
) -> None:
    instance.add_dynamic_partitions("connections", ["amce"])
    before = requests(sandbox)

    result = run_raw(home, instance, key("amce", today()))

    assert not result.success
    assert "There is no connection `amce`. Connections: acme, beta." in failure_text(result)
    assert requests(sandbox) == before
    assert not (home.archive / "amce").exists()


def test_streams_that_a_connection_skips_are_neither_read_nor_marked(
    home: Home, instance: dg.DagsterInstance, sandbox: Running
) -> None:
    add_connection(home.connections_file, "gamma", {**sandbox.connection, "skip": ["billing"]})
    instance.add_dynamic_partitions("connections", ["gamma"])

    result = run_raw(home, instance, key("gamma", today()))

    assert result.success
    assert materialized(instance, "billing") == set()
    assert materialized(instance, "usage") == {key("gamma", today())}


def test_a_scheduled_run_reads_again_what_was_read_before_its_tick(
    home: Home, instance: dg.DagsterInstance, sandbox: Running
) -> None:
    run_raw(home, instance, key("acme", today()))
    first = proofs(instance, "usage")[key("acme", today())]["scan_id"]
    with open_session(home) as session, session.metadata.transaction() as db:
        began = min(scan.started_at for scan in db.scalars(select(Scan)))
    late = {SCHEDULED_AT_TAG: (began + timedelta(hours=1)).isoformat()}
    early = {SCHEDULED_AT_TAG: (began - timedelta(seconds=1)).isoformat()}

    before = requests(sandbox)
    run_raw(home, instance, key("acme", today()), tags=early)
    assert requests(sandbox) - before <= 1  # the identity at most
    assert proofs(instance, "usage")[key("acme", today())]["scan_id"] == first

    run_raw(home, instance, key("acme", today()), tags=late)
    assert proofs(instance, "usage")[key("acme", today())]["scan_id"] != first


@pytest.mark.parametrize(
    ("tags", "trigger"),
    [
        ({SCHEDULED_AT_TAG: "2026-11-21T02:00:00+00:00"}, "schedule"),
        ({"dagster/backfill": "abc"}, "backfill"),
        ({}, "command"),
    ],
)
def test_the_application_learns_what_launched_a_run(tags: dict[str, str], trigger: str) -> None:
    request = read_request("acme", ("usage",), tags)
    assert request.trigger == trigger
    assert (request.scheduled_at is not None) == (trigger == "schedule")


class MidnightClock(SystemClock):
    """A clock that shows the last second of yesterday once, and today from then on."""

    asked = False

    def time(self) -> float:
        now = time.time()
        if self.asked:
            return now
        self.asked = True
        return now - now % 86_400 - 1


def test_a_scan_that_began_after_midnight_counts_for_the_day_on_which_it_began(home: Home) -> None:
    with open_session(home, clock=MidnightClock()) as session:
        request = ReadRequest("acme", ("partners",))
        found = scans_of_day(session, days_ago(1), request, NoProgress())

    scan, missing = found
    assert isinstance(scan, DayScan)
    assert scan.day == today()
    assert isinstance(missing, NoScan)
    assert missing.day == days_ago(1)
    assert f"a scan that began on {today()}, so it counts for that day" in missing.reason


def test_a_stopped_run_is_interrupted_for_the_application_and_can_be_resumed(
    home: Home, instance: dg.DagsterInstance, sandbox: Running
) -> None:
    number = sandbox.fault("late", "/v2/usage", value=30.0)
    stop = threading.Thread(target=_stop_when, args=(sandbox, number))
    stop.start()

    result = run_raw(home, instance, key("acme", today()))

    stop.join()
    assert not result.success
    with open_session(home) as session, session.metadata.transaction() as db:
        assert [run.outcome for run in db.scalars(select(Run))] == ["interrupted"]
        open_scans = [scan.stream for scan in db.scalars(select(Scan)) if scan.sha256 is None]
    assert "usage" in open_scans


def _stop_when(sandbox: Running, fault: int) -> None:
    """Interrupt this process, as Dagster does, once a request waits for its answer."""
    end = time.monotonic() + 60
    while not sandbox.befallen(fault) and time.monotonic() < end:
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGINT)
