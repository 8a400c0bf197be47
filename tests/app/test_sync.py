"""Runs: what each list cost, which scans are used again, and which failure affects what."""

import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pipelines.app.connect import limiter_actor
from pipelines.app.progress import Progress
from pipelines.app.results import ReadRequest, StreamResult
from pipelines.app.sync import read_connection, sync
from pipelines.config.home import Home
from pipelines.core.errors import ExitCode
from pipelines.metadata.runs import Outcome, recent_runs
from pipelines.metadata.tables import RateLimitSlot, Run, Scan
from tests.homes import make_home, opened, rows, sync_once
from tests.sandbox.running import Running

SILENT = Progress()
LISTS = ("/v2/partners", "/v2/usage", "/v2/billing")


class Notes(Progress):
    """Keeps what is reported."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, message: str) -> None:
        """Keep one sentence."""
        self.notes.append(message)


def page_requests(sandbox: Running) -> int:
    counted = sandbox.statistics()["requests"]
    return sum(sum(counted.get(path, {}).values()) for path in LISTS)


def all_runs(home: Home) -> list[Run]:
    with opened(home) as session, session.metadata.transaction() as db:
        return recent_runs(db, 0)


def read(home: Home, request: ReadRequest, progress: Progress = SILENT) -> Sequence[StreamResult]:
    with opened(home) as session:
        return read_connection(session, request, progress)


def fail_billing(sandbox: Running, home: Home) -> StreamResult:
    """Leave an open scan of the bills: one page, then a failure."""
    sandbox.fault("storm-seconds", "/v2/billing", times=1)
    sandbox.fault("redirect", "/v2/billing", after=2)
    (billing,) = sync_once(home, "billing").streams
    sandbox.reset()
    return billing


@pytest.mark.long
def test_a_failed_list_counts_its_requests_and_refusals(sandbox: Running, synced: Home) -> None:
    failed = fail_billing(sandbox, synced)
    assert (failed.state, failed.requests, failed.rate_limited) == (Outcome.FAILED, 3, 1)
    run = all_runs(synced)[0]
    assert (run.outcome, run.requests, run.rate_limited) == ("failed", 3, 1)
    before = page_requests(sandbox)
    (resumed,) = sync_once(synced, "billing").streams
    assert (resumed.state, resumed.source) == (Outcome.COMPLETE, "resumed")
    assert (resumed.requests, resumed.rate_limited) == (page_requests(sandbox) - before, 0)


def test_a_scan_that_is_new_enough_is_used_again(sandbox: Running, synced: Home) -> None:
    before = page_requests(sandbox)
    tick = datetime.now(UTC) - timedelta(days=1)
    used = read(synced, ReadRequest("acme", trigger="schedule", scheduled_at=tick))
    assert {(each.source, each.requests) for each in used} == {("reused", 0)}
    assert page_requests(sandbox) == before
    again = read(synced, ReadRequest("acme", ("partners",), scheduled_at=datetime.now(UTC)))
    assert again[0].source == "read"


def test_the_second_of_two_syncs_waits_and_says_so(sandbox: Running, synced: Home) -> None:
    sandbox.fault("late", "/v2/partners", value=0.7)
    first = threading.Thread(target=sync_once, args=(synced,))
    first.start()
    while first.is_alive() and "/v2/usage" not in sandbox.statistics()["requests"]:
        time.sleep(0.05)
    progress = Notes()
    second = read(synced, ReadRequest("acme", ("usage",)), progress)
    first.join()
    assert progress.notes[0].startswith("Waiting for the lock `sync.acme`, held by process ")
    assert progress.notes[1].startswith("Lists whose last scan began before ")
    assert second[0].source == "read"
    assert [each.outcome for each in all_runs(synced)][:2] == [Outcome.COMPLETE] * 2


@pytest.mark.long
def test_an_open_scan_that_is_old_or_damaged_is_read_again(sandbox: Running, synced: Home) -> None:
    def age(scan: Scan) -> None:
        scan.started_at -= timedelta(hours=25)

    def damage(scan: Scan) -> None:
        synced.archive.joinpath(f"{scan.file}.open").write_bytes(b"")

    for number, harm in enumerate((age, damage), 1):
        fail_billing(sandbox, synced)
        with opened(synced) as session, session.metadata.transaction() as db:
            harm(db.query(Scan).filter_by(status="open").one())
        (billing,) = sync_once(synced, "billing").streams
        assert (billing.state, billing.source) == (Outcome.COMPLETE, "read")
        with opened(synced) as session, session.metadata.transaction() as db:
            assert db.query(Scan).filter_by(status="abandoned").count() == number


def test_a_connection_without_credentials_stops_no_other(sandbox: Running, tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", sandbox, "first")
    (home.root / "config" / "first-secret").unlink()
    make_home(home.root, sandbox, "second")
    with opened(home) as session:
        result = sync(session, [ReadRequest("first"), ReadRequest("second")], Progress())
        account = limiter_actor(session, session.settings.connection("second"))
        with session.metadata.transaction() as db:
            # What asked for the account counts, so that the first sync sends not one too many.
            assert {slot.actor for slot in db.query(RateLimitSlot)} == {account}
    assert sandbox.statistics()["requests"]["/v2/whoami"] == {"200": 1}
    assert result.exit_code == ExitCode.NEEDS_ATTENTION
    assert {each.connection for each in result.streams if each.scan} == {"second"}
    assert rows(home, "SELECT DISTINCT connection FROM meta.loads") == [("second",)]
