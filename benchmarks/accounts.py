"""What a night with many accounts takes, beside the least that their rate limits allow.

Each account has lists of its own and a limit of its own: 5 requests a second. Two syncs of one
home. The floor of an account with n requests is (n - 5) / 5 seconds: the first five leave at once.
Wall time is from the first request to the last answer of any account, CPU and memory are those of
the process. The sandbox is another process on the same machine.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.machine import machine, table
from pipelines.app.session import open_session
from pipelines.config.connections import add_connection
from pipelines.config.home import Home
from pipelines.core.files import write_durably
from pipelines.metadata.tables import Run, Scan
from tests.sandbox.running import AUDIENCE, started

PROGRAM: Final = str(Path(sys.executable).with_name("partner-sync"))
RATE: Final = 5  # requests a second of each account
SECRET: Final = "not secret: made for the benchmark"  # noqa: S105
VARIABLE: Final = "ACCOUNTS_SECRET"
COLUMNS: Final = (
    "accounts", "night", "requests", "slowest floor s", "wall s", "times the floor", "CPU s",
    "of one core", "sync s", "peak MB", "429s",
)  # fmt: skip


@dataclass(frozen=True)
class Night:
    """What one sync has used; seconds, megabytes."""

    requests: int
    slowest_requests: int
    rate_limited: int
    wall: float
    whole: float
    cpu: float
    megabytes: float

    def row(self, accounts: int, name: str) -> tuple[object, ...]:
        """Return the night as a row of the table."""
        floor = max((self.slowest_requests - RATE) / RATE, 0.1)
        return (
            accounts,
            name,
            self.requests,
            f"{floor:.1f}",
            f"{self.wall:.1f}",
            f"{self.wall / floor:.2f}",
            f"{self.cpu:.1f}",
            f"{self.cpu / self.whole:.2f}",
            f"{self.whole:.1f}",
            f"{self.megabytes:.0f}",
            self.rate_limited,
        )


@contextmanager
def _home(folder: Path, accounts: int, sizes: list[str]) -> Iterator[Home]:
    """Yield a home with so many connections to a running sandbox."""
    home = Home(folder / "home").prepare()
    entries = [
        f'[[clients]]\nid = "account-{number:04}"\nsecret = "{SECRET}"\n'
        f'actor = "distributor"\nseed = {number}\n'
        for number in range(accounts)
    ]
    clients = folder / "clients.toml"
    write_durably(clients, "\n".join(entries).encode())
    clients.chmod(0o600)
    options = ["--clients", str(clients), "--rate", str(RATE), *sizes]
    with started(*options, awkward=False) as running:
        for number in range(accounts):
            fields = {
                "base_url": running.url,
                "auth_url": running.url,
                "audience": AUDIENCE,
                "client_id": f"account-{number:04}",
                "secret": VARIABLE,
            }
            add_connection(home.connections_file, f"account-{number:04}", fields)
        yield home


def _sync(home: Home) -> Night:
    """Sync, and return what it took. Exits if it fails."""
    with open_session(home) as session, session.metadata.transaction() as db:
        known = {run.run_id for run in db.query(Run)}
    began = time.monotonic()
    environment = os.environ | {"PARTNER_SYNC_HOME": str(home.root), VARIABLE: SECRET}
    process = subprocess.Popen([PROGRAM, "sync"], stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    whole = time.monotonic() - began
    if process.returncode:
        raise SystemExit(f"partner-sync sync ended with {process.returncode}")
    with open_session(home) as session, session.metadata.transaction() as db:
        runs = [run for run in db.query(Run) if run.run_id not in known]
        requests = Counter({run.connection: run.requests or 0 for run in runs})
        scans = [scan for scan in db.query(Scan) if scan.run_id not in known]
        first = min(run.started_at for run in runs)
        last = max(scan.ended_at for scan in scans if scan.ended_at)
        refused = sum(run.rate_limited or 0 for run in runs)
    return Night(
        requests=requests.total(),
        slowest_requests=max(requests.values()),
        rate_limited=refused,
        wall=(last - first).total_seconds(),
        whole=whole,
        cpu=usage.ru_utime + usage.ru_stime,
        megabytes=usage.ru_maxrss / 1024,
    )


def main(arguments: list[str]) -> None:
    """Measure; print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks accounts", description=__doc__)
    parser.add_argument("--accounts", type=int, default=8)
    parser.add_argument("--rows", type=int, default=15_000, help="usage rows; bills: a hundredth")
    options = parser.parse_args(arguments)
    rows = options.rows
    sizes = ["--usage", str(rows), "--billing", str(rows // 100), "--partners", "50"]
    with (
        tempfile.TemporaryDirectory() as folder,
        _home(Path(folder), options.accounts, sizes) as home,
    ):
        nights = [(name, _sync(home)) for name in ("first", "unchanged")]
    print(f"{machine()}\n`python -m benchmarks accounts {' '.join(arguments)}`\n")
    print(table(COLUMNS, [night.row(options.accounts, name) for name, night in nights]))
