"""Working papers as tests read them: totals by sheet, currency and heading; formulas evaluated."""

import re
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
from openpyxl.utils.cell import range_boundaries

Totals = dict[tuple[str, str | None, str], Any]
"""Sheet, what a total is of (`EUR`, `EUR, accrual`), and heading -> what is in the cell."""
# Heading of a sheet -> where the manifest has the same sum: table and column.
SIGNED = {
    ("summary", "used"): ("summary", "used_amount"),
    ("summary", "billed"): ("summary", "billed_amount"),
    ("summary", "credited"): ("summary", "credited_amount"),
    ("summary", "difference"): ("summary", "difference"),
    ("summary", "not counted"): ("summary", "not_counted_amount"),
    ("used", "used"): ("used", "amount"),
    ("billed", "billed"): ("rollforward", "billed"),
    ("billed", "credited"): ("rollforward", "credited"),
    ("billed", "not counted"): ("summary", "not_counted_amount"),
    ("matching", "used"): ("matches", "used_amount"),
    ("matching", "billed"): ("matches", "billed_amount"),
    ("matching", "credited"): ("matches", "credited_amount"),
    ("matching", "difference"): ("matches", "difference"),
    ("breaks", "difference"): ("breaks", "difference"),
    ("breaks", "open difference"): ("breaks", "open_difference"),
    ("corrections", "unbilled"): ("rollforward", "corrections"),
    ("opening", "opening balance"): ("opening", "opening"),
    ("opening", "open from earlier months"): ("opening", "unposted"),
    ("open items", "amount"): ("open_items", "amount"),
    ("accrual", "closing balance"): ("rollforward", "closing"),
    ("roll-forward", "opening balance"): ("rollforward", "opening"),
    ("roll-forward", "open from earlier months"): ("rollforward", "unposted"),
    ("roll-forward", "closing balance"): ("rollforward", "closing"),
    **{
        ("roll-forward", name): ("rollforward", name)
        for name in ("corrections", "used", "billed", "credited")
    },
}
CELLS = r"'([^']+)'!([A-Z0-9:]+)"
SUM = re.compile(rf"([+-]?)SUM\({CELLS}\)")
FORMULA = re.compile(r"=\((0|(?:[+-]?SUM\('[^']+'![A-Z0-9:]+\))+)\)/(10*)")
# The part of a sum whose rows have a text in another column.
PART = re.compile(rf'=\(SUMPRODUCT\(\({CELLS}="([^"]*)"\)\*{CELLS}\)\)/(10*)')


def signed_totals(manifest: dict[str, Any]) -> Totals:
    """Return the totals that a working paper must have, from the sums of its manifest."""
    totals = {}
    for (sheet, heading), (table, column) in SIGNED.items():
        for row in manifest["sums"][table]:
            totals[sheet, row["currency"], heading] = Decimal(row[column] or 0)
    return totals


def read_totals(file: Path, *, formulas: bool = False) -> Totals:
    """Return the totals of a working paper: cached values as numbers, or formulas."""
    workbook = openpyxl.load_workbook(file, data_only=not formulas)
    totals = {}
    for sheet in workbook:
        rows = [*sheet.iter_rows(values_only=True)]
        headings: list[Any] = next((list(row) for row in rows if row[0] == "currency"), [])
        for row in rows:
            label = str(row[0] or "")
            if not headings or not label.startswith("Total "):
                continue
            of = label.removeprefix("Total ")
            for heading, value in zip(headings, row, strict=False):
                if value is not None and heading != "currency":
                    key = sheet.title, None if of == "no currency" else of, heading
                    totals[key] = _exact(value)
    return totals


def exact(totals: Totals) -> Totals:
    """Return totals by currency, as numbers; some are text, as Excel would round them."""
    numbers = defaultdict[tuple[str, str | None, str], Any](int)
    for (sheet, of, heading), value in totals.items():
        if isinstance(value, str):
            text = value.partition(" (")[0]
            value = Decimal(text.replace(",", "").replace("\u2212", "-"))  # noqa: PLW2901
        numbers[sheet, of and of.partition(", ")[0], heading] += value
    return dict(numbers)


def _exact(value: Any) -> Any:
    return Decimal(repr(value)) if isinstance(value, int | float) else value


def evaluate(file: Path) -> Totals:
    """Return the totals of a working paper, its formulas computed here and not by an office."""
    workbook = openpyxl.load_workbook(file)
    totals = read_totals(file, formulas=True)
    return {key: _value_of(workbook, formula) for key, formula in totals.items()}


def figures_of(file: Path, sheet: str) -> list[dict[str, Any]]:
    """Return the rows of partners of a sheet of figures by heading, their formulas computed."""
    workbook = openpyxl.load_workbook(file)
    rows = [*workbook[sheet].iter_rows(values_only=True)]
    head = next(number for number, row in enumerate(rows) if row[0] == "currency")
    figures = []
    for row in rows[head + 1 :]:
        if not str(row[0]).startswith("Total "):
            values = [_value_of(workbook, value) for value in row]
            figures.append(dict(zip(rows[head], values, strict=True)))
    return figures


def _value_of(workbook: Any, cell: Any) -> Any:
    """Return what a cell has; of a formula, what it computes."""
    if not str(cell).startswith("="):
        return cell
    if part := PART.fullmatch(cell):
        name, of, text, amounts_name, amounts, unit = part.groups()
        total = 0
        pairs = zip(
            _cells(workbook, name, of), _cells(workbook, amounts_name, amounts), strict=True
        )
        for value, amount in pairs:
            total += (amount or 0) if (value or "") == text else 0
        return Decimal(total) / int(unit)
    found = FORMULA.fullmatch(cell)
    assert found, cell
    total = 0
    for sign, name, cells in SUM.findall(cell):
        parts = [value for value in _cells(workbook, name, cells) if value is not None]
        assert all(isinstance(value, int) for value in parts), cell
        total += -sum(parts) if sign == "-" else sum(parts)
    return Decimal(total) / int(found[2])


def _cells(workbook: Any, name: str, cells: str) -> list[Any]:
    left, top, right, bottom = range_boundaries(cells)
    rows = workbook[name].iter_rows(top, bottom, left, right, values_only=True)
    return [value for row in rows for value in row]
