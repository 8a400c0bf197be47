"""A sync that is stopped or killed is resumed: what was read before is not read again."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipelines.archive.lines import Exchange
from pipelines.config.home import Home
from pipelines.core.errors import ExitCode
from pipelines.metadata.runs import Outcome, recent_runs
from pipelines.metadata.tables import Scan
from tests.homes import KEYS, make_home, opened, records, sync_once
from tests.sandbox.running import Running
from tests.truth import current, sent

FULL_READ = 5  # requests: three pages, the overlaps, the head once more
WAIT_SECONDS = 60  # on a busy machine
FRAME = b"\x28\xb5\x2f\xfd"  # begins each line of a scan file


def stopped_sync(home: Home, sandbox: Running, how: signal.Signals) -> tuple[int, str]:
    """Start a sync, send it a signal in the middle of usage; return its exit code and words."""
    late = sandbox.fault("late", "/v2/usage", after=2, value=600.0)

    def is_in_the_middle() -> bool:
        files = (file.read_bytes() for file in home.archive.glob("acme/usage/*.open"))
        return sandbox.befallen(late) > 0 and any(file.count(FRAME) > 1 for file in files)

    # As a shell script starts `partner-sync sync &`: SIGINT is ignored.
    script = 'trap "" INT; exec "$0" -m pipelines.cli.start sync -s usage'
    command = ["/bin/sh", "-c", script, sys.executable]
    environment = os.environ | {"PARTNER_SYNC_HOME": str(home.root)}
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        end = time.monotonic() + WAIT_SECONDS
        while not is_in_the_middle() and process.poll() is None and time.monotonic() < end:
            time.sleep(0.1)
        assert process.poll() is None
        process.send_signal(how)
        _, words = process.communicate(timeout=WAIT_SECONDS)
    return process.returncode, words


def open_exchanges(home: Home) -> tuple[str, list[Exchange]]:
    """Return the scan that is open, and what it holds."""
    with opened(home) as session, session.metadata.transaction() as db:
        row = db.query(Scan).filter_by(status="open").one()
        return row.scan_id, list(session.archive.resume(row).exchanges())


@pytest.mark.parametrize(
    "how",
    [
        signal.SIGKILL,
        *(pytest.param(each, marks=pytest.mark.long) for each in (signal.SIGINT, signal.SIGTERM)),
    ],
)
def test_a_stopped_sync_goes_on(how: signal.Signals, sandbox: Running, tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", sandbox)
    code, words = stopped_sync(home, sandbox, how)
    scan_id, before = open_exchanges(home)
    assert before
    if how == signal.SIGKILL:
        assert code == -signal.SIGKILL
    else:
        assert code == ExitCode.INTERRUPTED
        assert "Run `partner-sync sync` within 24 hours: it publishes what was read" in words
        assert "Traceback" not in words
        with opened(home) as session, session.metadata.transaction() as db:
            (run,) = recent_runs(db)
        assert run.outcome == "interrupted"
        assert run.requests == len(before)
    sandbox.reset()
    (resumed,) = sync_once(home, "usage").streams
    assert (resumed.state, resumed.source) == (Outcome.COMPLETE, "resumed")
    assert resumed.scan
    assert resumed.scan.scan_id == scan_id
    with opened(home) as session, session.metadata.transaction() as db:
        sealed = session.archive.open_sealed(db.get_one(Scan, scan_id))
        after = list(sealed.exchanges())
        runs = [
            (run.outcome, run.lists["usage"]["state"], run.requests is None)
            for run in recent_runs(db)
        ]
        interrupted = ("interrupted", "interrupted", how == signal.SIGKILL)
        assert runs == [("complete", "complete", False), interrupted]
        with session.warehouse.open() as version:
            held = current(version, "usage")
    assert after[: len(before)] == before
    assert sum(exchange.status == 200 for exchange in after) < 2 * FULL_READ
    assert held == sent(records(sandbox, "usage"), KEYS["usage"])
