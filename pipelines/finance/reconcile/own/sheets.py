"""Reads the rows of a workbook: of its first sheet."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pipelines.core.text import printable
from pipelines.finance.reconcile.own.cells import text_of
from pipelines.finance.reconcile.own.columns import places_of
from pipelines.finance.reconcile.own.memory import NumberedTexts
from pipelines.finance.reconcile.own.not_read import NotRead


def sheet_rows(file: Path, columns: dict[str, str]) -> Iterator[NumberedTexts]:
    """Yield the rows of the first sheet, whose first row has the headings.

    Raises NotRead, also where a further sheet has the columns, and what openpyxl raises.
    """
    from openpyxl import load_workbook  # noqa: PLC0415 - most homes have no workbook

    book = load_workbook(file, read_only=True, data_only=True)
    try:
        if not book.worksheets:
            raise NotRead(f"{file.name} has no sheet with rows")
        first, *others = book.worksheets
        for sheet in others:
            _require_no_rows(file, sheet, columns)
        rows = _rows_of(first)
        places = places_of(file, _headings(next(rows, ())), columns)
        for number, cells in enumerate(rows, 2):
            yield number, tuple(_texts(cells, places))
    finally:
        book.close()


def _rows_of(sheet: Any) -> Iterator[Sequence[Any]]:
    """Return all rows of a sheet: what it says of its size may be too small."""
    sheet.reset_dimensions()
    rows: Iterator[Sequence[Any]] = sheet.iter_rows(values_only=True)
    return rows


def _headings(cells: Sequence[Any]) -> list[str]:
    return ["" if cell is None else str(cell) for cell in cells]


def _require_no_rows(file: Path, sheet: Any, columns: dict[str, str]) -> None:
    """Raise NotRead if a further sheet has the columns: its rows would be lost in silence."""
    if set(columns.values()) <= set(_headings(next(_rows_of(sheet), ()))):
        raise NotRead(
            f"{file.name} has the columns in sheet {printable(sheet.title, 40)}, too, and only "
            "the first sheet is read. Put each sheet into a file of its own"
        )


def _texts(cells: Sequence[Any], places: dict[str, int]) -> Iterator[str | None]:
    """Yield the texts of roles; a short row has none at its end."""
    for role, place in places.items():
        yield text_of(role, cells[place]) if place < len(cells) else None
