"""A sync that is stopped or killed is resumed: what was read before is not read again."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.app.results import Source, StreamState
from pipelines.archive.scan_file import Exchange, OpenScan
from pipelines.config.home import Home
from pipelines.core.errors import ExitCode
from pipelines.metadata.runs import recent_runs
from pipelines.metadata.tables import Scan
from tests.homes import KEYS, make_home, opened, records, rows, sync_once
from tests.sandbox.running import Running, started
from tests.truth import differences, table_rows

SIZES = ("--partners", "25", "--usage", "3000", "--billing", "150")
WAIT_SECONDS = 60  # on a busy machine


@pytest.fixture(scope="module")
def slow() -> Iterator[Running]:
    """A sandbox of which a list takes some seconds to read."""
    with started("--rate", "0", "--latency-ms", "100", *SIZES) as running:
        yield running


def usage_requests(sandbox: Running) -> int:
    return int(sandbox.statistics()["requests"].get("/v2/usage", {}).get("200", 0))


def stopped_sync(home: Home, sandbox: Running, how: signal.Signals) -> tuple[int, str]:
    """Start a sync, send it a signal in the middle of usage; return its exit code and words."""
    command = [sys.executable, "-m", "pipelines.cli.main", "sync", "-s", "usage"]
    environment = os.environ | {"PARTNER_SYNC_HOME": str(home.root)}
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        end = time.monotonic() + WAIT_SECONDS
        while usage_requests(sandbox) < 4 and process.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        assert process.poll() is None
        process.send_signal(how)
        _, words = process.communicate(timeout=WAIT_SECONDS)
    return process.returncode, words


def open_exchanges(home: Home) -> tuple[str, list[Exchange]]:
    """Return the scan that is open, and what it holds."""
    with opened(home) as session, session.metadata.transaction() as db:
        row = db.query(Scan).filter_by(status="open").one()
        scan: OpenScan = session.archive.resume(row)
        exchanges = [exchange for _, exchange in scan.exchanges()]
        scan.close()
    return row.scan_id, exchanges


def recorded(home: Home, scan_id: str) -> list[Exchange]:
    """Return the exchanges of a sealed scan."""
    with opened(home) as session, session.metadata.transaction() as db:
        scan = session.archive.open_sealed(db.get_one(Scan, scan_id))
        return [exchange for _, exchange in scan.exchanges()]


@pytest.mark.parametrize(
    "how",
    [signal.SIGKILL, signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)],
)
def test_a_stopped_sync_goes_on(how: signal.Signals, slow: Running, tmp_path: Path) -> None:
    slow.reset()
    home = make_home(tmp_path / "home", slow)
    code, words = stopped_sync(home, slow, how)
    scan_id, before = open_exchanges(home)
    assert len(before) >= 3
    if how == signal.SIGKILL:
        assert code == -signal.SIGKILL
    else:
        assert code == ExitCode.INTERRUPTED
        assert "Run `partner-sync sync` within 24 hours to resume" in words
        assert "Traceback" not in words
        with opened(home) as session, session.metadata.transaction() as db:
            (run,) = recent_runs(db)
        assert run.outcome == "interrupted"
        assert run.requests == len(before)
    (resumed,) = sync_once(home, "usage").streams
    assert (resumed.state, resumed.source) == (StreamState.COMPLETE, Source.RESUMED)
    assert resumed.scan_id == scan_id
    after = recorded(home, scan_id)
    assert after[: len(before)] == before
    if how == signal.SIGKILL:
        (once,) = sync_once(home, "usage").streams
        assert len(after) < 2 * once.requests
    with opened(home) as session, session.metadata.transaction() as db:
        assert {run.outcome for run in recent_runs(db)} == {"interrupted", "complete"}
        with session.warehouse.open() as version:
            held = table_rows(version, "FROM current.usage")
    assert differences(held, records(slow, "usage"), KEYS["usage"]) == []
    assert rows(home, "SELECT count(*) FROM history.usage") == [(3000,)]
