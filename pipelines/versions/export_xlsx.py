"""Writes a table as an Excel workbook: exact numbers, text that is never a formula."""

import re
from itertools import chain
from pathlib import Path
from typing import Final

from xlsxwriter import Workbook
from xlsxwriter.exceptions import FileCreateError
from xlsxwriter.worksheet import Worksheet

from pipelines.core.errors import StorageFailed
from pipelines.versions.export_table import ExportColumn, ExportTable

MOST_ROWS: Final = 1_048_576  # of a sheet, the headings counted
LONGEST_SHEET_NAME: Final = 31  # characters
DIGITS: Final = 15  # that Excel keeps and shows
NUMBERS: Final = ("DECIMAL", "INTEGER", "BIGINT")
TIMES: Final = {"DATE": "yyyy-mm-dd", "TIMESTAMP WITH TIME ZONE": "yyyy-mm-dd hh:mm:ss.000"}
# Whole numbers have no format of their own: they are often identifiers.
NUMBER_FORMATS: Final = {**TIMES, "DECIMAL": "#,##0.00##########"}
NO_SHEET_NAME: Final = re.compile(r"[][:*?/\\]|^'|'$")
# Excel shows ### for a time in a narrower column.
WIDTH: Final = 24
OTHER_FORMATS: Final = "Export it as parquet or csv."
IS_EXACT: Final = f"length(trim(translate(CAST({{0}} AS VARCHAR), '-.', ''), '0')) <= {DIGITS}"
# Before March 1900, programs number the days in two ways. Excel keeps nothing below a millisecond.
IS_TIME: Final = (
    "{0} >= DATE '1900-03-01' AND {0} < DATE '10000-01-01' "
    "AND date_trunc('milliseconds', {0}) = {0}"
)
EITHER: Final = "if({0}, union_value(kept := {1}), CAST({2} AS UNION(kept {3}, text VARCHAR)))"


def write_workbook(table: ExportTable, file: Path) -> list[str]:
    """Write a table; return the columns in which numbers are text because Excel would round them.

    Raises StorageFailed for a table or a text that a workbook cannot hold, OSError.
    """
    rows = table.count()
    if rows >= MOST_ROWS:
        raise StorageFailed(
            f"`{table.title}` has {rows:,} rows, but a sheet holds {MOST_ROWS - 1:,} below the "
            "headings. Nothing was exported.",
            OTHER_FORMATS,
        )
    try:
        with Workbook(str(file), {"constant_memory": True, "tmpdir": str(file.parent)}) as workbook:
            return _write_sheet(table, rows, workbook)
    except FileCreateError as error:
        raise error.args[0] from None  # the OSError that it was made of


def _write_sheet(table: ExportTable, rows: int, workbook: Workbook) -> list[str]:
    """Write headings and all rows; return the columns of numbers in which there is text."""
    workbook.use_zip64()
    sheet = workbook.add_worksheet(NO_SHEET_NAME.sub("_", table.table)[:LONGEST_SHEET_NAME])
    sheet.freeze_panes(1, 0)
    sheet.set_row(0, None, workbook.add_format({"bold": True}))
    sheet.autofilter(0, 0, rows, len(table.columns) - 1)
    for place, column in enumerate(table.columns):
        style = None
        if column.kind in NUMBER_FORMATS:
            style = workbook.add_format({"num_format": NUMBER_FORMATS[column.kind]})
        sheet.set_column(place, place, WIDTH, style)
        _write_text(table, sheet, (0, place), column.name)
    rounded: dict[str, None] = {}  # in the order in which they are seen
    for row, values in enumerate(chain.from_iterable(table.rows(cell_of)), 1):
        for place, value in enumerate(values):
            if not isinstance(value, str):
                sheet.write(row, place, value)
                continue
            # `write` would make formulas and links of some texts.
            _write_text(table, sheet, (row, place), value)
            if table.columns[place].kind in NUMBERS:
                rounded[table.columns[place].name] = None
    return list(rounded)


def _write_text(table: ExportTable, sheet: Worksheet, cell: tuple[int, int], text: str) -> None:
    """Write text as it is. Raises StorageFailed for one that a workbook would change."""
    # xlsxwriter would take it as its own.
    is_markup = text.startswith("<r>") and text.endswith("</r>")
    if is_markup or sheet.write_string(*cell, text):  # -2: it was cut
        row, place = cell
        markup = " and is <r> markup" if is_markup else ""
        raise StorageFailed(
            f"A workbook cannot hold a text in row {row:,} of column `{table.columns[place].name}` "
            f"of `{table.title}`: it has {len(text):,} characters{markup}. Nothing was exported.",
            OTHER_FORMATS,
        )


def cell_of(column: ExportColumn) -> str:
    """Return the expression for cells of a column: values that Excel keeps as they are, or text."""
    if column.kind in NUMBERS:
        kept = column.value
        is_kept = IS_EXACT
        kept_type = column.type
    elif column.kind in TIMES:
        kept = f"CAST({column.value} AS TIMESTAMP)"
        is_kept = IS_TIME
        kept_type = "TIMESTAMP"
    elif column.kind == "BOOLEAN":
        return column.value
    else:
        return column.text
    return EITHER.format(is_kept.format(column.value), kept, column.text, kept_type)
