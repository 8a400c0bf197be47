"""The main job over HTTP: what is published is what the service said, and what each list cost.

Which scans are used again, and which failure affects what.
"""

import logging
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import pytest

from pipelines.app import nightly
from pipelines.app.connect import limiter_actor
from pipelines.app.nightly import sync
from pipelines.app.results import LoggedProgress, OnProgress, ReadRequest, StreamResult
from pipelines.app.resume import ELSEWHERE
from pipelines.config.home import Home
from pipelines.core.clock import Clock
from pipelines.core.errors import ExitCode
from pipelines.metadata.runs import Outcome, recent_runs
from pipelines.metadata.tables import RateLimitSlot, Run, Scan
from tests.homes import KEYS, make_home, opened, records, rows, sync_once
from tests.sandbox.running import Running, started
from tests.truth import Held, by_key, current, held, sent

SIZES = ("--rate", "1000", "--partners", "60", "--usage", "600", "--billing", "180")
SETTINGS = "[streams.partners]\nlimit = 20\n[streams.usage]\nlimit = 120\n"
SETTINGS += "[streams.billing]\nlimit = 60\n"
SHORT = '[streams.s]\npath = "/v2/plans"\n[streams.t]\npath = "/v2/organizations"\n'
WAIT_SECONDS = 60  # on a busy machine
RATES = {"insert": 0.5, "delete": 0.5, "update": 3}  # by page
Truth = dict[str, list[str]]


def test_the_same_list_twice_publishes_nothing_that_changed(sandbox: Running, synced: Home) -> None:
    before = page_requests(sandbox)
    result = sync_once(synced)
    assert result.exit_code == ExitCode.DONE
    assert sum(each.requests for each in result.streams) == page_requests(sandbox) - before
    totals = "SELECT new, changed, deleted FROM meta.loads"
    assert sorted(rows(synced, totals)) == [(0, 0, 0)] * 3 + [(25, 0, 0), (150, 0, 0), (1500, 0, 0)]
    assert rows(synced, "SELECT DISTINCT complete FROM meta.completeness") == [(True,)]
    with duckdb.connect(synced.link, read_only=True) as db:
        for stream, key in KEYS.items():
            expected = sent(records(sandbox, stream), key)
            assert current(db, stream) == expected
            assert rows(synced, f"SELECT count(*) FROM history.{stream}") == [(len(expected),)]


def page_requests(sandbox: Running) -> int:
    counted = sandbox.statistics()["requests"]
    return sum(sum(counted.get(f"/v2/{stream}", {}).values()) for stream in KEYS)


def test_two_syncs_of_changing_lists_hold_the_truth(tmp_path: Path) -> None:
    with started(*SIZES) as service:
        home = make_home(tmp_path / "home", service)
        home.settings_file.write_text(SETTINGS)
        truths = [sync_while_changing(home, service, where) for where in ("anywhere", "ends")]
    with duckdb.connect(home.link, read_only=True) as db:
        for stream in KEYS:
            loads = "SELECT valid_time FROM meta.loads WHERE stream = ? ORDER BY valid_time"
            times = [time for (time,) in db.execute(loads, [stream]).fetchall()]
            history = held(db, "history", stream)
            assert_history(history, times, [truth[stream] for truth in truths], KEYS[stream])
            assert_views(db, stream, times, history)


def sync_while_changing(home: Home, service: Running, where: str) -> dict[str, Truth]:
    """Change every list before and during a sync; return what the service showed meanwhile."""
    for stream in KEYS:
        service.change(stream, where=where, **RATES)
        records(service, stream)
    with ExitStack() as stack:
        truth = {stream: stack.enter_context(service.scan(stream)) for stream in KEYS}
        result = sync_once(home)
    assert [str(each.state) for each in result.streams] == ["complete"] * len(KEYS)
    for each in truth.values():
        assert all(each[kind] for kind in RATES)
    return truth


def assert_history(
    history: list[Held], times: list[datetime], truths: list[Truth], key: str
) -> None:
    """Every version of every row is one that the service showed during that sync, none is more."""
    assert {row.valid_from for row in history} <= set(times)
    assert {row.valid_to for row in history} <= {*times[1:], None}
    assert {row.end_reason for row in history} == {"changed", "deleted", None}
    for moment, truth in zip(times, truths, strict=True):
        there, served = valid(history, moment), by_key(truth["served"], key)
        keys = {row.key for row in there}
        assert len(keys) == len(there)
        assert set(truth["lived"]) <= keys <= {*truth["lived"], *truth["insert"], *truth["delete"]}
        assert [row for row in there if row.values not in served[row.key]] == []
        for row in (row for row in history if row.valid_to == moment):
            following = [other.values for other in there if other.key == row.key]
            assert row.end_reason == ("changed" if following else "deleted")
            assert row.values not in following


def assert_views(
    db: duckdb.DuckDBPyConnection, stream: str, times: list[datetime], history: list[Held]
) -> None:
    """`current` and the macro of a moment show the rows that are valid then."""
    assert current(db, stream) == {row.key: row.values for row in valid(history, times[-1])}
    for moment in times:
        keys = db.execute(f"SELECT _key FROM history.{stream}_as_of(?)", [moment]).fetchall()
        assert sorted(keys) == sorted((row.key,) for row in valid(history, moment))


def valid(history: list[Held], time: datetime) -> list[Held]:
    """Return the versions that are valid at a moment."""
    begun = [row for row in history if row.valid_from <= time]
    return [row for row in begun if row.valid_to is None or row.valid_to > time]


def fail_usage(stream: str, rows: int, requests: int, expected_rows: int | None) -> None:
    """Fail as nobody foresaw, within the read of one list."""
    if stream == "acme/usage":
        raise ZeroDivisionError(f"\x1b[2J {rows} {requests} {expected_rows}")


def test_a_defect_in_one_list_does_not_stop_the_others(sandbox: Running, synced: Home) -> None:
    sandbox.fault("redirect", "/v2/billing")
    with opened(synced) as session:
        result = sync(session, [ReadRequest("acme")], fail_usage)
    found = {each.stream: each for each in result.streams}
    states = {stream: str(each.state) for stream, each in found.items()}
    assert states == {"partners": "complete", "usage": "failed", "billing": "failed"}
    assert found["usage"].message.startswith("Unexpected ZeroDivisionError at test_sync.py:")
    assert r"\x1b[2J" in found["usage"].message
    assert "redirect" in found["billing"].message
    assert not any("Traceback" in each.message for each in result.streams)
    assert result.exit_code == ExitCode.NEEDS_ATTENTION
    assert result.build
    assert len(result.build.results) == 1


def test_lists_with_short_names_are_loaded(sandbox: Running, tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", sandbox)
    home.settings_file.write_text(SHORT)
    sync_once(home, "s", "t")
    for name, path in (("s", "/v2/plans"), ("t", "/v2/organizations")):
        held = rows(home, f"SELECT count(*) FROM current.{name}")
        assert held == [(len(sandbox.records(path)),)]


def all_runs(home: Home) -> list[Run]:
    with opened(home) as session, session.metadata.transaction() as db:
        return recent_runs(db, 0)


def read(
    home: Home, request: ReadRequest, on_progress: OnProgress | None = None
) -> Sequence[StreamResult]:
    with opened(home) as session:
        progress = on_progress or LoggedProgress()
        streams, _early = nightly.read(session, [request], progress, publish_early=False)
        return streams


def fail_billing(sandbox: Running, home: Home) -> StreamResult:
    """Leave an open scan of the bills: one page, then a failure."""
    sandbox.fault("storm-seconds", "/v2/billing", times=1)
    sandbox.fault("redirect", "/v2/billing", after=2)
    (billing,) = sync_once(home, "billing").streams
    sandbox.reset()
    return billing


class SetBack(Clock):
    def time(self) -> float:
        return super().time() - 3600


def test_a_sync_after_the_clock_was_set_back_reads_and_loads(synced: Home) -> None:
    request = ReadRequest("acme", ("partners",))
    with opened(synced, clock=SetBack()) as session:
        (partners,) = sync(session, [request], LoggedProgress()).streams
    assert (partners.source, partners.requests) == ("read", 1)
    assert partners.scan
    assert partners.scan.completeness.started_at <= partners.scan.completeness.ended_at
    newest = "SELECT scan_id FROM meta.loads WHERE stream = 'partners' ORDER BY valid_time DESC"
    assert rows(synced, f"{newest} LIMIT 1") == [(partners.scan.scan_id,)]


def test_the_second_of_two_syncs_waits_and_says_so(
    synced: Home, caplog: pytest.LogCaptureFixture
) -> None:
    reads, waits = threading.Event(), threading.Event()
    caplog.set_level(logging.INFO, "pipelines")

    def read_slowly(*_values: object) -> None:
        reads.set()
        assert waits.wait(WAIT_SECONDS)

    def note_wait(record: logging.LogRecord) -> bool:
        if record.getMessage().startswith("Waiting for the lock"):
            waits.set()
        return True

    caplog.handler.addFilter(note_wait)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(read, synced, ReadRequest("acme"), read_slowly)
        assert reads.wait(WAIT_SECONDS)
        second = read(synced, ReadRequest("acme", ("usage",)))
        assert {each.state for each in first.result()} == {Outcome.COMPLETE}
    notes = caplog.messages
    assert notes[0].startswith("Waiting for the lock `sync.acme`, held by process ")
    assert notes[1].startswith("Lists whose last scan began before ")
    assert second[0].source == "read"
    assert [each.outcome for each in all_runs(synced)][:2] == [Outcome.COMPLETE] * 2


@pytest.mark.long
def test_a_failed_list_is_resumed_unless_its_scan_is_old_damaged_or_another(
    sandbox: Running, synced: Home
) -> None:
    def age(scan: Scan) -> None:
        scan.started_at -= timedelta(hours=25)

    def damage(scan: Scan) -> None:
        synced.archive.joinpath(f"{scan.file}.open").write_bytes(b"")

    def move_away(scan: Scan) -> None:
        synced.archive.joinpath(f"{scan.file}.open").rename(synced.root / "elsewhere")

    def configure(_scan: Scan) -> None:
        synced.settings_file.write_text("[streams.billing]\nlimit = 99\n")

    for harm, source in (
        (None, "resumed"),
        (age, "read"),
        (damage, "read"),
        (move_away, "read"),
        (configure, "read"),
    ):
        failed = fail_billing(sandbox, synced)
        assert (failed.state, failed.requests, failed.rate_limited) == (Outcome.FAILED, 3, 1)
        run = all_runs(synced)[0]
        assert (run.outcome, run.requests, run.rate_limited) == ("failed", 3, 1)
        with opened(synced) as session, session.metadata.transaction() as db:
            scan = db.query(Scan).filter_by(status="open").one()
            if harm:
                harm(scan)
        with opened(synced, accept_reason="another limit"):
            """With a bucket, the machines of a home agree on settings that have changed."""
        before = page_requests(sandbox)
        (billing,) = sync_once(synced, "billing").streams
        assert (billing.state, billing.source) == (Outcome.COMPLETE, source)
        assert (billing.requests, billing.rate_limited) == (page_requests(sandbox) - before, 0)
    with opened(synced) as session, session.metadata.transaction() as db:
        assert db.query(Scan).filter_by(status="abandoned").count() == 4
        reasons = [scan.reason for scan in db.query(Scan).filter_by(status="abandoned")]
    assert ELSEWHERE in reasons


def test_a_failed_sync_that_publishes_an_earlier_scan_needs_attention(
    sandbox: Running, tmp_path: Path
) -> None:
    home = make_home(tmp_path / "home", sandbox)
    with opened(home) as session:
        read = sync(session, [ReadRequest("acme", ("partners",))], LoggedProgress(), no_build=True)
        assert read.exit_code == ExitCode.DONE
        home.root.joinpath("config", "acme-secret").unlink()
        failed = sync(session, [ReadRequest("acme")], LoggedProgress())
        assert failed.build
        assert failed.build.is_new
        assert failed.exit_code == ExitCode.NEEDS_ATTENTION
        assert sync(session, [ReadRequest("acme")], LoggedProgress()).exit_code == ExitCode.USAGE


def test_a_connection_without_credentials_stops_no_other(sandbox: Running, tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", sandbox, "first")
    (home.root / "config" / "first-secret").unlink()
    make_home(home.root, sandbox, "second")
    with opened(home) as session:
        result = sync(
            session, [ReadRequest("first"), ReadRequest("second", ("partners",))], LoggedProgress()
        )
        account = limiter_actor(session, session.settings.connection("second"))
        with session.metadata.transaction() as db:
            # What asked for the account counts, so that the first sync sends not one too many.
            assert {slot.actor for slot in db.query(RateLimitSlot)} == {account}
    assert sandbox.statistics()["requests"]["/v2/whoami"] == {"200": 1}
    assert result.exit_code == ExitCode.NEEDS_ATTENTION
    assert {each.connection for each in result.streams if each.scan} == {"second"}
    assert rows(home, "SELECT DISTINCT connection FROM meta.loads") == [("second",)]
