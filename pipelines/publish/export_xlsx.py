"""Writes a table as an Excel workbook: exact numbers, text that is never a formula."""

import re
from itertools import chain
from pathlib import Path
from typing import Final

from xlsxwriter import Workbook
from xlsxwriter.exceptions import FileCreateError
from xlsxwriter.worksheet import Worksheet

from pipelines.core.errors import StorageFailed
from pipelines.publish.export_table import Column, ExportTable

MOST_ROWS: Final = 1_048_576  # of a sheet, the headings counted
LONGEST_SHEET_NAME: Final = 31  # characters
DIGITS: Final = 15  # that Excel keeps and shows
NUMBERS: Final = ("DECIMAL", "INTEGER", "BIGINT")
TIMES: Final = {"DATE": "yyyy-mm-dd", "TIMESTAMP WITH TIME ZONE": "yyyy-mm-dd hh:mm:ss.000"}
AMOUNTS: Final = {"DECIMAL": "#,##0.00##########"}  # whole numbers are often identifiers
NO_SHEET_NAME: Final = re.compile(r"[][:*?/\\]|^'|'$")
WIDTH: Final = 24  # characters of a column: Excel shows ### for a time in a narrower one
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
    if (rows := table.count()) >= MOST_ROWS:
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
    for at, column in enumerate(table.columns):
        shown = (TIMES | AMOUNTS).get(column.kind)
        style = workbook.add_format({"num_format": shown}) if shown else None
        sheet.set_column(at, at, WIDTH, style)
        _write_text(table, sheet, (0, at), column.name)
    rounded: dict[str, None] = {}  # in the order in which they are seen
    for row, values in enumerate(chain.from_iterable(table.rows(cell_of)), 1):
        for at, value in enumerate(values):
            if not isinstance(value, str):
                sheet.write(row, at, value)
                continue
            _write_text(table, sheet, (row, at), value)
            if table.columns[at].kind in NUMBERS:
                rounded[table.columns[at].name] = None
    return list(rounded)


def _write_text(table: ExportTable, sheet: Worksheet, place: tuple[int, int], text: str) -> None:
    """Write text as it is. Raises StorageFailed for one that a workbook would change."""
    is_markup = text.startswith("<r>") and text.endswith("</r>")  # xlsxwriter takes it as such
    if is_markup or sheet.write_string(*place, text):
        row, at = place
        raise StorageFailed(
            f"A workbook cannot hold a text in row {row:,} of column `{table.columns[at].name}` of "
            f"`{table.title}`: it has {len(text):,} characters"
            f"{' and is <r> markup' if is_markup else ''}. Nothing was exported.",
            OTHER_FORMATS,
        )


def cell_of(column: Column) -> str:
    """Return the expression for cells of a column: values that Excel keeps as they are, or text."""
    if column.kind in NUMBERS:
        kept, is_kept, of_type = column.value, IS_EXACT, column.type
    elif column.kind in TIMES:
        kept, is_kept, of_type = f"CAST({column.value} AS TIMESTAMP)", IS_TIME, "TIMESTAMP"
    else:
        return column.value if column.kind == "BOOLEAN" else column.text
    return EITHER.format(is_kept.format(column.value), kept, column.text, of_type)
