"""From which amount on a break matters: what is proposed, and the order of breaks by it.

Here: what reads the statement `materiality`. Not here: the severity of a break (`sql/breaks.sql`).
"""

from decimal import Decimal
from typing import Final

import duckdb

from pipelines.finance.mapping import Mapping
from pipelines.finance.reconcile.statements import read_statement
from pipelines.finance.reconcile.views import create_row_views
from pipelines.warehouse.duckdb_file import Row, fetch_rows

# What the statement reads of books, of a version that has none yet: as in `month_facts.sql`, lines
# of a bill without a period count in their own months.
CREATE_SOURCES: Final = """
CREATE OR REPLACE TEMP TABLE month_facts AS
SELECT billed.month, billed.currency, sum(billed.amount) AS billed_amount
FROM (
    SELECT bills.month, bills.currency, bills.amount
    FROM temp.bills AS bills
    WHERE bills.apart IS NULL
    UNION ALL
    SELECT
        unnest([lines.month, bills.month]), lines.currency, unnest([lines.amount, -lines.amount])
    FROM temp.billed AS lines
    JOIN temp.bills AS bills USING (connection, _key)
    WHERE lines.apart IS NULL AND lines.month_from = 'usage' AND lines.month <> bills.month
        AND bills.amount IS NOT NULL
) AS billed
GROUP BY ALL;
CREATE OR REPLACE TEMP TABLE accepted_materiality (currency VARCHAR, amount DECIMAL(28, 4));
"""
CREATE_BASIS: Final = """
CREATE OR REPLACE TEMP TABLE basis AS
SELECT
    max_by(loads.ended_at, loads.valid_time) AS as_of, $time_zone AS time_zone,
    $grace_days::INTEGER AS grace_days
FROM meta.loads AS loads
WHERE loads.stream IN ('partners', 'usage', 'billing')
"""
# Those of which nobody can say that they are small come first.
CREATE_ORDER: Final = """
CREATE OR REPLACE TEMP VIEW break_order AS
SELECT
    breaks.break_id, {materiality} AS materiality,
    row_number() OVER (
        ORDER BY list_position(['high', 'medium', 'low'], breaks.severity),
            {at_stake} IS NULL, {at_stake} / {materiality} DESC NULLS FIRST, {at_stake} DESC,
            breaks.break_id
    ) AS place
FROM reconciliation.breaks AS breaks
"""
ORDER: Final = {"materiality": "breaks.materiality", "at_stake": "breaks.at_stake"}
# Of books of an earlier release.
EARLIER_ORDER: Final = {
    "materiality": "NULL::DECIMAL(28, 4)",
    "at_stake": "abs(breaks.difference)",
}


def create_break_order(db: duckdb.DuckDBPyConnection) -> None:
    """Create view `break_order` in open books: the place of each break, most severe first.

    In a severity, breaks are in the order of their amounts over the materiality of the currency.
    Raises duckdb.CatalogException where there are no breaks.
    """
    try:
        db.execute(CREATE_ORDER.format(**ORDER))
    except duckdb.BinderException:
        db.execute(CREATE_ORDER.format(**EARLIER_ORDER))


def propose_materiality(db: duckdb.DuckDBPyConnection, mapping: Mapping) -> list[Row]:
    """Return what is proposed by currency: currency, amount, median, and how many months.

    `db` is an open version; `mapping` is how its bills are read. None without months that are over.
    """
    db.execute(f"SET TimeZone = '{mapping.time_zone}'")
    create_row_views(db, mapping)
    db.execute(CREATE_SOURCES)
    terms = {"time_zone": mapping.time_zone.key, "grace_days": mapping.grace_days}
    db.execute(CREATE_BASIS, terms)
    # The same statement as in books, so that both propose the same.
    query = read_statement("materiality").query.replace("reconciliation.", "temp.")
    return fetch_rows(db, f"FROM ({query}) AS proposed ORDER BY proposed.currency")


def amount_text(amount: Decimal) -> str:
    """Return a round amount without zeros behind the point: 100, 0.5."""
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
