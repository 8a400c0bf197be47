"""What a decision about a break costs, and the books that it changes.

One home with usage and bills, of which 30,000 lines bill a cent too much: each is a break. Then, as
commands: start-up (`versions list`, which opens the home), books made again (`reconcile`), and a
decision about one break (`breaks resolve`), which publishes books and no version of the warehouse.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.machine import machine, table
from benchmarks.sync import PROGRAM, Cost
from pipelines.warehouse.books import BooksFolder
from tests.reconcile.books import bill, line, partners, publish, used
from tests.versions.homes import Stores

BREAKS: Final = 30_000
LINES: Final = 10  # of a bill
PARTNERS: Final = [f"p{number}" for number in range(200)]
GOAL: Final = 1.0  # CPU seconds of a decision beyond start-up
COLUMNS: Final = ("command", "CPU s", "beyond start-up")


def publish_bills(stores: Stores, rows: int, *, breaks: int = BREAKS) -> None:
    """Publish a version of usage and bills, with so many breaks, and its books."""
    usage = [used(f"u{at}", partner=PARTNERS[at // LINES % len(PARTNERS)]) for at in range(rows)]
    bills = []
    for first in range(0, rows, LINES):
        amounts = ("5.01" if at < breaks else "5.00" for at in range(first, first + LINES))
        lines = [line(f"u{first + at}", amount) for at, amount in enumerate(amounts)]
        partner = PARTNERS[first // LINES % len(PARTNERS)]
        bills.append(bill(f"b{first}", *lines, partner=partner))
    stores.configure()
    publish(stores, partners=partners(PARTNERS), usage=usage, billing=bills)


def cost_of(home: Path, *arguments: str) -> Cost:
    """Run a command to its end. Exits if it fails."""
    environment = os.environ | {"PARTNER_SYNC_HOME": str(home)}
    process = subprocess.Popen([PROGRAM, *arguments], stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in {0, 3}:
        raise SystemExit(f"{PROGRAM} {' '.join(arguments)} has failed")
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def main(arguments: list[str]) -> None:
    """Measure; print a table. Exit with 1 if a decision costs more than its goal."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks decision", description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="usage rows; bills: a tenth")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        stores = Stores.open(Path(folder, "home"))
        publish_bills(stores, options.rows)
        ((break_id,),) = stores.rows("SELECT min(break_id) FROM reconciliation.breaks")
        version = stores.warehouse.require_published()
        books = BooksFolder(stores.warehouse).published()
        sizes = version.path.stat().st_size, books.path.stat().st_size if books else 0
        stores.metadata.close()
        resolve = ("breaks", "resolve", break_id, "--reason", "measured", "--yes")
        commands = (("versions", "list"), ("reconcile",), resolve)
        costs = [cost_of(stores.home.root, *each) for each in commands]
        if stores.warehouse.require_published() != version:
            raise SystemExit("the decision made a version of the warehouse")
    start = costs[0].seconds
    rows = [
        (
            " ".join(command[:2]),
            f"{cost.seconds:.2f}",
            f"{cost.seconds - start:.2f}",
        )
        for command, cost in zip(commands, costs, strict=True)
    ]
    print(f"{machine()}\n`python -m benchmarks decision {' '.join(arguments)}`\n")
    print(f"Warehouse {sizes[0] / 1e6:.1f} MB, books {sizes[1] / 1e6:.1f} MB.\n")
    print(table(COLUMNS, rows))
    if costs[-1].seconds - start > GOAL:
        sys.exit(1)
