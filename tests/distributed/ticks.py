"""`python -m tests.distributed.ticks N…`: what the nightly tick of N connections takes of Dagster.

The schedule's own work, as the code server does it in at most 60 seconds, and a second tick of the
day; what the daemon does with each run afterwards is in the nights (costing).
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
from sqlalchemy import event
from sqlalchemy.engine import Engine

from assets.definitions import defs
from assets.once import RUN_KEY_TAG
from assets.schedule import nightly
from tests.distributed import places

TABLE = """
[c{number:05}]
base_url = "http://127.0.0.1:9"
auth_url = "http://127.0.0.1:9"
audience = "a"
client_id = "c{number:05}"
secret = "A_SECRET"
"""
INSTANCE = """
storage:
  custom:
    module: assets.storage
    class: PooledStorage
    config:
      postgres_url: {url}
telemetry:
  enabled: false
"""
PROGRAM = (sys.executable, "-m", "tests.distributed.ticks")


@dataclass(frozen=True)
class Tick:
    """What a tick asked for, and what that took."""

    requests: list[dg.RunRequest]
    queries: int
    processor: float
    seconds: float

    def __str__(self) -> str:
        """Say it on a line."""
        took = f"{self.queries} queries, {self.processor:.2f} CPU s, {self.seconds:.2f} s"
        return f"{len(self.requests)} runs asked for: {took}"


def settled(home: Path, connections: int) -> dict[str, str]:
    """Make a home of so many connections and of Dagster; return the variables that lead there."""
    (home / "config").mkdir(parents=True)
    tables = "".join(TABLE.format(number=number) for number in range(connections))
    (home / "config" / "connections.toml").write_text(tables)
    (home / "dagster.yaml").write_text(INSTANCE.format(url=places.database()))
    return {"DAGSTER_HOME": str(home), "PARTNER_SYNC_HOME": str(home)}


def ticks() -> Iterator[Tick]:
    """Yield the first tick of the day, and the second, which finds the runs of the first."""
    with dg.DagsterInstance.get() as instance:
        yield (first := ticked(instance))
        for request in first.requests:
            tags = {**request.tags, RUN_KEY_TAG: str(request.run_key)}
            begun = dg.DagsterRunStatus.STARTED
            instance.add_run(dg.DagsterRun(nightly.job_name, tags=tags, status=begun))
        yield ticked(instance)


def ticked(instance: dg.DagsterInstance) -> Tick:
    """Measure a tick."""
    known = defs.get_repository_def()
    with counted() as queries:
        processor, begun = time.process_time(), time.perf_counter()
        context = dg.build_schedule_context(instance, datetime.now(UTC), repository_def=known)
        requests = list(nightly.evaluate_tick(context).run_requests or ())
        used, took = time.process_time() - processor, time.perf_counter() - begun
    return Tick(requests, len(queries), used, took)


@contextmanager
def counted() -> Iterator[list[object]]:
    """Yield a list that every query of this process adds to."""
    queries: list[object] = []

    def add(*told: object) -> None:
        queries.append(told[2])

    event.listen(Engine, "before_cursor_execute", add)
    try:
        yield queries
    finally:
        event.remove(Engine, "before_cursor_execute", add)


def measured(connections: int) -> str:
    """Measure in a process with a home of so many connections."""
    with tempfile.TemporaryDirectory() as name:
        variables = settled(Path(name) / "home", connections)
        return subprocess.run(
            PROGRAM, env=os.environ | variables, stdout=subprocess.PIPE, text=True, check=True
        ).stdout.strip()


def main(sizes: list[str]) -> None:
    """Print two lines for each size; without one, measure the home of the environment."""
    for line in (measured(int(size)) for size in sizes) if sizes else ticks():
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
