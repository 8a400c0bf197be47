"""The workbook of a statement: exact numbers, text that is never a formula."""

from collections.abc import Iterable, Sequence
from datetime import UTC, date
from decimal import Decimal
from io import BytesIO
from typing import Any, Final

from xlsxwriter import Workbook

from pipelines.core.text import counted
from pipelines.finance.closing.cells import Sheet, Styles
from pipelines.finance.currencies import digits_of
from pipelines.finance.reports.text import format_month, format_time
from pipelines.finance.statements import words
from pipelines.finance.statements.figures import Request, Statement

TOTALS: Final = {
    "currency": "currency",
    "used": "used",
    "billed": "billed",
    "credited": "credit notes",
    "difference": "difference",
    "fees": "fees that we accept",
    "asked": "to confirm or correct",
    "rest": "other differences",
}
BALANCE: Final = {"currency": "currency"} | {
    name: label.lower() for name, label in words.BALANCE.items()
}
FEES: Final = {"kind": "kind", "currency": "currency", "amount": "amount"}
LINES: Final = {
    "text": "finding",
    "currency": "currency",
    "kind": "kind",
    "record": "record",
    "date": "date",
    "quantity": "quantity",
    "price": "price",
    "used": "used",
    "billed": "billed",
    "difference": "difference of the finding",
}
CORRECTIONS: Final = {
    "kind": "kind",
    "record": "record",
    "month": "month",
    "currency": "currency",
    "amount_before": "before",
    "amount_now": "now",
    "difference": "difference",
}
MONEY: Final = (
    *("used", "billed", "credited", "difference", "fees", "asked", "rest", "amount"),
    *("amount_before", "amount_now", *words.BALANCE),
)
KINDS: Final = {"usage": "usage", "billing": "bill"}
EXPLANATION: Final = (
    "Excel keeps 15 digits of a number. Amounts with more digits are text, so that none is rounded."
)


def write_workbook(statement: Statement) -> bytes:
    """Return the workbook of a statement: the same statement has the same bytes."""
    content = BytesIO()
    with Workbook(content, {"in_memory": True}) as workbook:
        # Else it has the time at which it was written.
        workbook.set_properties({"created": statement.source.as_of.astimezone(UTC)})
        styles = Styles(workbook)
        sheet = Sheet(workbook.add_worksheet("statement"), styles)
        _write_totals(sheet, statement)
        sheet.finish(1, len(TOTALS))
        sheet = Sheet(workbook.add_worksheet("to confirm or correct"), styles)
        head = sheet.begin([], LINES.values())
        number = _write_rows(sheet, head + 1, LINES, _lines(statement.requests))
        left_out = sum(request.left_out for request in statement.requests)
        if left_out:
            sheet.put(number, 0, f"Not shown: {counted(left_out, 'record')}.")
        sheet.finish(1, len(LINES))
        if statement.corrections:
            sheet = Sheet(workbook.add_worksheet("corrections"), styles)
            head = sheet.begin([], CORRECTIONS.values())
            _write_rows(sheet, head + 1, CORRECTIONS, map(_with_kind, statement.corrections))
            sheet.finish(1, len(CORRECTIONS))
    return content.getvalue()


def _write_totals(sheet: Sheet, statement: Statement) -> None:
    """Write totals, the balance of bills if it is known, and accepted fees."""
    head = sheet.begin([*_head(statement), ""], TOTALS.values())
    number = _write_rows(sheet, head + 1, TOTALS, statement.totals)
    if statement.balance and statement.balance.rows:
        as_of = format_time(statement.balance.as_of)
        sheet.put(number + 1, 0, f"Balance of bills, as of {as_of}", sheet.styles.bold)
        sheet.put(number + 2, 0, words.ABOUT_BALANCE, sheet.styles.quiet)
        sheet.put_headings(number + 3, BALANCE.values())
        number = _write_rows(sheet, number + 4, BALANCE, map(_said, statement.balance.rows))
    if statement.fees:
        sheet.put(number + 1, 0, "Fees that we accept", sheet.styles.bold)
        sheet.put_headings(number + 2, FEES.values())
        _write_rows(sheet, number + 3, FEES, statement.fees)


def _write_rows(
    sheet: Sheet, first: int, columns: dict[str, str], rows: Iterable[dict[str, Any]]
) -> int:
    """Write rows; return the number of the next one. An amount shows all digits that it has."""
    number = first
    for row in rows:
        for place, name in enumerate(columns):
            value = row.get(name)
            style = None
            if name in MONEY and isinstance(value, Decimal):
                style = sheet.styles.money(max(digits_of(row["currency"]), _digits(value)))
            if isinstance(value, date):
                value = value.isoformat()
            sheet.put(number, place, value, style)
        number += 1
    return number


def _head(statement: Statement) -> Iterable[str]:
    yield f"Statement of usage and bills, {format_month(statement.month)}"
    yield f"{statement.name} (identifier {statement.partner})"
    yield f"As of {format_time(statement.source.as_of)}"
    if statement.provisional:
        yield "Provisional: amounts may still change."
        yield from statement.provisional
    yield f"Our reference: {statement.source.name}, {statement.connection}"
    yield EXPLANATION


def _said(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of a balance, which says what is not known."""
    unknown = {name: "not known" for name in words.BALANCE if row[name] is None}
    return row | unknown


def _lines(requests: Sequence[Request]) -> Iterable[dict[str, Any]]:
    """Yield a row for each request with its difference, then one for each of its records."""
    for request in requests:
        about = {"text": request.text, "currency": request.currency}
        yield {**about, "difference": request.difference}
        for line in request.lines:
            amount = "used" if line["side"] == "usage" else "billed"
            yield {**_with_kind(line), **about, amount: line["amount"], "difference": None}


def _with_kind(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "kind": KINDS[row["side"]]}


def _digits(value: Decimal) -> int:
    """Return how many digits an amount has behind the point, without zeros that say nothing."""
    return len(f"{value:f}".partition(".")[2].rstrip("0"))
