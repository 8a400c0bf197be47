"""Own books of a home: when books read them again, and what the books before had of them.

Not here: how they are read and compared (reconcile.own), what `own check` shows (own_check).
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from decimal import Decimal
from typing import Any, Final

import duckdb
import psutil

from pipelines.core.errors import PartnerSyncError
from pipelines.core.files import remove
from pipelines.core.text import quote_text
from pipelines.finance.reconcile.basis import Inputs
from pipelines.finance.reconcile.own.before import Before
from pipelines.finance.reconcile.own.inputs import RULE, OwnInputs
from pipelines.finance.reconcile.own.sources import digest_now
from pipelines.load.records import EXACT
from pipelines.versions.stores import Stores
from pipelines.warehouse.books import Books, BooksFolder
from pipelines.warehouse.duckdb_file import Row

# Of a source that was not compared, what it had when it was compared last.
BEFORE: Final = """
SELECT
    sources.source, if(sources.evaluated, sources.sha256, NULL),
    greatest(sources.rows_before, if(sources.evaluated, sources.rows, NULL)),
    sources.fewest_rows, sources.begins
FROM reconciliation.own_sources AS sources
"""


def connections(inputs: Inputs) -> frozenset[str]:
    """Return the connections that have own books."""
    if inputs.mapping is None:
        return frozenset()
    return frozenset(source.connection for source in inputs.mapping.own.values())


def have_changed(stores: Stores, published: Books | None, inputs: Inputs) -> bool:
    """Return whether own books may say something else than when the published books were made.

    Nobody can tell of a table of a database before it is read again.
    """
    if inputs.mapping is None or not inputs.mapping.own:
        return False
    digests = {name: digest for name, digest, *_before in _read_before(stores, published)}
    for name, source in inputs.mapping.own.items():
        now = digest_now(source, stores.home.root)
        if now is None or now != digests.get(name):
            return True
    return False


def read_own_inputs(stores: Stores, published: Books | None) -> OwnInputs:
    """Return what own books are read with."""
    before = _read_before(stores, published)
    return OwnInputs(
        root=stores.home.root,
        now=stores.clock.utc_now(),
        before={name: Before(*about) for name, _digest, *about in before},
    )


def let_spill(stores: Stores, db: duckdb.DuckDBPyConnection) -> None:
    """Let open books put own rows that do not fit into memory on the disk, until they are closed.

    Raises duckdb.Error, StorageFailed.
    """
    for left in stores.home.books.glob(".own-*.spill"):
        if not psutil.pid_exists(int(left.name.split("-")[1].partition(".")[0])):
            remove(left)  # of a process that was killed
    folder = stores.home.books / f".own-{os.getpid()}.spill"
    db.execute(f"SET temp_directory = {quote_text(str(folder))}")


def sums_of_breaks(rows: Iterable[Row]) -> list[Row]:
    """Return the sum of the differences of breaks of own books, by rule and currency.

    It is what the service has minus what own books have. Uncertain breaks are in none.
    """
    sums: dict[tuple[str, str], Row] = {}
    for row in rows:
        rule = row["rule"]
        if not rule.startswith(RULE) or row["uncertain"] is not None or row["difference"] is None:
            continue
        nothing = {"rule": rule, "currency": row["currency"], "breaks": 0, "difference": Decimal(0)}
        total = sums.setdefault((rule, str(row["currency"])), nothing)
        total["breaks"] += 1
        total["difference"] = EXACT.add(total["difference"], row["difference"])
    return [total for _key, total in sorted(sums.items())]


def _read_before(stores: Stores, published: Books | None) -> list[tuple[Any, ...]]:
    """Return sources of the published books: name, digest, and what Before has; none of none."""
    if published is not None:
        with (
            suppress(PartnerSyncError, duckdb.Error),
            BooksFolder(stores.warehouse).open_alone(published) as db,
        ):
            return db.execute(BEFORE).fetchall()
    return []
