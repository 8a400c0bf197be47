"""What a sync costs as the lists grow, with the sandbox's rate limit off, beside the floor.

The floor is every page downloaded and read by DuckDB, inexactly, in a process of its own (floor).
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.machine import table
from benchmarks.syncing import Cost, run, served, synced
from pipelines.cli.sandbox import Service

SIZES = (1_000, 20_000, 1_000_000)


def measure() -> str:
    """Sync three sizes twice (a first night and a second); return a table."""
    rows = [row for size in SIZES for row in _rows(size)]
    columns = ["usage rows", "billing rows", "night", "wall", "CPU", "rows a CPU second", "peak"]
    columns.append("of the floor's CPU")
    return table(columns, rows)


def _rows(size: int) -> list[list[object]]:
    billing = size // 10
    sizes = (f"--usage={size}", f"--billing={billing}", "--partners=250", "--rate=0")
    with served(*sizes, environment={"PARTNER_SYNC_WINDOW": "0"}) as service:
        _floor(service)  # the sandbox makes every page once
        costs = {"floor": _floor(service)}
        costs |= {night: synced(service) for night in ("first", "second")}
    return [
        [
            f"{size:,}",
            f"{billing:,}",
            night,
            f"{cost.wall:.1f} s",
            f"{cost.cpu:.1f} s",
            f"{(size + billing) / cost.cpu:,.0f}",
            f"{cost.peak:.0f} MB",
            f"{cost.cpu / costs['floor'].cpu:.2f} x",
        ]
        for night, cost in costs.items()
    ]


def _floor(service: Service) -> Cost:
    with TemporaryDirectory() as folder:
        return run([sys.executable, "-m", "benchmarks.floor", str(Path(folder))], service)
