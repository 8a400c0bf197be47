"""XLSX: a workbook a table for people, with typed numbers and times, and formulas defused.

A cell holds 15 digits: a longer number is written as text, whole, and said. A time is cut to
milliseconds, and that is said too. A text is never a
formula in a workbook; one that looks like it also gets Excel's own mark for text (quotePrefix), so
that it stays one when somebody edits the cell, and its value is still what the service sent.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Any

import pyarrow as pa
import xlsxwriter
from xlsxwriter.format import Format
from xlsxwriter.workbook import Workbook
from xlsxwriter.worksheet import Worksheet

from pipelines.destinations.base import Destination, one_file_each
from pipelines.errors import ExportFailed
from pipelines.warehouse.published import Published, Table

ROWS, COLUMNS, CHARACTERS = 1_048_576, 16_384, 32_767  # of a sheet, and of a cell
DIGITS = 15  # that a cell's number keeps
FIRST_YEAR = 1901  # the calendar of Excel begins in 1900, which it takes for a leap year
MILLISECOND = 1000  # microseconds: the finest that a cell's time keeps
LONGEST = Context(prec=100)  # more digits than any DECIMAL
FORMULA = ("=", "+", "-", "@", "\t", "\r")
OPTIONS = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
LONG = "numbers of more than 15 digits are written as text, whole"
EARLY = "times before 1901 are written as text"
FINE = "times are cut to the millisecond, the finest that a cell holds"


@dataclass
class Book:
    """A workbook that is being written: its formats, and what a cell could not hold."""

    book: Workbook
    table: Table
    formats: dict[str, Format] = field(default_factory=dict)
    changed: Counter[str] = field(default_factory=Counter)

    @cached_property
    def patterns(self) -> list[tuple[str, str]]:
        """The name and the pattern of each column."""
        return [(each.name, _pattern(each.type)) for each in self.table.columns]

    def format(self, pattern: str) -> Format:
        """Return the format of that pattern, made once."""
        if pattern not in self.formats:
            made = self.book.add_format()
            made.set_num_format(pattern)
            self.formats[pattern] = made
        return self.formats[pattern]

    @property
    def defused(self) -> Format:
        """The format of a text that looks like a formula."""
        if "'" not in self.formats:
            self.formats["'"] = self.book.add_format()
            self.formats["'"].set_quote_prefix()
        return self.formats["'"]

    def cell(self, value: Any, pattern: str) -> tuple[Any, Format | None]:
        """Return what a cell holds and its format; a text is what no number or time can be."""
        match value:
            case bool() | None:
                return value, None
            case int() | Decimal():
                return self._number(value, pattern)
            case date():
                return self._time(value, pattern)
            case bytes():
                return value.hex(), None
            case float() if isfinite(value):
                return value, None
        return self._text(str(value))

    def _number(self, value: Decimal | int, pattern: str) -> tuple[Any, Format | None]:
        whole = Decimal(value)
        if len(whole.normalize(LONGEST).as_tuple().digits) <= DIGITS:
            return value, self.format(pattern)
        self.changed[LONG] += 1
        return self._text(f"{whole:f}")

    def _time(self, value: date, pattern: str) -> tuple[Any, Format | None]:
        if value.year < FIRST_YEAR:
            self.changed[EARLY] += 1
            return self._text(str(value))
        if not isinstance(value, datetime):
            return value, self.format(pattern)
        beyond = value.microsecond % MILLISECOND
        self.changed[FINE] += beyond > 0
        plain = value.astimezone(UTC).replace(microsecond=value.microsecond - beyond, tzinfo=None)
        return plain, self.format(pattern)

    def _text(self, text: str) -> tuple[str, Format | None]:
        return text, self.defused if text.startswith(FORMULA) else None


def _write(
    source: Published, table: Table, file: Path, sheet_rows: int = ROWS
) -> tuple[int, list[str]]:
    """Write a table; what is longer than a sheet goes on in the next one, each with its header."""
    if len(table.columns) > COLUMNS:
        raise ExportFailed(
            f"{table.title} has {len(table.columns):,} columns and a sheet {COLUMNS:,}; "
            "export it to parquet or csv"
        )
    rows, sheet = 0, None
    with xlsxwriter.Workbook(file, {**OPTIONS, "tmpdir": str(file.parent)}) as workbook:
        book = Book(workbook, table)
        for row in _rows(source, table):
            line = rows % (sheet_rows - 1) + 1
            if line == 1:
                sheet = _sheet(book)
            _line(book, sheet, line, row)
            rows += 1
        _ = sheet or _sheet(book)
        sheets = len(workbook.worksheets())
    return rows, _notes(book, sheets)


def _rows(source: Published, table: Table) -> Iterator[tuple[Any, ...]]:
    for batch in source.batches(table.query):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _sheet(book: Book) -> Worksheet:
    """Begin the next sheet with its header; the zone of a time stands there."""
    sheet = book.book.add_worksheet()
    for place, column in enumerate(book.table.columns):
        zone = " (UTC)" if pa.types.is_timestamp(column.type) else ""
        sheet.write_string(0, place, column.name + zone)
    sheet.freeze_panes(1, 0)
    return sheet


def _line(book: Book, sheet: Worksheet, line: int, row: tuple[Any, ...]) -> None:
    for place, (each, (name, pattern)) in enumerate(zip(row, book.patterns, strict=True)):
        value, style = book.cell(each, pattern)
        match value:
            case None:
                continue
            case bool():
                told = sheet.write_boolean(line, place, value)
            case str():
                told = sheet.write_string(line, place, value, style)
            case date():
                told = sheet.write_datetime(line, place, value, style)
            case _:
                told = sheet.write_number(line, place, value, style)
        if told:
            raise ExportFailed(
                f"{book.table.title}, row {line:,}, {name}: a text of {len(value):,} "
                f"characters, and a cell holds {CHARACTERS:,}; nothing was exported. Export this "
                "table to parquet or csv."
            )


def _pattern(kind: pa.DataType) -> str:
    """Return Excel's pattern for a column: as many places as the DECIMAL has."""
    if pa.types.is_decimal(kind):
        return "0." + "0" * kind.scale if 0 < kind.scale <= DIGITS else "General"
    if pa.types.is_timestamp(kind):
        return "yyyy-mm-dd hh:mm:ss.000"
    return "yyyy-mm-dd" if pa.types.is_date(kind) else "0"


def _notes(book: Book, sheets: int) -> list[str]:
    title = book.table.title
    notes = [f"{title}: {count:,} {what}" for what, count in book.changed.items() if count]
    if sheets > 1:
        notes.append(f"{title}: more rows than a sheet holds; it goes on over {sheets} sheets")
    return notes


XLSX = Destination(
    name="xlsx",
    description="A workbook a table: typed numbers and times, texts that are never formulas.",
    deliver=one_file_each("xlsx", _write),
)
