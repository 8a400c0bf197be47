"""The rows of closed months: as they were signed off, beside what they are now.

Here: the views that read the copies of months and the rows of today. Not here: how a copy is
written and proven intact (close_copy).
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

import duckdb

from pipelines.core.errors import ArchiveDamaged, PartnerSyncError
from pipelines.core.text import is_one_of, quote_text
from pipelines.finance.currencies import code_of
from pipelines.finance.mapping import Mapping, read_mapping
from pipelines.finance.reconcile.close_copy import MANIFEST, MAPPING, require_intact
from pipelines.finance.reconcile.normalize import Sides
from pipelines.finance.reconcile.statements import REMEMBERED
from pipelines.metadata.tables import Close
from pipelines.warehouse.duckdb_file import Row, column_types, decimal_scale, insert_row
from pipelines.warehouse.memory_limit import readable_error

# Values whose digests are in variable `erased` are not shown.
CREATE_HIDDEN: Final = """
CREATE OR REPLACE TEMP MACRO hidden(value, whole) AS
    if(list_contains(getvariable('erased')::VARCHAR[], left(sha256(whole), 16)), '[erased]', value);
"""
CREATE_MONTHS: Final = f"""
{CREATE_HIDDEN}
CREATE TABLE reconciliation.closed_months (
    month DATE, number INTEGER, preparer VARCHAR, reviewer VARCHAR, closed_at TIMESTAMPTZ,
    version INTEGER, is_reopened BOOLEAN, posted_to DATE, manifest_sha256 VARCHAR, note VARCHAR,
    approval VARCHAR, approved_at TIMESTAMPTZ, accept_open VARCHAR, reopened_at TIMESTAMPTZ,
    reopened_by VARCHAR, reopened_reason VARCHAR, connections VARCHAR, has_mapping BOOLEAN
);
CREATE OR REPLACE TEMP TABLE closed_lists (month DATE, list VARCHAR, scan_id VARCHAR);
CREATE OR REPLACE TEMP MACRO hidden_id(side, id) AS
    hidden(id, if(side = 'billing', regexp_replace(id, '#[^#]*$', ''), id));
"""
INSERT_LIST: Final = "INSERT INTO closed_lists VALUES ($1, $2, $3)"
# Rows of a copy have sign -1, those of today 1.
ROWS: Final = """
SELECT
    {sign} AS sign, rows.side, rows.month, rows.connection, rows.id, rows.partner,
    {currency} AS currency, rows._key, rows._valid_from, rows.quantity, rows.amount
FROM (
    SELECT 'usage' AS side, used.* FROM {used} AS used
    UNION ALL BY NAME
    SELECT 'billing' AS side, billed.* FROM {billed} AS billed
) AS rows
WHERE rows.month IN ({months}) AND (rows.apart IS NULL OR rows.apart = 'credit note')
    AND {is_chosen}
"""
# What a month took is in its copy, also where a version was rolled back or is lost.
SIGNED: Final = """
SELECT posted.* REPLACE (
    hidden_id(posted.side, posted.id) AS id, hidden(posted.partner, posted.partner) AS partner,
    posted.amount_before::{amount} AS amount_before, posted.amount_now::{amount} AS amount_now,
    posted.difference::{amount} AS difference
)
FROM {table} AS posted
WHERE {is_chosen}
"""
# Of amounts of earlier versions: only their type counts.
MEMORY_ROWS: Final = """
SELECT 0::DECIMAL(38, 0) AS quantity, rows.difference AS amount
FROM {table} AS rows
WHERE false
"""
TYPED: Final = """
SELECT rows.* REPLACE (
    rows.quantity::DECIMAL(38, {quantity}) AS quantity, rows.amount::DECIMAL(38, {amount}) AS amount
)
FROM ({query}) AS rows
"""
VIEWS: Final = ("used", "billed")
NEEDS: Final = (
    "usage.partner", "usage.period", "usage.amount",
    "billing.partner", "billing.period", "billing.amount",
)  # fmt: skip


def month_after(month: date) -> date:
    """Return the first day of the next month."""
    return (month.replace(day=1) + timedelta(days=31)).replace(day=1)


def create_month_rows(
    db: duckdb.DuckDBPyConnection,
    closes: dict[Path, Close],
    connections: Collection[str] | None,
    mapping: Mapping | None,
    others: Iterable[str],
) -> str:
    """Create view `month_rows`: rows of the copies of closed months, and those of today.

    View `signed_corrections` has what the closed months took. Both are of some connections (None:
    of all).

    `closes` are all of them by folder; table `closed_months` shows them, and whether each was
    closed with this mapping. Returns why the rows cannot be compared, empty if they can; otherwise
    the view is empty. Its quantities and amounts have types that hold those of today, of earlier
    versions and of `others` (queries) too: where two types meet, DuckDB rounds.
    """
    db.execute(CREATE_MONTHS)
    standing = {folder: close for folder, close in closes.items() if close.reopened_at is None}
    _insert_months(db, closes, {close.month for close in standing.values()}, mapping)
    # They give the view its columns and types.
    without_rows = [_no_rows_of_today(connections), *others]
    without_rows += [MEMORY_ROWS.format(table=f"temp.remembered_{name}") for name in REMEMBERED]
    corrections = [quote_text(str(folder / "corrections.parquet")) for folder in standing]
    try:
        for folder, close in standing.items():
            require_intact(folder, close)
            _insert_lists(db, folder, close)
        rows = _rows_of_copies(standing, connections)
        rows += _rows_of_today(db, standing, connections)
        rows += [MEMORY_ROWS.format(table=file) for file in corrections]
        _create_view(db, [*without_rows, *rows])
        _create_signed_corrections(db, corrections, connections)
    except (PartnerSyncError, OSError, duckdb.Error) as error:
        _create_view(db, without_rows)
        return readable_error(error)
    return ""


def _insert_months(
    db: duckdb.DuckDBPyConnection,
    closes: dict[Path, Close],
    closed: Collection[date],
    mapping: Mapping | None,
) -> None:
    """Fill table `closed_months`; corrections are posted to the next month that is not closed."""
    for folder, close in closes.items():
        posted_to = month_after(close.month)
        while posted_to in closed:
            posted_to = month_after(posted_to)
        row: Row = {
            "month": close.month,
            "number": close.number,
            "preparer": close.preparer,
            "reviewer": close.reviewer,
            "closed_at": close.closed_at,
            "version": close.version,
            "is_reopened": close.reopened_at is not None,
            "posted_to": posted_to,
            "manifest_sha256": close.manifest_sha256,
            "note": close.note,
            "approval": close.approval,
            "approved_at": close.approved_at,
            "accept_open": close.accept_open,
            "reopened_at": close.reopened_at,
            "reopened_by": close.reopened_by,
            "reopened_reason": close.reopened_reason,
            "connections": close.chosen_connections,
            "has_mapping": has_mapping(folder, mapping),
        }
        insert_row(db, "reconciliation.closed_months", row)


def has_mapping(folder: Path, mapping: Mapping | None) -> bool:
    """Return whether the mapping of a copy makes the same figures; of a damaged copy, true."""
    with suppress(PartnerSyncError):
        return _of_figures(read_mapping(folder / MAPPING)) == _of_figures(mapping)
    return True


def _of_figures(mapping: Mapping | None) -> Mapping | None:
    """Return a mapping without what changes no figure of usage and bills."""
    others: dict[str, Any] = {"accounts": None, "materiality": {}, "own": {}}
    return mapping.model_copy(update=others) if mapping else None


def _create_signed_corrections(
    db: duckdb.DuckDBPyConnection, files: Iterable[str], connections: Collection[str] | None
) -> None:
    """Create view `signed_corrections`, with the type of amounts that `month_rows` has."""
    amount = column_types(db.table("month_rows"))["amount"]
    # The first one has no row: it gives the view its columns where no month is closed.
    tables = ["(FROM temp.remembered_corrections LIMIT 0)", *files]
    is_chosen = is_one_of("posted.connection", connections)
    union = " UNION ALL BY NAME ".join(
        SIGNED.format(table=table, amount=amount, is_chosen=is_chosen) for table in tables
    )
    db.execute(f"CREATE OR REPLACE TEMP VIEW signed_corrections AS {union}")


def _create_view(db: duckdb.DuckDBPyConnection, queries: list[str]) -> None:
    """Create view `month_rows` of statements, with the digits behind the point of all of them."""
    quantity = 0
    amount = 0
    for query in queries:
        types = column_types(db.sql(query))
        quantity = max(quantity, decimal_scale(types["quantity"]))
        amount = max(amount, decimal_scale(types["amount"]))
    union = " UNION ALL BY NAME ".join(
        TYPED.format(query=query, quantity=quantity, amount=amount) for query in queries
    )
    db.execute(f"CREATE OR REPLACE TEMP VIEW month_rows AS {union}")


def _insert_lists(db: duckdb.DuckDBPyConnection, folder: Path, close: Close) -> None:
    """Add to table `closed_lists` the scans that a copy rests on."""
    manifest = json.loads((folder / MANIFEST).read_bytes())
    for name, scan in manifest["scans"].items():
        db.execute(INSERT_LIST, (close.month, name, scan))


def _no_rows_of_today(connections: Collection[str] | None) -> str:
    """Return a statement with the columns of rows of today, and without a row."""
    empty = {view: f"(FROM temp.{view} LIMIT 0)" for view in VIEWS}
    return _rows(1, empty, [], connections)


def _rows_of_copies(closes: dict[Path, Close], connections: Collection[str] | None) -> list[str]:
    """Return a statement for the rows of each copy."""
    statements = []
    for folder, close in closes.items():
        copy = {}
        for view in VIEWS:
            file = quote_text(str(folder / f"{view}.parquet"))
            copy[view] = f"read_parquet({file})"
        statements.append(_rows(-1, copy, [close.month], connections))
    return statements


def _rows_of_today(
    db: duckdb.DuckDBPyConnection,
    closes: dict[Path, Close],
    connections: Collection[str] | None,
) -> list[str]:
    """Return statements for the rows of today in closed months, read by the mapping of each copy.

    Creates what the mappings need, and notes their readings. Raises ArchiveDamaged for a mapping
    that names a field which the version lacks.
    """
    # Months whose copies have the same mapping, and are of the same connections, are read together:
    # each mapping reads all rows.
    folders_of = defaultdict[tuple[bytes, str | None], list[Path]](list)
    for folder, close in closes.items():
        folders_of[(folder / MAPPING).read_bytes(), close.chosen_connections].append(folder)
    statements = []
    for folders in folders_of.values():
        mapping_file = folders[0] / MAPPING
        months = sorted(closes[folder].month for folder in folders)
        chosen = _both(closes[folders[0]].connections, connections)
        sides = Sides(db, read_mapping(mapping_file) or Mapping(), chosen)
        sides.note_readings(", ".join(f"{month:%Y-%m}" for month in months))
        reason = sides.missing(NEEDS)
        if reason:
            raise ArchiveDamaged(f"{reason}, but {mapping_file} names it.")
        today = {view: f"({sides.query(view)})" for view in VIEWS}
        statements.append(_rows(1, today, months, chosen))
    return statements


def _both(first: Collection[str] | None, second: Collection[str] | None) -> Collection[str] | None:
    """Return the connections that are in both; None stands for all."""
    if first is None or second is None:
        return second if first is None else first
    return [name for name in first if name in second]


def _rows(
    sign: int,
    sources: dict[str, str],
    months: Iterable[date],
    connections: Collection[str] | None,
) -> str:
    # An empty list is no SQL; NULL is in no row.
    dates = ", ".join(["NULL", *(f"DATE '{month}'" for month in months)])
    return ROWS.format(
        sign=sign,
        months=dates,
        currency=code_of("rows.currency"),
        is_chosen=is_one_of("rows.connection", connections),
        **sources,
    )
