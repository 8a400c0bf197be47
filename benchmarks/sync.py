"""What a sync of large lists costs, beside the least that any program can do with their pages.

Three syncs into one home: into an empty one, after a day in which 1 % of the records were changed
and 0.5 % added, and of the same records again. CPU seconds are those of the measured process; the
sandbox is another one. The service is without a limit, so that pages follow each other at once.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb
import httpx

from benchmarks.machine import machine, table
from pipelines.config.connections import add_connection
from pipelines.config.home import Home
from tests.sandbox.running import ENVIRONMENT, Running, started

PROGRAM: Final = str(Path(sys.executable).with_name("partner-sync"))
FLOOR: Final = [sys.executable, "-m", "benchmarks.sync_floor"]
NO_LIMIT = "1000000"  # requests per second; without any, the client keeps to the documented limit
FIRST_DAY, SECOND_DAY = "2026-11-01", "2026-11-02"
GOALS = {"first": 2.0, "1 % changed": 1.3, "unchanged": 0.8}  # times the floor
MOST_MEMORY = 500  # MB
FULL_SIZE = 1_000_000
COLUMNS = ("", "new", "changed", "CPU s", "times the floor", "goal", "peak MB")
LAST_LOADS = """
SELECT sum(last.new), sum(last.changed)
FROM (
    SELECT
        max_by(loads.new, loads.valid_time) AS new,
        max_by(loads.changed, loads.valid_time) AS changed
    FROM meta.loads AS loads
    GROUP BY loads.stream
) AS last
"""


@dataclass(frozen=True)
class Cost:
    """What a process has used: CPU seconds (user and system), and its peak resident memory."""

    seconds: float
    megabytes: float


def _cost(command: Sequence[str], **environment: str) -> Cost:
    """Run a program to its end. Exits if it fails."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=os.environ | environment)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[0]} has failed")
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


@contextmanager
def _sandbox(rows: int, day: str, port: int) -> Iterator[Running]:
    sizes = ("--usage", str(rows), "--billing", str(rows // 10), "--now", day)
    with started("--rate", NO_LIMIT, "--port", str(port), *sizes) as running:
        yield running


def _floor(running: Running) -> Cost:
    with tempfile.TemporaryDirectory() as folder:
        return _cost([*FLOOR, running.url, running.token(), folder])


def _sync(home: Home) -> tuple[Cost, tuple[int, int]]:
    """Sync; return what it has cost, and how many rows were new and changed."""
    cost = _cost([PROGRAM, "sync"], PARTNER_SYNC_HOME=str(home.root), **ENVIRONMENT)
    with duckdb.connect(home.link, read_only=True) as db:
        new, changed = db.execute(LAST_LOADS).fetchall()[0]
    return cost, (new, changed)


def _measure(rows: int, folder: Path) -> tuple[Cost, list[tuple[Cost, tuple[int, int]]]]:
    """Return the cost of the floor and of each sync."""
    home = Home(folder).prepare()
    with _sandbox(rows, FIRST_DAY, 0) as running:
        add_connection(home.connections_file, "benchmark", running.connection)
        floor, first = _floor(running), _sync(home)
    with _sandbox(rows, SECOND_DAY, httpx.URL(running.url).port or 0):
        return floor, [first, _sync(home), _sync(home)]


def main(arguments: list[str]) -> None:
    """Measure; print a table. Exit with 1 if a goal is missed at full size."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks sync", description=__doc__)
    parser.add_argument("--rows", type=int, default=FULL_SIZE, help="usage rows; bills: a tenth")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        floor, syncs = _measure(options.rows, Path(folder))
    rows = [("floor", "", "", f"{floor.seconds:.1f}", "1.00", "", f"{floor.megabytes:.0f}")]
    missed = False
    for (name, goal), (cost, counts) in zip(GOALS.items(), syncs, strict=True):
        ratio = cost.seconds / floor.seconds
        missed |= ratio > goal or cost.megabytes > MOST_MEMORY
        new, changed = (f"{count:,}" for count in counts)
        figures = (f"{cost.seconds:.1f}", f"{ratio:.2f}", f"{goal}", f"{cost.megabytes:.0f}")
        rows.append((name, new, changed, *figures))
    print(f"{machine()}\n`python -m benchmarks sync {' '.join(arguments)}`\n")
    print(table(COLUMNS, rows))
    if missed and options.rows >= FULL_SIZE:  # small lists cost little more than the start
        sys.exit(1)
