"""All rules and reports over a million usage records and a hundred thousand bills of ten lines.

`python -m benchmarks.reconciling` is the process whose time and memory are measured: it evaluates
what one sync of the sandbox left, errors planted. Not here: the copy of a publication (publishing).
"""

import json
import os
import resource
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

from benchmarks.machine import table
from benchmarks.syncing import served, synced
from pipelines import run, settings
from pipelines.run import reconciling
from pipelines.settings.mapping import FILE
from pipelines.warehouse.database import transaction

ROWS = int(os.environ.get("BENCH_ROWS", "1000000"))
FOUND = """
SELECT (SELECT count(*) FROM reconciliation.breaks),
       (SELECT count(*) FROM reconciliation.rules WHERE evaluated),
       (SELECT max(abs(difference))::VARCHAR FROM reconciliation.partner_rollforward)
"""


def measure() -> str:
    """Evaluate what one sync left, in a process of its own; return a table."""
    sizes = (f"--usage={ROWS}", f"--billing={ROWS // 10}", "--partners=250", "--rate=0", "--plant")
    others = {"PARTNER_SYNC_WINDOW": "0", "PARTNER_SYNC_RECONCILE": "false"}
    with served(*sizes, environment=others) as service:
        synced(service)
        home = Path(service.environment["PARTNER_SYNC_HOME"])
        mapped = (files("pipelines.settings") / "sandbox.toml").read_bytes()
        (home / "config" / FILE).write_bytes(mapped)
        own = os.environ | service.environment | {"PARTNER_SYNC_RECONCILE": "true"}
        program = [sys.executable, "-m", "benchmarks.reconciling"]
        done = subprocess.run(program, env=own, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    columns = ["usage rows", "bills", "rules evaluated", "breaks", "foots to", "CPU", "peak"]
    rows = (f"{ROWS:,}", f"{ROWS // 10:,}")
    return table(columns, [[*rows, *found]])


def _evaluate() -> None:
    """Evaluate and report as a publication does; print what was found and what it cost."""
    with run.open(settings.load()) as session, session.work.writing() as writer:
        begun = _seconds()
        with transaction(writer):
            reconciling.tell(session, writer)
        took = _seconds() - begun
        breaks, rules, foots = writer.execute(FOUND).fetchall()[0]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([rules, breaks, foots, f"{took:.1f} s", f"{peak:.0f} MB"]))


def _seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    _evaluate()
