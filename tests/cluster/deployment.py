"""Three homes with four accounts each, on two workers, with Dagster's daemon and UI.

Here: how they are set up and asked. Not here: what happens to them (test_rehearsal).
"""

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import dagster as dg
import psycopg

from assets.names import Names
from pipelines.app.pull import pull
from pipelines.config.home import Home
from tests.assets.deployment import Deployment
from tests.cluster.servers import BIN, CHECKOUT, Cluster, as_host
from tests.homes import make_home, rows
from tests.s3_server import NAME
from tests.sandbox.running import Running, started

HOMES = ("north", "south", "east")
ACCOUNTS = {home: [f"{home}-{number}" for number in range(4)] for home in HOMES}
NUMBER = sum(map(len, ACCOUNTS.values()))
WORKERS = ("worker-a", "worker-b")
RATE = 5  # requests a second of each account
USAGE = 5_600  # rows of each account
LIMIT = 20  # rows of a page: so requests take the time, and not their content
AWAY = 20.0  # seconds that a server is stopped
CLIENT = """
[[clients]]
id = "{name}"
secret = "not secret: made for the tests"
actor = "distributor"
seed = {seed}
"""
SIZES = ("--partners", "5", "--usage", str(USAGE), "--billing", "10")
# All of a row but when it was read, and on which page: pages of the limited service are smaller.
TABLES = ("partners", "usage", "billing")
COLUMNS = """
SELECT column_name FROM (DESCRIBE warehouse.current.{table})
WHERE column_name NOT IN ('_scan_id', '_valid_from', '_valid_to', '_page', '_row') ORDER BY 1
"""
RUNS = """
SELECT connection, started_at, ended_at, requests, rate_limited, outcome, owner FROM {home}.runs
WHERE started_at >= %s ORDER BY started_at
"""


@contextmanager
def services(folder: Path) -> Iterator[tuple[Running, Running]]:
    """Yield two sandboxes with the same accounts: one with the limit, one without."""
    clients = folder / "clients.toml"
    names = [name for accounts in ACCOUNTS.values() for name in accounts]
    text = [CLIENT.format(name=name, seed=seed) for seed, name in enumerate(names)]
    clients.write_text("".join(text))
    clients.chmod(0o600)
    options = ("--clients", str(clients), *SIZES)
    with (
        started("--rate", str(RATE), *options, awkward=False) as limited,
        started("--rate", "1000", *options, awkward=False) as unlimited,
    ):
        yield limited, unlimited


def made_home(folder: Path, service: Running, home: str) -> Home:
    for name in ACCOUNTS[home]:
        made = make_home(folder / home, service, name, client_id=name)
    return made


def settings_at(tick: datetime) -> str:
    return f'schedule = "{tick.minute} {tick.hour} * * *"\n[streams.usage]\nlimit = {LIMIT}\n'


def begin_alone(home: Home, *arguments: str) -> subprocess.Popen[str]:
    """Begin a command on a home of this machine."""
    return subprocess.Popen(
        (str(BIN / "partner-sync"), *arguments),
        env={"PARTNER_SYNC_HOME": str(home.root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def require_end(process: subprocess.Popen[str], code: int = 0) -> str:
    """Wait for the end of a command; return what it printed."""
    output, _ = process.communicate(timeout=300)
    assert process.returncode == code, output
    return output


def content(home: Home) -> dict[str, list[tuple[Any, ...]]]:
    """Return every row that analysts see, and the summary of the books."""
    found = dict[str, list[tuple[Any, ...]]]()
    for table in TABLES:
        columns = ", ".join(f'"{name}"' for (name,) in rows(home, COLUMNS.format(table=table)))
        found[table] = rows(home, f"SELECT {columns} FROM current.{table} ORDER BY ALL")
    found["summary"] = rows(home, "SELECT * FROM reconciliation.summary ORDER BY ALL")
    return found


@dataclass
class Rehearsal:
    """The cluster with its homes, and the service that their accounts are of."""

    cluster: Cluster
    service: Running
    instance: dg.DagsterInstance
    port: int

    def deployment(self, home: str) -> Deployment:
        """Return what asks Dagster's UI about a home."""
        folder = self.cluster.home_of("webserver", home)
        return Deployment(
            folder, self.instance, self.service, self.port, names=Names.of_folder(home)
        )

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.cluster.postgresql.url, autocommit=True) as connection:
            return connection.execute(sql.encode(), values).fetchall()

    def runs(self, since: datetime, homes: Sequence[str] = HOMES) -> list[tuple[Any, ...]]:
        """Return the reading of each account of some homes that began since then."""
        found = list[tuple[Any, ...]]()
        for home in homes:
            with suppress(psycopg.errors.UndefinedTable):  # the first process makes the tables
                found += self.query(RUNS.format(home=home), since)
        return found

    def complete(self, since: datetime) -> set[str]:
        return {row[0] for row in self.runs(since) if row[5] == "complete"}

    def reading(self, since: datetime) -> Counter[str]:
        """Return how many accounts each machine reads now."""
        return Counter(row[6].partition(":")[0] for row in self.runs(since) if row[2] is None)

    def is_idle(self) -> bool:
        """Return whether every run has ended, and none will be launched again."""
        runs = self.instance.get_runs()
        return all(run.is_finished and not run.is_complete_and_waiting_to_retry for run in runs)

    def has_published(self, since: datetime) -> bool:
        """Return whether every home has published all that was read since a moment."""
        return all(self._has_published(home, since) for home in HOMES)

    def _has_published(self, home: str, since: datetime) -> bool:
        ended = [run[2] for run in self.runs(since, [home])]
        if not ended or None in ended:
            return False
        job = Names.of_folder(home).of("publish")
        of_job = dg.RunsFilter(job_name=job, statuses=[dg.DagsterRunStatus.SUCCESS])
        started = [record.start_time for record in self.instance.get_run_records(of_job)]
        return any(each and each > max(ended).timestamp() for each in started)

    def pointer(self, home: str) -> dict[str, Any]:
        found = self.cluster.bucket.bucket(home).read("published.json")
        return dict(json.loads(found.data)["published"]) if found else {}

    def command(
        self, machine: str, home: str, *arguments: str, code: int = 0, **variables: str
    ) -> str:
        """Run a command of the program on a machine; return what it prints."""
        return require_end(self.begin(machine, home, *arguments, **variables), code)

    def begin(
        self, machine: str, home: str, *arguments: str, **variables: str
    ) -> subprocess.Popen[str]:
        environment = self.cluster.environment_of(machine, home) | {"COLUMNS": "200"} | variables
        return subprocess.Popen(
            (*as_host(machine), str(BIN / "partner-sync"), *arguments),
            cwd=CHECKOUT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def pulled(self, home: str) -> Home:
        """Return what is published, on a machine that has the bucket only."""
        folder = self.cluster.folder / "pulled" / home
        pull(folder, f"s3://{NAME}/{home}", self.cluster.bucket.endpoint)
        return Home(folder)

    def kill_builder(self, machines: Sequence[str], since: datetime) -> list[str]:
        """Kill the worker that builds when all accounts are read, and start it again.

        Its name is in the list then.
        """
        killed = list[str]()

        def may_kill() -> bool:
            return len(self.complete(since)) == NUMBER

        def kill(machine: str) -> None:
            self.cluster.kill(machine)
            killed.append(machine)
            time.sleep(5)
            self.cluster.start_worker(machine, 2)

        self.when_building(machines, kill, may_kill)
        return killed

    def when_building(
        self,
        machines: Sequence[str],
        act: Callable[[str], object],
        may_act: Callable[[], bool] = lambda: True,
    ) -> None:
        """Act once, from another thread, as soon as a machine writes a version, and one may."""
        began = time.time()
        folders = {
            self.cluster.home_of(machine, home).versions: machine
            for machine in machines
            for home in HOMES
        }

        def wait() -> None:
            while True:
                for folder, machine in folders.items():
                    files = folder.glob(".v*.building")
                    if any(changed_at(file) > began for file in files) and may_act():
                        act(machine)
                        return
                time.sleep(0.002)

        threading.Thread(target=wait, daemon=True).start()


def changed_at(file: Path) -> float:
    """Return when a file was changed; 0 if it is not there. A killed builder leaves one."""
    with suppress(FileNotFoundError):
        return file.stat().st_mtime
    return 0.0


@contextmanager
def analyst(folder: Path, endpoint: str, environment: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Let an analyst read during the block; the yielded dictionary has the report at the end."""
    arguments = (str(folder), endpoint, str(USAGE), *HOMES)
    report = dict[str, Any]()
    with subprocess.Popen(
        [sys.executable, "-m", "tests.cluster.analyst", *arguments],
        env=environment,
        cwd=CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield report
        finally:
            output, _ = process.communicate(timeout=200)
        report |= json.loads(output)
