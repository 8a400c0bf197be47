"""What a statement says: totals of a partner's month, and what is asked for.

Figures are those of the published books; of a closed month, those of its copy, which was signed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from itertools import groupby
from typing import Final

import duckdb

from pipelines.finance.reports.amounts import EXACT
from pipelines.finance.statements import words
from pipelines.warehouse.duckdb_file import Row, fetch_rows

MOST_LINES: Final = 100_000  # of a statement; the rest is counted
# Once for all partners of a month: a scan of all rows for each partner would take hours.
PREPARE: Final = """
CREATE TEMP TABLE statement_totals AS
SELECT
    figures.connection, figures.partner, figures.currency,
    coalesce(figures.used_amount, 0) AS used, coalesce(figures.billed_amount, 0) AS billed,
    coalesce(figures.credited_amount, 0) AS credited,
    coalesce(figures.difference, 0) AS difference, figures.verdict
FROM reconciliation.summary AS figures
WHERE figures.month = $month AND figures.partner IS NOT NULL;
CREATE TEMP TABLE statement_breaks AS
SELECT
    breaks.break_id, breaks.connection, breaks.partner, breaks.currency, breaks.rule, breaks.cause,
    breaks.difference,
    breaks.uncertain IS NOT NULL OR breaks.doubt IS NOT NULL AS is_uncertain
FROM reconciliation.breaks AS breaks
WHERE breaks.month = $month AND breaks.state <> 'resolved' AND breaks.partner IS NOT NULL
    -- What only own books say is nothing that a partner is asked for.
    AND NOT starts_with(breaks.rule, 'own_');
CREATE TEMP TABLE statement_lines AS
WITH sides AS (
    SELECT
        'usage' AS side, used.connection, used.partner, used.id, used.id AS record, used._scan_id,
        used._page, used._row, used.day AS date, used.quantity, used.price
    FROM temp.used AS used
    UNION ALL BY NAME
    SELECT
        'billing' AS side, billed.connection, billed.partner, billed.id,
        coalesce(billed.number, billed.bill) AS record, billed._scan_id, billed._page, billed._row,
        billed.issued_at::DATE AS date, billed.quantity, billed.price
    FROM temp.billed AS billed
)
SELECT
    requests.*, rows.side, rows.id, sides.date, rows.amount,
    coalesce(sides.quantity, rows.quantity) AS quantity, sides.price,
    -- A record that is gone is in no side. Of any other one, nobody knows whose it is.
    CASE WHEN sides.side IS NOT NULL THEN sides.record
         WHEN requests.rule = 'disappeared' AND rows.side = 'billing'
            THEN regexp_replace(rows.id, '#[^#]*$', '')
         WHEN requests.rule = 'disappeared' THEN rows.id END AS record
FROM statement_breaks AS requests
JOIN reconciliation.break_rows AS rows USING (break_id)
LEFT JOIN sides
    ON sides.side = rows.side AND sides.connection = requests.connection AND sides.id = rows.id
    AND sides._scan_id = rows._scan_id AND sides._page = rows._page AND sides._row = rows._row
-- Usage may be on a bill of another partner, whose records are not for this one.
WHERE NOT requests.is_uncertain AND coalesce(sides.partner = requests.partner,
    sides.side IS NULL AND (requests.rule = 'disappeared' OR requests.cause <> 'other partner'))
ORDER BY requests.connection, requests.partner;
CREATE TEMP TABLE statement_requests AS
SELECT requests.*, (
    SELECT count(*) FROM statement_lines AS lines WHERE lines.break_id = requests.break_id
) AS lines
FROM statement_breaks AS requests;
"""
FEES: Final = """
CREATE TEMP TABLE statement_fees AS
SELECT fees.connection, fees.partner, fees.currency, fees.kind, sum(fees.amount) AS amount
FROM reconciliation.without_usage AS fees
WHERE fees.month = $month AND fees.kind IS NOT NULL
GROUP BY ALL
"""
# Copies of the first releases have no accepted fees by kind. Where the copy of a closed month is
# damaged, books have no corrections: then the statement is provisional.
NONE: Final = """
CREATE TEMP TABLE statement_{} AS
SELECT
    NULL::VARCHAR AS connection, NULL::VARCHAR AS partner, NULL::VARCHAR AS currency,
    NULL::VARCHAR AS kind, 0 AS amount
WHERE false
"""
CORRECTIONS: Final = """
CREATE TEMP TABLE statement_corrections AS
SELECT
    posted.connection, posted.partner, posted.currency, posted.month, posted.side,
    if(posted.side = 'billing', regexp_replace(posted.id, '#[^#]*$', ''), posted.id) AS record,
    posted.amount_before, posted.amount_now, posted.difference
FROM reconciliation.corrections AS posted
WHERE posted.posted_to = $month AND posted.partner IS NOT NULL
"""
MAY_LACK: Final = {"fees": FEES, "corrections": CORRECTIONS}
PARTNERS: Final = """
SELECT rows.connection, rows.partner FROM statement_totals AS rows
UNION
SELECT rows.connection, rows.partner FROM statement_requests AS rows
UNION
SELECT rows.connection, rows.partner FROM statement_corrections AS rows
ORDER BY ALL
"""
OF_PARTNER: Final = """
SELECT rows.* EXCLUDE (connection, partner)
FROM statement_{table} AS rows
WHERE rows.connection = $connection AND rows.partner = $partner
ORDER BY {order}
"""
BY_DIFFERENCE: Final = "rows.currency, abs(rows.difference) DESC NULLS LAST, rows.break_id"
BY_AMOUNT: Final = f"{BY_DIFFERENCE}, rows.side DESC, abs(rows.amount) DESC NULLS LAST, rows.id"
Key = tuple[str, str]
"""Connection and identifier of a partner."""


@dataclass(frozen=True)
class Source:
    """What figures were read from.

    `name` is what the statement says of it, `as_of` the end of its data. `provisional` are reasons
    that hold for all partners, `not_complete` the connections of which a list is not complete.
    """

    name: str
    as_of: datetime
    version: int
    provisional: tuple[str, ...] = ()
    not_complete: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Request:
    """A difference that the partner is asked to confirm or correct, with its records.

    `left_out` counts records for which the statement has no room.
    """

    text: str
    currency: str | None
    difference: Decimal | None
    lines: Sequence[Row]
    left_out: int = 0


@dataclass(frozen=True)
class Statement:
    """What a partner is told of a month; amounts are exact. `totals` has a row by currency."""

    connection: str
    partner: str
    name: str
    month: date
    source: Source
    totals: Sequence[Row]
    fees: Sequence[Row] = ()
    requests: Sequence[Request] = ()
    corrections: Sequence[Row] = ()
    provisional: Sequence[str] = field(default_factory=tuple)


def prepare(db: duckdb.DuckDBPyConnection, month: date) -> list[Key]:
    """Create tables of a month in open books, or an open copy; return its partners.

    Raises duckdb.Error.
    """
    bound = {"month": month}
    for statement in db.extract_statements(PREPARE):
        names = {name: bound[name] for name in statement.named_parameters}
        db.execute(statement, names)
    for table, query in MAY_LACK.items():
        try:
            db.execute(query, bound)
        except duckdb.CatalogException:
            db.execute(NONE.format(table))
    return db.execute(PARTNERS).fetchall()


def read_statement(
    db: duckdb.DuckDBPyConnection, key: Key, name: str, month: date, source: Source
) -> Statement:
    """Return the statement of a partner whose month was prepared."""
    requests = _rows(db, key, "requests", BY_DIFFERENCE)
    fees = _rows(db, key, "fees", "ALL")
    totals = _rows(db, key, "totals", "rows.currency NULLS LAST")
    certain = [row for row in requests if not row["is_uncertain"]]
    return Statement(
        connection=key[0],
        partner=key[1],
        name=name,
        month=month,
        source=source,
        totals=[_divided(row, fees, certain) for row in totals],
        fees=fees,
        requests=list(_with_lines(certain, _rows(db, key, "lines", BY_AMOUNT))),
        corrections=_rows(db, key, "corrections", "ALL"),
        provisional=list(_why_provisional(key[0], source, totals, len(requests) - len(certain))),
    )


def _rows(db: duckdb.DuckDBPyConnection, key: Key, table: str, order: str) -> list[Row]:
    query = OF_PARTNER.format(table=table, order=order)
    if table == "lines":
        query += f"LIMIT {MOST_LINES}"
    return fetch_rows(db, query, {"connection": key[0], "partner": key[1]})


def _divided(total: Row, fees: Sequence[Row], requests: Sequence[Row]) -> Row:
    """Return totals with the parts of their difference: accepted fees, what is asked for, rest."""
    of_fees = _sum(fees, total["currency"], "amount")
    asked = _sum(requests, total["currency"], "difference")
    rest = EXACT.subtract(EXACT.subtract(total["difference"], of_fees), asked)
    return {**total, "fees": of_fees, "asked": asked, "rest": rest}


def _sum(rows: Sequence[Row], currency: str | None, amount: str) -> Decimal:
    total = Decimal(0)
    for row in rows:
        if row["currency"] == currency and row[amount] is not None:
            total = EXACT.add(total, row[amount])
    return total


def _with_lines(requests: Sequence[Row], lines: Sequence[Row]) -> Iterator[Request]:
    """Yield what is asked for, in the order of the rows, which is that of the lines, too."""
    lines_of = {name: list(rows) for name, rows in groupby(lines, lambda row: row["break_id"])}
    for row in requests:
        own = lines_of.get(row["break_id"], [])
        yield Request(
            text=words.finding(row["rule"], row["cause"] or ""),
            currency=row["currency"],
            difference=row["difference"],
            lines=own,
            left_out=row["lines"] - len(own),
        )


def _why_provisional(
    connection: str, source: Source, totals: Sequence[Row], uncertain: int
) -> Iterator[str]:
    yield from source.provisional
    if connection in source.not_complete:
        yield words.NOT_COMPLETE
    if any(row["verdict"] == "not proven" for row in totals):
        yield words.UNREAD
    if uncertain:
        yield words.UNCERTAIN.format(f"{uncertain:,}")
