"""`python -m tests.distributed.ticks N…`: what the nightly tick of N connections takes of Dagster.

The schedule's own work, as the code server does it in at most 60 seconds; what the daemon does with
each run afterwards is in the nights (costing). Figures for benchmarks/costs.py.
"""

import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg

from assets.definitions import defs
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
  postgres:
    postgres_url: {url}
telemetry:
  enabled: false
"""
PROGRAM = (sys.executable, "-m", "tests.distributed.ticks")


def ticked() -> str:
    """Return what a tick asks for, its processor seconds and its elapsed seconds."""
    known = defs.get_repository_def()
    with dg.DagsterInstance.get() as instance:
        processor, begun = time.process_time(), time.perf_counter()
        context = dg.build_schedule_context(instance, datetime.now(UTC), repository_def=known)
        asked = len(nightly.evaluate_tick(context).run_requests or ())
        used, took = time.process_time() - processor, time.perf_counter() - begun
        return f"{asked} runs asked for: {used:.2f} CPU s, {took:.2f} s"


def measured(connections: int) -> str:
    """Measure in a process with a home of so many connections."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        (home / "config").mkdir()
        tables = "".join(TABLE.format(number=number) for number in range(connections))
        (home / "config" / "connections.toml").write_text(tables)
        (home / "dagster.yaml").write_text(INSTANCE.format(url=places.database()))
        variables = {"DAGSTER_HOME": name, "PARTNER_SYNC_HOME": name}
        return subprocess.run(
            PROGRAM, env=os.environ | variables, stdout=subprocess.PIPE, text=True, check=True
        ).stdout.strip()


def main(sizes: list[str]) -> None:
    """Print a line for each size; without one, measure a tick of the home of the environment."""
    for line in (measured(int(size)) for size in sizes) if sizes else (ticked(),):
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
