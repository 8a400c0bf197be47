"""The working paper of a closed month: a workbook that shows how each figure follows from rows.

Here: which sheets it has, and those of figures. Not here: the sheets of rows (paper_rows), the last
one (sign_off), and how totals become formulas (sheets).
"""

from pathlib import Path
from typing import Final

import duckdb
from xlsxwriter import Workbook

from pipelines.finance.closing.cells import Sheet
from pipelines.finance.closing.open_items import ACCRUED, NO_MONTH
from pipelines.finance.closing.paper_rows import SIGNS, write_rows
from pipelines.finance.closing.sheets import PARTNER, Key, Paper, Term
from pipelines.finance.closing.sign_off import write_sign_off
from pipelines.finance.mapping import Side
from pipelines.finance.reconcile.close_copy import ENTRIES
from pipelines.finance.reports.text import ISSUER, MAY_CLAIM
from pipelines.warehouse.duckdb_file import Row, fetch_rows

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
NOT_IN_OPENING: Final = Term("opening", "open_from_earlier_months")
CORRECTIONS: Final = Term("corrections", "unbilled")
ROLLFORWARD: Final = {
    "opening_balance": (OPENING,),
    "open_from_earlier_months": (NOT_IN_OPENING,),
    "corrections": (CORRECTIONS,),
    "used": (USED,),
    "billed": (BILLED,),
    "credited": (CREDITED,),
    "closing_balance": (
        *(OPENING, NOT_IN_OPENING, CORRECTIONS, USED),
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
Unbilled usage at the end of {}: what the journal accrues, and why not the rest
closing balance = accrued + all columns behind it, so that what is not explained is 0.
Below the total of a currency: of which months that is what is accrued, exact, and the rounding.
Opposite of unknown or another partner: the other side of a break under a wrong partner, at the \
partner that the matching record names. Both cancel.
Sheet open items has the rows with the month of each. Items without a month are in no balance.
The journal has no bills, also none in question: an invoice is posted when it is booked. One that \
own books lack is a break with own books, and no accrual. Each entry is rounded once, half away \
from zero, as ROUND of Excel does."""
NO_JOURNAL: Final = """
No accounts are set, so there is no journal: this is what it would accrue."""
SUMMARY_TITLE: Final = """\
Usage and billing of {}
{}
difference = billed + credited - used.
Not counted: void, draft and cancelled bills, which are in no other figure.
Verdict and open breaks are of usage and billing. Sheet breaks also has uncertain and resolved \
breaks, and those with own books."""
ROLLFORWARD_TITLE: Final = """\
Unbilled usage in {}
closing balance = opening balance + open from earlier months + corrections + used - billed \
- credited
Opening balance: the closing balance of the previous close. Open from earlier months: what that \
balance lacks, which is what changed in them without a correction; in a first copy, all that they \
left open."""
EXPLANATION: Final = f"""\
{SIGNS}
Totals are formulas: they add whole minor units (cents, or the smallest unit of the currency; the \
last columns of a sheet), and divide once.
A total that Excel would round is text, and says so.
Partners are identifiers: a signed copy never changes, so nobody could erase a name from it.
The report has the names, and so has reconciliation.partners of the books."""


def write_working_paper(
    db: duckdb.DuckDBPyConnection, file: Path, signed: Row, side: Side | None
) -> None:
    """Write the workbook of a copy, whose tables are views in schema `copied`.

    `signed` is what is known of the close, shown on the last sheet; `side` says who issues the
    bills. Raises StorageFailed, OSError, duckdb.Error.
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
        write_rows(db, paper, has_journal=has_journal)
        rollforward = paper.add_sheet("roll-forward")
        title = SUMMARY_TITLE.format(
            signed["month"], " ".join(filter(None, (ISSUER[side], MAY_CLAIM.get(side))))
        )
        _write_figures(paper, summary, (title, SUMMARY), fetch_rows(db, PARTNERS))
        title = ROLLFORWARD_TITLE.format(signed["month"])
        _write_figures(paper, rollforward, (title, ROLLFORWARD), fetch_rows(db, BALANCES))
        title = ACCRUAL_TITLE.format(signed["month"]) + ("" if has_journal else NO_JOURNAL)
        figures = _accrual(db, has_journal=has_journal)
        rows = fetch_rows(db, ITEMS, {"no_month": NO_MONTH})
        _write_figures(paper, paper.add_sheet("accrual"), (title, figures), rows, TO_ACCRUE)
        write_sign_off(paper.add_sheet("sign-off"), signed, db)


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


def _write_figures(
    paper: Paper,
    sheet: Sheet,
    content: tuple[str, dict[str, tuple[Term, ...]]],
    rows: list[Row],
    accrued: Term | None = None,
) -> None:
    """Write figures as formulas: totals by currency, then a row for each partner.

    `accrued`: below each total, its parts by month, in the second column of figures.
    """
    title, figures = content
    names = list(rows[0]) if rows else ["currency", "connection", "partner"]
    number = sheet.begin([*title.splitlines(), *EXPLANATION.splitlines()], [*names, *figures])
    for currency in dict.fromkeys(row["currency"] for row in rows):
        number += 1
        paper.write_total_label(sheet, number, (currency,))
        _write_formulas(paper, sheet, (number, len(names)), figures, (currency,))
        months = paper.parts(accrued, currency) if accrued else {}
        for month, term in months.items():
            number += 1
            of = f"usage of {month}" if month else "rounding"
            paper.write_total_label(sheet, number, (currency, ACCRUED, of))
            paper.write_figure(sheet, (number, len(names) + 1), [term], (currency,))
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
