"""Own books of a home: when books read them again, and what the books before had of them.

Not here: how they are read and compared (reconcile.own), what `own check` shows (own_check).
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from decimal import Decimal
from typing import Final

import duckdb
import psutil
from sqlalchemy import select

from pipelines.core.errors import PartnerSyncError
from pipelines.core.files import remove
from pipelines.core.parse import EXACT
from pipelines.core.text import quote_text
from pipelines.finance.reconcile.basis import Inputs
from pipelines.finance.reconcile.own.before import Before
from pipelines.finance.reconcile.own.inputs import OwnInputs
from pipelines.finance.reconcile.own.sources import digest_now
from pipelines.metadata.tables import BreakRow, OwnSourceRow
from pipelines.versions.erase import is_in_break
from pipelines.versions.identifier import Identifier
from pipelines.versions.stores import Stores
from pipelines.warehouse.books import Books, BooksFolder
from pipelines.warehouse.duckdb_file import Row

DIGESTS: Final = """
SELECT sources.source, sources.sha256
FROM reconciliation.own_sources AS sources
WHERE sources.evaluated
"""
# Rows that are no records of the service: those of breaks, and what is not understood.
WITH_TEXT: Final = """
SELECT count(*)
FROM (
    SELECT 1 FROM reconciliation.break_rows AS rows
    WHERE rows.side = 'own' AND $text IN (rows.partner, rows.id)
    UNION ALL
    SELECT 1 FROM reconciliation.own_unread AS rows WHERE rows.sent = $text
)
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
    digests = _read_digests(stores, published)
    for name, source in inputs.mapping.own.items():
        now = digest_now(source, stores.home.root)
        if now is None or now != digests.get(name):
            return True
    return False


def read_own_inputs(stores: Stores) -> OwnInputs:
    """Return what own books are read with."""
    with stores.metadata.transaction() as session:
        before = {
            row.source: Before(row.rows, row.fewest_rows, row.begins)
            for row in session.scalars(select(OwnSourceRow))
        }
    return OwnInputs(root=stores.home.root, now=stores.clock.utc_now(), before=before)


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
        if row["own_source"] is None or row["uncertain"] is not None or row["difference"] is None:
            continue
        rule = row["rule"]
        nothing = {"rule": rule, "currency": row["currency"], "breaks": 0, "difference": Decimal(0)}
        total = sums.setdefault((rule, str(row["currency"])), nothing)
        total["breaks"] += 1
        total["difference"] = EXACT.add(total["difference"], row["difference"])
    return [total for _key, total in sorted(sums.items())]


def kept_with(stores: Stores, text: str) -> list[Row]:
    """Return a row for what is kept of own books and contains a value, as `erase` shows it.

    Books that cannot be read have no row: they are made again. Raises StorageFailed.
    """
    identifier = Identifier(text)
    with stores.metadata.transaction() as session:
        remembered = sum(is_in_break(row, identifier) for row in session.scalars(select(BreakRow)))
    rows = list[Row]()
    if remembered:
        rows.append({"file": "breaks in the metadata database", "records": remembered})
    folder = BooksFolder(stores.warehouse)
    for books in folder.every():
        with suppress(PartnerSyncError, duckdb.Error), folder.open_alone(books) as db:
            ((number,),) = db.execute(WITH_TEXT, {"text": text}).fetchall()
            if number:
                rows.append({"file": str(books.path), "records": number})
    return rows


def _read_digests(stores: Stores, published: Books | None) -> dict[str, str]:
    """Return the digests of the sources that the published books were compared with."""
    if published is not None:
        with (
            suppress(PartnerSyncError, duckdb.Error),
            BooksFolder(stores.warehouse).open_alone(published) as db,
        ):
            return dict(db.execute(DIGESTS).fetchall())
    return {}
