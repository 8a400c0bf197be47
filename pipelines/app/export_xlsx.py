"""Writes a table as an Excel workbook: exact numbers, text that is never a formula."""

from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any, Final

from xlsxwriter import Workbook
from xlsxwriter.format import Format
from xlsxwriter.worksheet import Worksheet

from pipelines.app.export_table import ExportTable
from pipelines.core.errors import StorageFailed

MOST_ROWS: Final = 1_048_576  # of a sheet, the headings counted
DIGITS: Final = 15  # that Excel keeps and shows
INTEGERS: Final = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
NUMBERS: Final = {"DECIMAL", "DOUBLE", "FLOAT", *INTEGERS}
TIMES: Final = {"DATE": "yyyy-mm-dd", "TIMESTAMP WITH TIME ZONE": "yyyy-mm-dd hh:mm:ss.000"}
FIRST_DATE: Final = date(1900, 3, 1)  # before it, programs number the days in two ways
WIDTH: Final = 24  # characters of a column: Excel shows ### for a time in a narrower one
MILLISECOND: Final = 1_000  # microseconds; Excel keeps nothing finer
OTHER_FORMATS: Final = "Export it as parquet or csv."


def write_workbook(table: ExportTable, file: Path) -> list[str]:
    """Write a table; return the columns in which numbers are text because Excel would round them.

    Raises StorageFailed for a table or a text that a workbook cannot hold.
    """
    if (rows := table.count()) >= MOST_ROWS:
        raise StorageFailed(
            f"`{table.title}` has {rows:,} rows, but a sheet holds {MOST_ROWS - 1:,} below the "
            "headings. Nothing was exported.",
            OTHER_FORMATS,
        )
    options = {"constant_memory": True, "tmpdir": str(file.parent)}
    with Workbook(str(file), options) as workbook:
        workbook.use_zip64()
        formats = {kind: workbook.add_format({"num_format": TIMES[kind]}) for kind in TIMES}
        writer = _Writer(table, workbook.add_worksheet(), formats)
        writer.write()
    return list(writer.rounded)


@dataclass
class _Writer:
    """Writes the rows of one table into one sheet."""

    table: ExportTable
    sheet: Worksheet
    formats: dict[str, Format]
    rounded: dict[str, None] = field(default_factory=dict)  # columns in the order in which seen

    def write(self) -> None:
        """Write the headings and all rows."""
        self.sheet.freeze_panes(1, 0)
        self.sheet.set_column(0, len(self.table.columns) - 1, WIDTH)
        for at, column in enumerate(self.table.columns):
            self._write_text(0, at, column.name)
        rows = chain.from_iterable(self.table.rows(NUMBERS | {"BOOLEAN"}))
        for row, values in enumerate(rows, 1):
            for at, value in enumerate(values):
                if value is not None:
                    self._write(row, at, value)

    def _write(self, row: int, at: int, value: Any) -> None:
        kind = self.table.columns[at].kind
        time = to_excel_time(value) if kind in TIMES else None
        if isinstance(value, bool):
            self.sheet.write_boolean(row, at, value)
        elif kind in NUMBERS and is_exact(value):
            self.sheet.write_number(row, at, Decimal(str(value)))  # a float would be rounded again
        elif time is not None:
            self.sheet.write_datetime(row, at, time, self.formats[kind])
        else:
            if kind in NUMBERS:
                self.rounded[self.table.columns[at].name] = None
            self._write_text(row, at, f"{value:f}" if isinstance(value, Decimal) else str(value))

    def _write_text(self, row: int, at: int, text: str) -> None:
        """Write text as it is. Raises StorageFailed for one that a workbook would change."""
        is_markup = text.startswith("<r>") and text.endswith("</r>")  # xlsxwriter takes it as such
        if is_markup or self.sheet.write_string(row, at, text):
            raise StorageFailed(
                f"A workbook cannot hold a text in row {row:,} of column "
                f"`{self.table.columns[at].name}` of `{self.table.title}`: it has {len(text):,} "
                f"characters{' and is <r> markup' if is_markup else ''}. Nothing was exported.",
                OTHER_FORMATS,
            )


def is_exact(number: float | Decimal) -> bool:
    """Return whether Excel keeps and shows every digit of a number."""
    exact = Decimal(str(number))
    digits = "".join(map(str, exact.as_tuple().digits)).strip("0")
    return exact.is_finite() and len(digits) <= DIGITS


def to_excel_time(text: str) -> datetime | None:
    """Return a date or a time of DuckDB as Excel has it, without a zone; None if it cannot."""
    try:
        time = datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:  # of a year that Python does not have
        return None
    is_kept = time.date() >= FIRST_DATE and time.microsecond % MILLISECOND == 0
    return time if is_kept else None
