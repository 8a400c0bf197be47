"""The workbook of a statement: exact numbers, text that is never a formula."""

from collections.abc import Iterable, Sequence
from datetime import UTC, date
from decimal import Decimal
from io import BytesIO
from typing import Any, Final

from xlsxwriter import Workbook
from xlsxwriter.worksheet import Worksheet

from pipelines.core.text import counted
from pipelines.finance.closing.sheets import put
from pipelines.finance.currencies import digits_of
from pipelines.finance.reports.text import format_month, format_time
from pipelines.finance.statements.figures import Request, Statement

TOTALS: Final = {
    "currency": "currency",
    "used": "used",
    "billed": "billed",
    "credited": "credit notes",
    "difference": "difference",
    "fees": "accepted fees",
    "asked": "asked for",
    "rest": "the rest",
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
    *("amount_before", "amount_now"),
)
KINDS: Final = {"usage": "usage", "billing": "bill"}
EXPLANATION: Final = (
    "Excel keeps 15 digits of a number. Amounts with more digits are text, so that none is rounded."
)
WIDTH: Final = 22


class _Sheets:
    """Writes tables of rows; the format of an amount shows all digits that it has."""

    def __init__(self, workbook: Workbook) -> None:
        self._workbook = workbook
        self._bold = workbook.add_format({"bold": True})
        self._money = dict[int, Any]()

    def add(self, name: str) -> Worksheet:
        sheet = self._workbook.add_worksheet(name)
        sheet.set_column(0, len(LINES), WIDTH)
        return sheet

    def write_table(
        self, sheet: Worksheet, first: int, columns: dict[str, str], rows: Iterable[dict[str, Any]]
    ) -> int:
        """Write headings and rows; return the number of the next row."""
        for place, heading in enumerate(columns.values()):
            put(sheet, first, place, heading, self._bold)
        number = first + 1
        for row in rows:
            for place, name in enumerate(columns):
                self._write(sheet, (number, place), row.get(name), name in MONEY, row)
            number += 1
        return number

    def _write(
        self,
        sheet: Worksheet,
        cell: tuple[int, int],
        value: Any,
        is_money: bool,  # noqa: FBT001 - of the column
        row: dict[str, Any],
    ) -> None:
        style = None
        if is_money and isinstance(value, Decimal):
            style = self._style(max(digits_of(row["currency"]), _digits(value)))
        if isinstance(value, date):
            value = value.isoformat()
        put(sheet, *cell, value, style)

    def _style(self, digits: int) -> Any:
        if digits not in self._money:
            pattern = "#,##0" + ("." + "0" * digits if digits else "")
            self._money[digits] = self._workbook.add_format({"num_format": pattern})
        return self._money[digits]


def write_workbook(statement: Statement) -> bytes:
    """Return the workbook of a statement: the same statement has the same bytes."""
    content = BytesIO()
    with Workbook(content, {"in_memory": True}) as workbook:
        # Else it has the time at which it was written.
        workbook.set_properties({"created": statement.source.as_of.astimezone(UTC)})
        sheets = _Sheets(workbook)
        sheet = sheets.add("statement")
        number = 0
        for text in _head(statement):
            put(sheet, number, 0, text)
            number += 1
        number = sheets.write_table(sheet, number + 1, TOTALS, statement.totals)
        if statement.fees:
            put(sheet, number + 1, 0, "Accepted fees")
            sheets.write_table(sheet, number + 2, FEES, statement.fees)
        sheet = sheets.add("asked for")
        number = sheets.write_table(sheet, 0, LINES, _lines(statement.requests))
        sheet.freeze_panes(1, 0)
        left_out = sum(request.left_out for request in statement.requests)
        if left_out:
            put(sheet, number, 0, f"Not shown: {counted(left_out, 'record')}.")
        if statement.corrections:
            sheet = sheets.add("corrections")
            sheets.write_table(sheet, 0, CORRECTIONS, map(_with_kind, statement.corrections))
    return content.getvalue()


def _head(statement: Statement) -> Iterable[str]:
    yield f"Statement of usage and bills, {format_month(statement.month)}"
    yield f"{statement.name} (identifier {statement.partner})"
    yield f"As of {format_time(statement.source.as_of)}"
    if statement.provisional:
        yield "Provisional: amounts may still change."
        yield from statement.provisional
    yield f"Our reference: {statement.source.name}, {statement.connection}"
    yield EXPLANATION


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
