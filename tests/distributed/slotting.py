"""`python -m tests.distributed.slotting`: what a slot takes of PostgreSQL and of who asks for it.

As fast as it goes (a window of a millisecond): one process, four of an actor each, four of one
actor; p50 and p95 of a slot, slots a second, processor milliseconds of the asking process and of
the server for each. Figures for benchmarks/costs.py. Not here: that nobody is early (test_budget).
"""

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

from pipelines.api.budget import Budget
from pipelines.api.terms import Said, Seat, Terms
from pipelines.clock import SYSTEM
from pipelines.state import database
from tests.distributed import costs, places

SECONDS = 8.0
TERMS = Terms(5, 0.001)
CROWDS = ((1, "of an actor each"), (4, "of an actor each"), (4, "of one actor"))


async def asking(url: str, actor: str) -> tuple[list[float], float]:
    """Ask for slots for some seconds; return what each took and our processor seconds."""
    ledger = database.connect(Path(), url)
    budget = Budget(SYSTEM, TERMS, Seat(ledger), key=lambda: actor)
    took: list[float] = []
    async with budget.slot():
        until, processor = time.monotonic() + SECONDS, time.process_time()
    while (begun := time.monotonic()) < until:
        async with budget.slot():
            took.append(time.monotonic() - begun)
            budget.hear(Said(200, SYSTEM.monotonic()))
    processor = time.process_time() - processor
    budget.close()
    ledger.dispose()
    return took, processor


def measured(processes: int, actors: str) -> str:
    """Return the figures of a crowd."""
    url, server = places.database(), places.postgresql().process
    assert server is not None
    database.connect(Path(), url).dispose()
    names = ["a" if actors == "of one actor" else f"a{one}" for one in range(processes)]
    program = (sys.executable, "-m", "tests.distributed.slotting", url)
    before = costs.processor_seconds({"server": server.pid})["server"]
    asked = [
        subprocess.Popen((*program, each), stdout=subprocess.PIPE, text=True) for each in names
    ]
    found = [json.loads(each.communicate()[0]) for each in asked]
    used = costs.processor_seconds({"server": server.pid})["server"] - before
    took = sorted(slot for slots, _ in found for slot in slots)
    ours = sum(processor for _, processor in found)
    return (
        f"{processes} {actors}: p50 {1000 * took[len(took) // 2]:.2f} ms, "
        f"p95 {1000 * took[19 * len(took) // 20]:.2f} ms, {len(took) / SECONDS:.0f} slots/s, "
        f"{1000 * ours / len(took):.2f} CPU ms of ours, {1000 * used / len(took):.2f} of the server"
    )


def main(arguments: list[str]) -> None:
    """Print a line for each crowd; with a URL and an actor be one of a crowd."""
    if arguments:
        sys.stdout.write(json.dumps(asyncio.run(asking(arguments[0], arguments[1]))))
        return
    for crowd in CROWDS:
        sys.stdout.write(f"{measured(*crowd)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
