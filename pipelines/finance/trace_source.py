"""Opens what figures are traced in: the published books, or the copy of a closed month.

A copy has the tables of books under the same names, so the same queries read both. Here: also these
queries. Not here: adding the records up (trace_figure).
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb

from pipelines.core.errors import ConfigurationError
from pipelines.core.text import printable, quote_text
from pipelines.finance import mapping as mappings
from pipelines.finance.books_state import why_outdated
from pipelines.finance.inputs import read_copies
from pipelines.finance.reconcile.close_copy import MAPPING, require_intact
from pipelines.finance.reconcile.own.inputs import RULE
from pipelines.finance.reconcile.roles import find_roles
from pipelines.finance.reconciled import create_rows, open_books, open_reconciled
from pipelines.metadata.tables import Close
from pipelines.versions.stores import Stores
from pipelines.warehouse.duckdb_file import SETTINGS

VIEWS: Final = {
    "breaks": "reconciliation.breaks",
    "break_rows": "reconciliation.break_rows",
    "summary": "reconciliation.summary",
    "used": "temp.used",
    "billed": "temp.billed",
    "corrections": "reconciliation.corrections",
    "fees": "reconciliation.without_usage",
}
# Columns that earlier copies lack, with what they follow from there.
LATER: Final = {
    "breaks": {
        "own_source": f"if(starts_with(rule, '{RULE}'), substr(rule, {len(RULE) + 1}), NULL)"
    },
    "break_rows": {"file": "NULL::VARCHAR"},  # a copy before own books
}
# Each figure with its rows; one without rows has a row without `scan_id`.
BREAK: Final = """
SELECT
    figures.*, rows.side AS stream, rows.id, sides.number, sides.quantity, sides.price,
    coalesce(sides.day, sides.issued_on) AS date, rows.amount, rows._scan_id AS scan_id,
    rows._page AS page, rows._row AS row, rows.file AS own_file
FROM (
    SELECT
        unnest(['used', 'billed', 'own']) AS part, breaks.connection, breaks.partner,
        breaks.currency,
        unnest([breaks.used_amount, breaks.billed_amount, NULL]) AS published
    FROM reconciliation.breaks AS breaks
    WHERE breaks.break_id = $break_id
) AS figures
LEFT JOIN reconciliation.break_rows AS rows ON rows.break_id = $break_id
    AND figures.part
        = CASE rows.side WHEN 'usage' THEN 'used' WHEN 'own' THEN 'own' ELSE 'billed' END
-- Of a record that is gone, its row has no more than amount and place.
LEFT JOIN (
    SELECT
        'usage' AS side, used.connection, used.id, used._scan_id, used._page, used._row,
        used.quantity, used.price, used.day
    FROM temp.used AS used
    UNION ALL BY NAME
    SELECT
        'billing' AS side, billed.connection, billed.id, billed._scan_id, billed._page,
        billed._row, billed.quantity, billed.price, billed.number,
        billed.issued_at::DATE AS issued_on
    FROM temp.billed AS billed
) AS sides
    ON sides.side = rows.side AND sides.connection = figures.connection
    AND sides.id = rows.id AND sides._scan_id = rows._scan_id AND sides._page = rows._page
    AND sides._row = rows._row
ORDER BY figures.part DESC, rows.id
"""
MONTH: Final = """
WITH figures AS (
    SELECT
        unnest(['used', 'billed', 'credited', 'not counted']) AS part, summary.connection,
        summary.partner, summary.currency, summary.month,
        unnest([summary.used_amount, summary.billed_amount, summary.credited_amount,
            summary.not_counted_amount]) AS published
    FROM reconciliation.summary AS summary
    WHERE $partner IN (summary.partner, summary.partner_name)
        AND strftime(summary.month, '%Y-%m') = $month AND $currency IN ('', summary.currency)
), rows AS (
    SELECT 'used' AS part, 'usage' AS stream, used.* FROM temp.used AS used
    UNION ALL BY NAME
    SELECT
        CASE WHEN billed.apart IS NULL THEN 'billed'
             WHEN billed.apart = 'credit note' THEN 'credited' ELSE 'not counted' END AS part,
        'billing' AS stream, billed.*
    FROM temp.billed AS billed
)
SELECT
    figures.* EXCLUDE (month), rows.stream, rows.id, rows.amount, rows._scan_id AS scan_id,
    rows._page AS page, rows._row AS row
FROM figures
LEFT JOIN rows
    ON rows.part = figures.part AND rows.connection = figures.connection
    AND rows.partner = figures.partner AND rows.month = figures.month
    AND rows.currency IS NOT DISTINCT FROM figures.currency
ORDER BY figures.connection, figures.partner, figures.currency,
    list_position(['used', 'billed', 'credited', 'not counted'], figures.part), rows.id
"""
OUTDATED: Final = (
    "The mapping, or the data, is newer than these books. Run `partner-sync reconcile`, then trace "
    "again."
)


@dataclass(frozen=True)
class TraceSource:
    """Figures and their rows, with the mapping that they were read by.

    `name` is what people call it, `version` the version of the warehouse that it is of. `remedy` is
    for figures that do not add up.
    """

    db: duckdb.DuckDBPyConnection
    name: str
    version: int
    mapping: mappings.Mapping
    paths: dict[str, str]
    remedy: str = ""


@contextmanager
def open_source(
    stores: Stores, table: str, options: Mapping[str, str], close: str
) -> Iterator[TraceSource]:
    """Open the copy of a close (2026-09, or 2026-09/002), or the published books if it is empty.

    Raises as `open_reconciled`; for a copy ConfigurationError, ArchiveDamaged.
    """
    if close:
        folder, signed = _find(stores, close)
        mapping = _required(folder / MAPPING)
        with open_books(stores) as (_version, db):
            paths = _paths(db, mapping)
        with open_copy(folder, signed) as db:
            name = f"The copy {folder.parent.name}/{folder.name} of version {signed.version}"
            yield TraceSource(db, name, signed.version, mapping, paths)
        return
    with open_reconciled(stores, table, options) as (version, db):
        create_rows(db)
        mapping = _required(stores.home.mapping_file)
        remedy = OUTDATED if why_outdated(stores) else ""
        name = f"Version {version.number}"
        yield TraceSource(db, name, version.number, mapping, _paths(db, mapping), remedy)


@contextmanager
def open_copy(folder: Path, close: Close) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the copy of a close: its tables have the names that they have in open books.

    Raises ArchiveDamaged, NewerFormat.
    """
    require_intact(folder, close)
    with duckdb.connect(config=SETTINGS) as db:
        _create_views(db, folder)
        yield db


def _required(file: Path) -> mappings.Mapping:
    mapping = mappings.read_mapping(file)
    if mapping is None:
        raise ConfigurationError("The mapping is empty: no amount can be read.", mappings.REMEDY)
    return mapping


def _paths(db: duckdb.DuckDBPyConnection, mapping: mappings.Mapping) -> dict[str, str]:
    """Return the field of each role that the records have."""
    columns, _unknown = find_roles(db, mapping)
    return {role: column.path for role, column in columns.items()}


def _find(stores: Stores, close: str) -> tuple[Path, Close]:
    """Return the copy that a text names; of a month alone, its last one that is closed."""
    copies = read_copies(stores)
    month, _slash, number = close.partition("/")
    found = None
    for folder, each in copies.items():
        is_named = number.isdecimal() and each.number == int(number)
        is_closed = not number and each.state == "closed"
        if f"{each.month:%Y-%m}" == month and (is_named or is_closed):
            found = folder, each
    if found is None:
        known = ", ".join(f"{folder.parent.name}/{folder.name}" for folder in copies)
        raise ConfigurationError(
            f"No month is closed as {printable(close, 40)}. Copies: {known or 'none'}.",
            "Run `partner-sync close list`.",
        )
    return found


def _create_views(db: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Give the tables of a copy the names that they have in open books."""
    db.execute("CREATE SCHEMA reconciliation")
    for table, name in VIEWS.items():
        file = folder / f"{table}.parquet"
        if file.exists():  # copies of the first formats have no records of breaks
            kind = "TEMP VIEW" if name.startswith("temp.") else "VIEW"
            view = name.removeprefix("temp.")
            db.execute(f"CREATE {kind} {view} AS {_query_of(db, table, file)}")


def _query_of(db: duckdb.DuckDBPyConnection, table: str, file: Path) -> str:
    """Return the query of a table of a copy, with the columns that earlier copies lack."""
    query = f"FROM read_parquet({quote_text(str(file))})"
    columns = db.sql(query).columns
    for column, value in LATER.get(table, {}).items():
        if column not in columns:
            query = f"SELECT *, {value} AS {column} {query}"
    return query
