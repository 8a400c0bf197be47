"""`python -m tests.distributed.costing N…`: what nights of N accounts cost, each a line of JSON.

The figures that the model of docs/scale.md is made of (benchmarks/costs.py), and what its forecast
is compared with. Not here: what is expected of a night (rehearsal).
"""

import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.distributed import costs
from tests.distributed.accounts import SMALL, serving
from tests.distributed.night import SHARED, Night, Servers, servers

AT_ONCE = 4
WORKERS = 2
SIZE = "SELECT pg_database_size(current_database())"
EVENTS = "SELECT count(*) FROM event_logs"
VERSIONS = "SELECT count(*) FROM versions"


def measured(folder: Path, shared: Servers, accounts: int) -> dict[str, object]:
    """Run a night; return its seconds, processor seconds, requests and bytes."""
    with serving(folder, accounts, "--latency-ms=20", *SMALL) as serving_them:
        night = Night(folder / f"night{accounts}", shared, serving_them, say=_quiet)
        name = f"dagster-night{accounts}"
        before = int(shared.postgresql.ask(SIZE, name))
        try:
            night.begin(WORKERS, AT_ONCE)
            night.until(night.complete, "the night's end", 3600)
            roots = {each: process.pid for each, process in night.stack.processes.items()}
            roots |= {each.name: each.process.pid for each in shared.every if each.process}
            counted = serving_them.counted()
            steps = night.steps()
            busy: Counter[str] = Counter()
            for step in steps:
                busy[step.name] += round(step.ended - step.began)
            return {
                "accounts": accounts,
                "connections": len(serving_them.connections),
                "seconds": round(night.seconds()),
                "steps": len(steps),
                "requests": sum(seen["admitted"] for seen in counted.values()),
                "refused": sum(seen["refused"] for seen in counted.values()),
                "processor": {
                    each: round(used, 1) for each, used in costs.processor_seconds(roots).items()
                },
                "dagster_bytes": int(shared.postgresql.ask(SIZE, name)) - before,
                "dagster_events": int(shared.postgresql.ask(EVENTS, name)),
                "publications": int(shared.postgresql.ask(VERSIONS, f"state-night{accounts}")),
                "bytes": _kept(night, shared),
                "step_seconds": dict(busy),
            }
        finally:
            night.stack.end()


def _kept(night: Night, shared: Servers) -> dict[str, int]:
    """Return the bytes of everything that a night leaves behind, wherever its parts are."""
    name, kept = night.folder.name, {"home": costs.bytes_below(night.home)}
    if "state" in SHARED:
        kept["ledger"] = int(shared.postgresql.ask(SIZE, f"state-{name}"))
    if "archive" in SHARED:
        kept["archive"] = shared.store.bytes_below(f"{name}/archive")
    if "warehouse" in SHARED:
        kept["catalog"] = int(shared.postgresql.ask(SIZE, f"lake-{name}"))
        kept["lake"] = shared.store.bytes_below(f"{name}/lake")
    return kept


def _quiet(_words: str) -> None:
    """Say nothing: the line of JSON says all."""


def main(sizes: list[str]) -> None:
    """Measure each size on servers of its own."""
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="costing-") as name:
            folder = Path(name)
            folder.chmod(0o755)  # PostgreSQL runs as another user where we are root
            with servers(folder / "servers") as shared:
                sys.stdout.write(json.dumps(measured(folder, shared, int(size))) + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
