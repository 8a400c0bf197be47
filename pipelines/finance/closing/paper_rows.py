"""The sheets of rows of a working paper: used, billed, matching, breaks and the others.

Here: which columns they have. Not here: the sheets whose figures follow from them (working_paper).
"""

from typing import Final

import duckdb

from pipelines.finance.closing.sheets import PARTNER, Paper, Table

MOST_ROWS: Final = 100_000  # of a sheet with single rows
SINGLE: Final = {
    "used": """
SELECT
    used.currency, used.connection, used.partner, used.id, used.day, used.plan, used.metric,
    used.quantity, used.price, used.amount AS used, used._scan_id AS "source: scan",
    used._page AS "source: page", used._row AS "source: row"
FROM copied.used AS used""",
    "billed": """
SELECT
    billed.currency, billed.connection, billed.partner, billed.bill, billed.number, billed.id,
    billed.reference AS usage, coalesce(billed.apart, 'bill') AS kind, billed.quantity,
    billed.price, if(billed.apart IS NULL, billed.amount, NULL) AS billed,
    if(billed.apart = 'credit note', billed.amount, NULL) AS credited,
    if(billed.apart <> 'credit note', billed.amount, NULL) AS not_counted,
    billed._scan_id AS "source: scan", billed._page AS "source: page", billed._row AS "source: row"
FROM copied.billed AS billed""",
    "matching": """
SELECT
    pairs.currency, pairs.connection, pairs.partner, pairs.key AS usage, pairs.status,
    if(pairs.billed_rows = 0, 'not billed', pairs.billed_partner) AS billed_partner,
    pairs.used_rows, pairs.billed_rows,
    if(pairs.used_rows = 0, 0, pairs.used_quantity) AS used_quantity,
    if(pairs.billed_rows = 0 AND pairs.billed_quantity IS NULL, 0, pairs.billed_quantity)
        AS "billed quantity, net of credit notes",
    pairs.used_amount AS used, pairs.billed_amount AS billed, pairs.credited_amount AS credited,
    pairs.difference
FROM copied.matches AS pairs""",
    "breaks": """
SELECT
    breaks.currency, breaks.connection, breaks.partner,
    if(breaks.own_source IS NULL, 'usage and billing', 'own books') AS comparison,
    breaks.break_id, breaks.severity, breaks.materiality, breaks.rule, breaks.cause,
    breaks.subject, breaks.rows,
    breaks.used_amount AS used, breaks.billed_amount AS billed, breaks.own_amount AS own,
    breaks.difference, breaks.open_difference, breaks.due_on, breaks.age_days,
    breaks.first_seen, breaks.state, breaks.owner,
    breaks.resolved_by, breaks.reason, breaks.uncertain, breaks.doubt, decided.decisions
FROM copied.breaks AS breaks
LEFT JOIN (
    SELECT
        all_of.break_id,
        string_agg(
            concat_ws(' ', all_of.decided_at::VARCHAR, all_of.person,
                replace(all_of.kind, 'break_', ''), 'for ' || all_of.owner, ': ' || all_of.reason),
            '; ' ORDER BY all_of.number
        ) AS decisions
    FROM copied.decisions AS all_of
    GROUP BY all_of.break_id
) AS decided USING (break_id)""",
    "corrections": """
SELECT
    posted.currency, posted.connection, posted.partner, posted.month, posted.number AS copy,
    posted.side, posted.id, posted.amount_before, posted.amount_now, posted.difference,
    if(posted.side = 'usage', posted.difference, -posted.difference) AS unbilled, posted.seen_at
FROM copied.corrections AS posted""",
    "opening": """
SELECT
    rows.currency, rows.connection, rows.partner, rows.opening AS opening_balance,
    rows.unposted AS open_from_earlier_months
FROM copied.opening AS rows""",
    "journal": """
SELECT
    lines.currency, lines.connection, lines.partner, lines.period, lines.date, lines.kind,
    lines.account, names.name AS account_name, lines.debit::DECIMAL(38, 4) AS debit,
    lines.credit::DECIMAL(38, 4) AS credit,
    if(lines.kind = 'accrual' AND lines.source = lines.close AND lines.amount IS NOT NULL,
        if(lines.amount < 0, 1, -1) * coalesce(lines.debit, lines.credit)::DECIMAL(38, 4), NULL
    )::DECIMAL(38, 4) AS accrued, lines.entry, lines.source, lines.close
FROM copied.entries AS lines
LEFT JOIN account_names AS names USING (account)
WHERE lines.debit IS NOT NULL OR lines.credit IS NOT NULL""",
    "open items": """
SELECT
    items.currency, items.reason, items.connection, items.partner, items.kind,
    strftime(items.month, '%Y-%m') AS month, items.source, items.because, items.amount
FROM copied.open_items AS items""",
}
# Why the journal has no entry of a correction.
WITH_ENTRIES: Final = """
SELECT posted.*, entries.left_out AS not_in_the_journal
FROM ({query}) AS posted
LEFT JOIN (
    SELECT DISTINCT
        lines.connection, lines.partner, lines.currency, lines.source, lines.left_out
    FROM copied.entries AS lines
    WHERE lines.kind = 'correction' AND lines.left_out IS NOT NULL
) AS entries
    ON entries.connection = posted.connection
    AND entries.partner IS NOT DISTINCT FROM posted.partner
    AND entries.currency IS NOT DISTINCT FROM posted.currency
    AND entries.source = concat(
        posted.side, ' ', posted.id, ' of ', strftime(posted.month, '%Y-%m'))
"""
TOTALS: Final = """
SELECT {key}, count(*) AS records, {sums}
FROM ({query}) AS rows
GROUP BY {key}
"""
DIFFERING: Final = "{query} WHERE pairs.status <> 'balanced'"
COUNT: Final = "SELECT count(*) FROM ({query})"
TITLES: Final = {
    "used": "Usage of the month",
    "billed": "Lines of bills of the month",
    "matching": "Usage beside what bills it; lines that bill no usage are only on sheet billed",
    "breaks": "Breaks of the month, with the decisions",
    "corrections": "Corrections of closed months that are posted to this month",
    "opening": "Unbilled usage before this month; above zero, more is used than billed",
    "journal": "Lines of journal.csv, for the ledger",
    "open items": "Unbilled usage at the month end: accrued, or why not",
}
AMOUNTS: Final = {
    "used": ("used",),
    "billed": ("billed", "credited", "not_counted"),
    "matching": ("used", "billed", "credited", "difference"),
    "breaks": ("difference", "open_difference"),
    "corrections": ("unbilled",),
    "opening": ("opening_balance", "open_from_earlier_months"),
    "journal": ("debit", "credit", "accrued"),
    "open items": ("amount",),
}
# What totals are of, besides the currency. Sums of differences with own books say nothing of
# billing, and an accrual and its reversal are no sum.
GROUPS: Final = {
    "breaks": ("currency", "comparison"),
    "journal": ("currency", "kind"),
    "open items": ("currency", "reason"),
}
# By what a part of a total can be told.
PARTS: Final = {"open items": "month"}
THEN: Final = {
    "used": ("id",),
    "billed": ("id",),
    "matching": ("usage",),
    "breaks": ("state", "break_id"),
    "corrections": ("month", "side", "id"),
    "opening": (),
    "journal": ("period", "kind", "entry", "source"),
    "open items": ("kind", "month", "source"),
}
# Sheets whose amounts have signs. An accrual is a positive amount in any ledger.
SIGNED: Final = ("matching", "breaks", "corrections", "opening", "open items")
SIGNS: Final = (
    "Signs: differences are billed minus used (+ overbilled, \u2212 unbilled usage). "
    "Unbilled usage, balances and accruals are used minus billed (+ unbilled usage, "
    "\u2212 overbilled)."
)
AGE: Final = (
    "Age, in days: from the day when the bill was due where that is known, otherwise from the "
    "month end, to the end of the data."
)
SEVERITY: Final = (
    "Severity: high from the materiality of the currency on, medium from a tenth of it, low below."
)
SIGNS_OF_OWN: Final = "Differences with own books: what the service has minus what they have."
LEFT_OUT: Final = (
    "More than {:,} rows: this sheet has totals of partners. The copy has a table with every row."
)
IDENTIFIERS: Final = "Partners are identifiers: a signed copy has no names. The report has them."
SOURCE: Final = (
    "Source: where the record is in what the service sent; `partner-sync trace record` shows it."
)
AS_STATED: Final = (
    "Amounts, quantities and prices are as the service states them: no amount is computed here, so "
    "the rounding of quantity x price is the service's. A blank quantity or price is not stated."
)
ONLY_DIFFERING: Final = "More than {:,} pairs: this sheet has those that differ."


def write_rows(db: duckdb.DuckDBPyConnection, paper: Paper, *, has_journal: bool) -> None:
    """Write the sheets of rows of a copy. Raises StorageFailed, duckdb.Error."""
    for name, query in _queries(has_journal=has_journal).items():
        _write_table(db, paper, name, query)


def _queries(*, has_journal: bool) -> dict[str, str]:
    """Return the sheets of rows, in their order, with their statements."""
    queries = dict(SINGLE)
    if has_journal:
        queries["corrections"] = WITH_ENTRIES.format(query=queries["corrections"])
    else:
        del queries["journal"]
    return queries


def _write_table(db: duckdb.DuckDBPyConnection, paper: Paper, name: str, query: str) -> None:
    """Write a sheet of single rows; of too many, of what differs or of totals of partners."""
    then = THEN[name]
    group = GROUPS.get(name, ("currency",))
    about = [SIGNS] if name in SIGNED else []
    if name == "breaks":
        about += [SIGNS_OF_OWN, SEVERITY, AGE]
    notes = [*about, IDENTIFIERS]
    part = PARTS.get(name, "")
    if name in ("used", "billed", "matching"):
        notes.append(AS_STATED)
    if "source: scan" in query:
        notes.append(SOURCE)
    if _count(db, query) > MOST_ROWS and name == "matching":
        query = DIFFERING.format(query=query)
        notes.insert(0, ONLY_DIFFERING.format(MOST_ROWS))
    if _count(db, query) > MOST_ROWS:
        key = ", ".join(f"rows.{column}" for column in (*group, *PARTNER))
        sums = ", ".join(f"sum(rows.{amount}) AS {amount}" for amount in AMOUNTS[name])
        query = TOTALS.format(key=key, query=query, sums=sums)
        then = ()
        part = ""
        notes = [LEFT_OUT.format(MOST_ROWS), *about, IDENTIFIERS]
    paper.write_table(Table(name, TITLES[name], query, AMOUNTS[name], then, group, notes, part))


def _count(db: duckdb.DuckDBPyConnection, query: str) -> int:
    ((rows,),) = db.execute(COUNT.format(query=query)).fetchall()
    return int(rows)
