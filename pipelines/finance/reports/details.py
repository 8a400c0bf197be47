"""Reads the rows of the lists that the page shows by clicking, from the files of `details/`."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from importlib.resources import files
from itertools import repeat
from typing import Any, Final

import duckdb

from pipelines.core.errors import ConfigurationError
from pipelines.finance.reports.bill_lines import read_lines
from pipelines.finance.reports.listing import Detail, Listing
from pipelines.finance.reports.listings import LISTINGS, STATEMENT
from pipelines.finance.reports.month_verdicts import every_month
from pipelines.finance.reports.prices import list_prices
from pipelines.finance.reports.queries import Figures
from pipelines.finance.reports.text import format_cause
from pipelines.finance.reports.to_do import to_do, treatment
from pipelines.finance.reports.told import add_told
from pipelines.finance.reports.verdicts import is_all_known
from pipelines.warehouse.duckdb_file import Row, fetch_rows

FindStatement = Callable[[str, str | None, str | None], str | None]
"""Finds the page of a statement by connection, partner and month; without a month, the newest."""
# An amount as the shortest text that has all its digits.
CREATE_EXACT: Final = r"""
CREATE OR REPLACE TEMP MACRO exact(amount) AS
    regexp_replace(amount::VARCHAR, '(\.\d*?)0+$', '\1').regexp_replace('\.$', '')
"""
CREATE_TO_PAY: Final = """
CREATE OR REPLACE TEMP VIEW to_pay AS
SELECT
    bills.connection, bills.partner_id, bills.bill, bills.currency, bills.open AS open_amount,
    bills.due_in, bills.days, bills.days_overdue
FROM finance.receivables AS bills
"""
NOTHING_TO_PAY: Final = """
CREATE OR REPLACE TEMP VIEW to_pay AS
SELECT
    NULL::VARCHAR AS connection, NULL::VARCHAR AS partner_id, NULL::VARCHAR AS bill,
    NULL::VARCHAR AS currency, NULL::DECIMAL(18, 2) AS open_amount, NULL::VARCHAR AS due_in,
    NULL::VARCHAR AS days, NULL::BIGINT AS days_overdue
LIMIT 0
"""
# Query `withheld_breaks` has no table where nobody knows what is paid.
NOTHING_WITHHELD: Final = """
CREATE TEMP TABLE IF NOT EXISTS withheld_breaks AS
SELECT NULL::VARCHAR AS break_id, NULL::DECIMAL(18, 2) AS amount
LIMIT 0
"""
CREATE_REASONS: Final = "CREATE OR REPLACE TEMP TABLE fee_reasons (kind VARCHAR, why VARCHAR)"
MOST_ROWS: Final = 5_000  # of statements, and of prices
# What two lists read.
LISTED: Final = ("listed_bills", "listed_changes")
CREATE_LISTED: Final = "CREATE OR REPLACE TEMP TABLE {name} AS {query}"
COUNT: Final = "SELECT count(*) FROM {table}"


def read_details(
    db: duckdb.DuckDBPyConnection,
    figures: Figures,
    find_statement: FindStatement,
    statements: Sequence[Row],
) -> tuple[Detail, ...]:
    """Return the lists of the page, in the order in which they are embedded.

    `db` is the connection from which the figures were read: lists use the tables of their queries.
    A list that reads a table which could not be evaluated is left out. `statements` are the rows
    of that list, empty without one. Raises duckdb.Error.
    """
    if figures.problem:
        return ()
    db.execute(CREATE_EXACT)
    rule = figures.rules.get("receivables")
    knows_payments = rule is not None and rule["evaluated"]
    db.execute("SET VARIABLE knows_payments = $1", [knows_payments])
    db.execute(CREATE_TO_PAY if knows_payments else NOTHING_TO_PAY)
    db.execute(NOTHING_WITHHELD)
    db.execute(CREATE_REASONS)
    for reason in figures.fee_reasons.items():
        db.execute("INSERT INTO fee_reasons VALUES ($1, $2)", reason)
    for name in LISTED:
        with suppress(duckdb.CatalogException):
            db.execute(CREATE_LISTED.format(name=name, query=_query(name)))
    # No query reads these.
    prices = list_prices(figures.tables["price_changes"])
    given = {"statements": _columns_of(statements), "prices": prices}
    details = []
    for listing in LISTINGS:
        if listing.name in given:
            if columns := given[listing.name]:
                details.append(_shortened(listing, columns))
            continue
        with suppress(duckdb.CatalogException, ConfigurationError):
            detail = _read(db, listing, figures)
            if STATEMENT in listing.columns:
                detail.columns[STATEMENT.name] = _statements_of(detail.columns, find_statement)
            details.append(detail)
    return tuple(details)


def _columns_of(statements: Sequence[Row]) -> dict[str, list[Any]]:
    names = [name for name in statements[0] if name != "breaks"] if statements else []
    return {name: [row[name] for row in statements] for name in names}


def _shortened(listing: Listing, columns: dict[str, list[Any]]) -> Detail:
    """Return the first rows of a list of which all are known."""
    shown = {name: values[:MOST_ROWS] for name, values in columns.items()}
    return Detail(listing, shown, Detail(listing, columns, 0).rows)


def _statements_of(columns: dict[str, list[Any]], find: FindStatement) -> list[str | None]:
    """Return the page of each row's statement; of a row without a month, the partner's newest."""
    if "month" not in columns:
        return [*map(find, columns["connection"], columns["partner_id"], repeat(None))]
    rows = zip(columns["connection"], columns["partner_id"], columns["month"], strict=True)
    return [find(*row) if row[2] else None for row in rows]


def _read(db: duckdb.DuckDBPyConnection, listing: Listing, figures: Figures) -> Detail:
    query = _query(listing.name.replace("-", "_"))
    if listing.name == "months":
        is_known = is_all_known(figures)
        columns = every_month(fetch_rows(db, query), figures.prepared, is_all_known=is_known)
    elif listing.parent == "bills":
        columns = read_lines(db, query, CREATE_EXACT)
    else:
        columns = db.execute(query).to_arrow_table().to_pydict()
    rows = Detail(listing, columns, 0).rows
    if "remedy" in columns:
        columns["remedy"] = _to_do(columns)
    if "follows" in columns:
        side = figures.accrual.side if figures.accrual else None
        columns["treatment"] = _treatments(columns, side)
    if "cause" in columns:
        columns["cause"] = [*map(format_cause, columns["cause"])]
    if listing.name in ("breaks", "resolved"):
        add_told(columns, figures.told or {})
    if listing.table:
        ((rows,),) = db.execute(COUNT.format(table=listing.table)).fetchall()
    return Detail(listing, columns, rows)


def _to_do(columns: dict[str, list[Any]]) -> list[str]:
    """Return what to do about each break; take the column of its rule away."""
    differences = (each and Decimal(each) for each in columns["difference"])
    breaks = (columns.pop("rule"), columns["cause"], differences, columns["remedy"])
    return [*map(to_do, *breaks)]


def _treatments(columns: dict[str, list[Any]], side: str | None) -> list[str | None]:
    """Return what each break means for who pays; take the column from which it follows away."""
    rows = zip(columns.pop("follows"), columns["paid"], columns["unpaid"], strict=True)
    return [
        treatment(side, follows, paid=bool(paid), unpaid=bool(unpaid))
        for follows, paid, unpaid in rows
    ]


def _query(name: str) -> str:
    return files("pipelines.finance.reports").joinpath(f"details/{name}.sql").read_text("utf-8")
