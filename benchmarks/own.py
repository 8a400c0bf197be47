"""What own books cost: a reconciliation without them, and with as many own rows as usage.

One home with usage and bills of ten lines each, without breaks. The own rows are those of usage,
with an error in every thousandth. Then, as commands: start-up (`versions list`), and books made
again (`reconcile`): without own books, and with them as Parquet and as CSV.
"""

import argparse
import sys
import tempfile
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from benchmarks.decision import cost_of, publish_bills
from benchmarks.machine import machine, table
from pipelines.core.files import write_durably
from tests.reconcile.books import MAPPING
from tests.versions.homes import Stores

SECONDS: Final = 10.0  # CPU seconds of a reconciliation of 1,000,000 rows beyond start-up
MEGABYTES: Final = 500
ERRORS: Final = 1_000  # one own row of so many differs
COLUMNS: Final = ("own books", "CPU s", "beyond start-up", "peak MB", "breaks")
SOURCE: Final = """
[own.meter]
against = "usage"
connection = "acme"
file = "{file}"
[own.meter.roles]
id = "id"
partner = "partner"
period = "day"
amount = "amount"
currency = "currency"
"""
ROWS: Final = """
SELECT
    used.id, used.partner, used.day, used.amount + if(number % {errors} = 0, 0.01, 0) AS amount,
    used.currency
FROM (SELECT *, row_number() OVER () AS number FROM current.usage) AS used
"""


def _prepare(home: Path, rows: int) -> None:
    """Publish usage and bills; write own rows to `meter.parquet` and `meter.csv`."""
    stores = Stores.open(home)
    publish_bills(stores, rows, breaks=0)
    with stores.warehouse.open() as db:
        for kind in ("parquet", "csv"):
            file = stores.home.root / f"meter.{kind}"
            db.execute(f"COPY ({ROWS.format(errors=ERRORS)}) TO '{file}' (FORMAT {kind})")
    stores.metadata.close()


def main(arguments: list[str]) -> None:
    """Measure; print a table. Exit with 1 if own books cost more than the goal."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks own", description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="usage rows; bills: a tenth")
    options = parser.parse_args(arguments)
    costs = []
    found = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "home")
        # In a process of its own: the peak memory of a command begins with that of its parent.
        prepare = get_context("spawn").Process(target=_prepare, args=(home, options.rows))
        prepare.start()
        prepare.join()
        stores = Stores.open(home)
        stores.metadata.close()
        start = cost_of(stores.home.root, "versions", "list").seconds
        for file in ("", "meter.parquet", "meter.csv"):
            source = SOURCE.format(file=file) if file else ""
            write_durably(stores.home.mapping_file, (MAPPING + source).encode())
            costs.append((file or "none", cost_of(stores.home.root, "reconcile")))
            found += stores.rows("SELECT count(*) FROM reconciliation.breaks")
    rows = [
        (
            name,
            f"{cost.seconds:.2f}",
            f"{cost.seconds - start:.2f}",
            f"{cost.megabytes:.0f}",
            f"{breaks:,}",
        )
        for (name, cost), (breaks,) in zip(costs, found, strict=True)
    ]
    print(f"{machine()}\n`python -m benchmarks own {' '.join(arguments)}`\n")
    print(table(COLUMNS, rows))
    if any(cost.seconds - start > SECONDS or cost.megabytes > MEGABYTES for _name, cost in costs):
        sys.exit(1)
