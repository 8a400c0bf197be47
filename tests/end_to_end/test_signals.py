"""A request to stop is never lost: at any moment, a sync is interrupted and says so, or is done."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from pipelines.app.maintenance import verify_files
from pipelines.config.home import Home
from pipelines.core import stop
from pipelines.core.errors import ExitCode
from pipelines.metadata.runs import recent_runs
from tests.effort import EFFORT
from tests.homes import KEYS, copied, make_home, opened, records, sync_once
from tests.sandbox.running import Running
from tests.truth import current, sent

MOMENTS = 40 * EFFORT
SAID = "Interrupted. Analysts see the version that was published last.\nRun `partner-sync sync`"
WRONG = re.compile("Traceback|Exception ignored|Fatal Python error|never retrieved|defect")
WAIT_SECONDS = 120  # on a busy machine
BUSY = "while True: pass"


def published(home: Home) -> str:
    """Return the name of the file that analysts open; empty where there is none."""
    return home.link.readlink().name if home.link.is_symlink() else ""


def check_next_sync(home: Home, sandbox: Running, *streams: str) -> None:
    """Check that the sync after a stop is right, and that nothing was left behind."""
    assert sync_once(home).exit_code == ExitCode.DONE
    with opened(home) as session:
        with session.warehouse.open() as version:
            for stream in streams:
                key = KEYS[stream]
                assert current(version, stream) == sent(records(sandbox, stream), key)
        assert verify_files(session)["damaged"] == []
    assert [*home.versions.glob(".*")] == []


@pytest.mark.long
def test_a_sync_that_is_stopped_at_any_moment_is_interrupted_or_done(
    sandbox: Running, tmp_path: Path
) -> None:
    home, random, interrupted, seconds = make_home(tmp_path / "home", sandbox), Random(1), 0, 0.5
    for _ in range(4):
        before, began, ended = published(home), time.monotonic(), "done"
        with stop.noted(signal.SIGALRM):
            signal.setitimer(signal.ITIMER_REAL, random.uniform(0.001, seconds))
            try:
                sync_once(home)
                seconds = time.monotonic() - began
            except KeyboardInterrupt:
                ended = "interrupted"
                interrupted += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
        assert (ended == "done") == (published(home) != before)
    assert interrupted
    check_next_sync(home, sandbox, "billing")


SLOW_PROGRAM = """
import time
from pipelines.core import stop
stop.listen()
print(flush=True)
while True:
    time.sleep(0.01)
"""


def test_a_second_signal_ends_the_program_at_once() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SLOW_PROGRAM],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        process.stdout.readline()
        for how in (signal.SIGHUP, signal.SIGTERM):  # as `timeout` sends two
            process.send_signal(how)
        time.sleep(stop.AGAIN_SECONDS + 0.2)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, words = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == ExitCode.INTERRUPTED
    assert words.startswith("\nInterrupted at once, by a second signal. Analysts see")


@contextmanager
def busy_machine() -> Iterator[None]:
    """Run two processes that use all the time they get, unless others do so already."""
    lacking = max(0, 2 - int(os.getloadavg()[0]))
    processes = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(lacking)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def listens(process: subprocess.Popen[str]) -> bool:
    """Return whether a process notes SIGTERM; before that, Python itself is starting."""
    status = Path(f"/proc/{process.pid}/status").read_text("ascii")
    caught = int(re.findall(r"SigCgt:\s*([0-9a-f]+)", status)[0], 16)
    return bool(caught >> (signal.SIGTERM - 1) & 1)


def stopped(home: Home, how: signal.Signals | None, seconds: float) -> tuple[int, str, float]:
    """Run a sync, send it a signal after so long; return exit code, output and its duration."""
    command = [sys.executable, "-m", "pipelines.cli.start", "sync"]
    environment = os.environ | {"PARTNER_SYNC_HOME": str(home.root)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        while process.poll() is None and not listens(process):
            time.sleep(0.005)
        began = time.monotonic()
        if how is not None:
            time.sleep(seconds)
            process.send_signal(how)
        output, _ = process.communicate(timeout=WAIT_SECONDS)
    return process.returncode, output, time.monotonic() - began


@pytest.mark.slow
@pytest.mark.timeout(30 * MOMENTS)
def test_a_program_that_is_stopped_at_any_moment_says_it_or_is_done(
    sandbox: Running, synced: Home, tmp_path: Path
) -> None:
    random = Random(os.environ.get("SEED", "1"))
    counts = {"interrupted": 0, "done": 0}
    with busy_machine():
        home = make_home(tmp_path / "whole", sandbox)
        code, output, longest = stopped(home, None, 0.0)
        assert code == ExitCode.DONE, output
        for number in range(MOMENTS):
            folder = tmp_path / f"home-{number}"
            home = copied(synced, folder) if number % 2 else make_home(folder, sandbox)
            before = published(home)
            how = random.choice((signal.SIGTERM, signal.SIGINT))
            seconds = random.uniform(0.0, longest)
            code, output, took = stopped(home, how, seconds)
            about = f"{how.name} after {seconds:.3f} s, ended after {took:.3f}: {code}\n{output}"
            assert not WRONG.search(output), about
            is_new = published(home) != before
            assert code == (ExitCode.DONE if is_new else ExitCode.INTERRUPTED), about
            assert (SAID in output) == (not is_new), about
            with opened(home) as session, session.metadata.transaction() as db:
                outcomes = {run.outcome for run in recent_runs(db)}
            assert outcomes <= {"complete", "interrupted"}, about
            check_next_sync(home, sandbox, "partners", "usage", "billing")
            counts["done" if is_new else "interrupted"] += 1
    print(counts, end=" ")  # noqa: T201 - their numbers are a result
    assert counts["interrupted"] > MOMENTS / 4
