"""The working paper of a closed month: a workbook that shows how each figure follows from rows.

Here: which sheets it has. Not here: how totals become formulas (sheets).
"""

from pathlib import Path
from typing import Final

import duckdb
from xlsxwriter import Workbook

from pipelines.finance.closing.cells import Sheet
from pipelines.finance.closing.open_items import ACCRUED, NO_MONTH
from pipelines.finance.closing.sheets import PARTNER, Key, Paper, Table, Term
from pipelines.finance.closing.sign_off import write_sign_off
from pipelines.finance.reconcile.close_copy import ENTRIES
from pipelines.warehouse.duckdb_file import Row, fetch_rows

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
    pairs.billed_partner, pairs.used_rows, pairs.billed_rows, pairs.used_quantity,
    pairs.billed_quantity, pairs.used_amount AS used, pairs.billed_amount AS billed,
    pairs.credited_amount AS credited, pairs.difference
FROM copied.matches AS pairs""",
    "breaks": """
SELECT
    breaks.currency, breaks.connection, breaks.partner,
    if(breaks.own_source IS NULL, 'usage and billing', 'own books') AS comparison,
    breaks.break_id, breaks.severity, breaks.rule, breaks.cause, breaks.subject, breaks.rows,
    breaks.used_amount AS used, breaks.billed_amount AS billed, breaks.own_amount AS own,
    breaks.difference, breaks.open_difference, breaks.first_seen, breaks.state, breaks.owner,
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
    rows.unposted AS not_posted
FROM copied.opening AS rows""",
    "journal": """
SELECT
    lines.currency, lines.connection, lines.partner, lines.period, lines.date, lines.kind,
    lines.account, lines.debit::DECIMAL(38, 4) AS debit, lines.credit::DECIMAL(38, 4) AS credit,
    if(lines.kind = 'accrual' AND lines.source = lines.close AND lines.amount IS NOT NULL,
        if(lines.amount < 0, 1, -1) * coalesce(lines.debit, lines.credit)::DECIMAL(38, 4), NULL
    )::DECIMAL(38, 4) AS accrued, lines.entry, lines.source, lines.close
FROM copied.entries AS lines
WHERE lines.debit IS NOT NULL OR lines.credit IS NOT NULL""",
    "open items": """
SELECT
    items.currency, items.reason, items.connection, items.partner, items.kind, items.month,
    items.source, items.because, items.amount
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
    "matching": "Usage beside what bills it",
    "breaks": "Breaks of the month, with the decisions about them",
    "corrections": "Corrections of closed months that are posted to this month",
    "opening": "Unbilled usage before this month",
    "journal": "Lines of journal.csv, for the ledger",
    "open items": "Unbilled usage at the end of the month by item: accrued, or why it is not",
}
AMOUNTS: Final = {
    "used": ("used",),
    "billed": ("billed", "credited", "not_counted"),
    "matching": ("used", "billed", "credited", "difference"),
    "breaks": ("difference", "open_difference"),
    "corrections": ("unbilled",),
    "opening": ("opening_balance", "not_posted"),
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
USED: Final = Term("used", "used")
BILLED: Final = Term("billed", "billed")
CREDITED: Final = Term("billed", "credited")
SUMMARY: Final = {
    "used": (USED,),
    "billed": (BILLED,),
    "credited": (CREDITED,),
    "difference": (BILLED, CREDITED, USED._replace(sign=-1)),
    "not_counted": (Term("billed", "not_counted"),),
}
OPENING: Final = Term("opening", "opening_balance")
NOT_POSTED: Final = Term("opening", "not_posted")
CORRECTIONS: Final = Term("corrections", "unbilled")
ROLLFORWARD: Final = {
    "opening_balance": (OPENING,),
    "not_posted": (NOT_POSTED,),
    "corrections": (CORRECTIONS,),
    "used": (USED,),
    "billed": (BILLED,),
    "credited": (CREDITED,),
    "closing_balance": (
        *(OPENING, NOT_POSTED, CORRECTIONS, USED),
        *(BILLED._replace(sign=-1), CREDITED._replace(sign=-1)),
    ),
}
PARTNERS: Final = """
SELECT
    figures.currency, figures.connection, figures.partner, figures.verdict, figures.open_breaks
FROM copied.summary AS figures
ORDER BY ALL NULLS LAST
"""
BALANCES: Final = """
SELECT figures.currency, figures.connection, figures.partner
FROM copied.rollforward AS figures
ORDER BY ALL NULLS LAST
"""
# The journal has what is accrued in the line of the account that an accrual has for its sum.
IN_JOURNAL: Final = Term("journal", "accrued", group=("accrual",))
TO_ACCRUE: Final = Term("open items", "amount", group=(ACCRUED,))
REASONS: Final = """
SELECT items.reason
FROM copied.open_items AS items
WHERE items.reason NOT IN ($accrued, $no_month)
GROUP BY items.reason
ORDER BY min(list_position(
    ['open break', 'resolved break', 'charge', 'pairs', 'month', 'correction', 'rounding'],
    items.kind
)), items.reason
"""
ITEMS: Final = """
SELECT figures.currency, figures.connection, figures.partner
FROM copied.rollforward AS figures
UNION
SELECT items.currency, items.connection, items.partner
FROM copied.open_items AS items
WHERE items.reason <> $no_month
ORDER BY ALL NULLS LAST
"""
ACCRUAL_TITLE: Final = """\
What of the unbilled usage at the end of {} the journal accrues, and why not the rest
closing balance = accrued + all columns behind it, so that what is not explained is 0.
Sheet open items has the rows. Items without a month are in no balance."""
NO_JOURNAL: Final = """
No accounts are set, so there is no journal: this is what it would accrue."""
ROLLFORWARD_TITLE: Final = """\
Unbilled usage in {}
closing balance = opening balance + not posted + corrections + used - billed - credited
Opening balance: the closing balance of the previous close. Not posted: what changed in earlier \
months without a correction."""
EXPLANATION: Final = """\
Totals are formulas: they add whole minor units (cents, or the smallest unit of the currency; the \
last columns of a sheet), and divide once.
A total that Excel would round is text, and says so.
Partners are identifiers: a signed copy never changes, so nobody could erase a name from it.
The report has the names, and so has reconciliation.partners of the books."""
LEFT_OUT: Final = (
    "More than {:,} rows: this sheet has totals of partners. The copy has a table with every row."
)
IDENTIFIERS: Final = "Partners are identifiers: a signed copy has no names. The report has them."
SOURCE: Final = (
    "Source: where the record is in what the service sent; `partner-sync trace record` shows it."
)
ONLY_DIFFERING: Final = "More than {:,} pairs: this sheet has those that differ."


def write_working_paper(db: duckdb.DuckDBPyConnection, file: Path, signed: Row) -> None:
    """Write the workbook of a copy, whose tables are views in schema `copied`.

    `signed` is what is known of the close, shown on the last sheet. Raises StorageFailed, OSError,
    duckdb.Error.
    """
    options = {
        "constant_memory": True,
        "tmpdir": str(file.parent),
        "default_format_properties": {"valign": "top"},
    }
    with Workbook(str(file), options) as workbook:
        workbook.use_zip64()
        paper = Paper(workbook, db)
        summary = paper.add_sheet("summary")
        has_journal = (file.parent / ENTRIES).exists()
        for name, query in _queries(has_journal=has_journal).items():
            _write_table(db, paper, name, query)
        rollforward = paper.add_sheet("roll-forward")
        title = f"Usage and billing of {signed['month']}"
        _write_figures(paper, summary, (title, SUMMARY), fetch_rows(db, PARTNERS))
        title = ROLLFORWARD_TITLE.format(signed["month"])
        _write_figures(paper, rollforward, (title, ROLLFORWARD), fetch_rows(db, BALANCES))
        title = ACCRUAL_TITLE.format(signed["month"]) + ("" if has_journal else NO_JOURNAL)
        figures = _accrual(db, has_journal=has_journal)
        rows = fetch_rows(db, ITEMS, {"no_month": NO_MONTH})
        _write_figures(paper, paper.add_sheet("accrual"), (title, figures), rows)
        write_sign_off(paper.add_sheet("sign-off"), signed, db)


def _queries(*, has_journal: bool) -> dict[str, str]:
    """Return the sheets of rows, in their order, with their statements."""
    queries = dict(SINGLE)
    if has_journal:
        queries["corrections"] = WITH_ENTRIES.format(query=queries["corrections"])
    else:
        del queries["journal"]
    return queries


def _accrual(db: duckdb.DuckDBPyConnection, *, has_journal: bool) -> dict[str, tuple[Term, ...]]:
    """Return the figures of sheet accrual: the closing balance, and what it consists of."""
    accrued = IN_JOURNAL if has_journal else TO_ACCRUE
    figures = {"accrued" if has_journal else "to accrue": (accrued,)}
    bound = {"accrued": ACCRUED, "no_month": NO_MONTH}
    for (reason,) in db.execute(REASONS, bound).fetchall():
        figures[reason] = (TO_ACCRUE._replace(group=(reason,)),)
    closing = ROLLFORWARD["closing_balance"]
    parts = [term._replace(sign=-1) for (term,) in figures.values()]
    return {"closing_balance": closing, **figures, "not explained": (*closing, *parts)}


def _write_table(db: duckdb.DuckDBPyConnection, paper: Paper, name: str, query: str) -> None:
    """Write a sheet of single rows; of too many, of what differs or of totals of partners."""
    then = THEN[name]
    group = GROUPS.get(name, ("currency",))
    notes = [IDENTIFIERS]
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
        notes = [LEFT_OUT.format(MOST_ROWS), IDENTIFIERS]
    paper.write_table(Table(name, TITLES[name], query, AMOUNTS[name], then, group, notes))


def _count(db: duckdb.DuckDBPyConnection, query: str) -> int:
    ((rows,),) = db.execute(COUNT.format(query=query)).fetchall()
    return int(rows)


def _write_figures(
    paper: Paper, sheet: Sheet, content: tuple[str, dict[str, tuple[Term, ...]]], rows: list[Row]
) -> None:
    """Write figures as formulas: totals by currency, then a row for each partner."""
    title, figures = content
    names = list(rows[0]) if rows else ["currency", "connection", "partner"]
    number = sheet.begin([*title.splitlines(), *EXPLANATION.splitlines()], [*names, *figures])
    for currency in dict.fromkeys(row["currency"] for row in rows):
        number += 1
        paper.write_total_label(sheet, number, (currency,))
        _write_formulas(paper, sheet, (number, len(names)), figures, (currency,))
    for row in rows:
        number += 1
        for place, value in enumerate(row.values()):
            sheet.put(number, place, value)
        key = (row["currency"], row["connection"], row["partner"])
        _write_formulas(paper, sheet, (number, len(names)), figures, key)
    sheet.finish(len(PARTNER) + 1, len(names) + len(figures))


def _write_formulas(
    paper: Paper,
    sheet: Sheet,
    cell: tuple[int, int],
    figures: dict[str, tuple[Term, ...]],
    key: Key,
) -> None:
    row, first = cell
    for place, terms in enumerate(figures.values(), first):
        paper.write_figure(sheet, (row, place), terms, key)
