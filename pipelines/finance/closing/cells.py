"""Sheets of a workbook: what a cell holds, how wide columns are, and how a sheet is printed.

A cell has a value as it is: text is never a formula, and a number that Excel would round is text.
Not here: totals (sheets), and which sheets there are.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from math import ceil
from typing import Any, Final
from unicodedata import east_asian_width

from xlsxwriter import Workbook
from xlsxwriter.worksheet import Worksheet

from pipelines.core.errors import StorageFailed

DIGITS: Final = 15  # that Excel shows
LONGEST_TEXT: Final = 32_000  # characters; a cell holds 32,767
LEAST_WIDTH: Final = 8  # characters of a column
MOST_WIDTH: Final = 80  # of a column; longer texts have several lines
ROOM: Final = 240  # characters that a line of A4 holds, landscape, in letters of 7 points
# Capitals are wider than digits, of which the width of a column is a number. A heading has a button
# of the filter beside it.
SPACE: Final = 1.15
MARGIN: Final = 2
BUTTON: Final = 3
A4: Final = 9
DOUBLE: Final = ("F", "W")  # characters of double width
MARGINS: Final = {"left": 0.4, "right": 0.4, "top": 0.5, "bottom": 0.6}  # inches
FOOTER: Final = "&L&F&C&A&RPage &P of &N"


@dataclass
class Styles:
    """The formats of a workbook."""

    workbook: Workbook
    _money: dict[int, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.bold = self.workbook.add_format({"bold": True})
        self.heading = self.workbook.add_format({"bold": True, "bottom": 1})
        self.quiet = self.workbook.add_format({"font_color": "#666666", "italic": True})
        self.minor = self.workbook.add_format({"font_color": "#666666", "num_format": "#,##0"})
        self.wrapped = self.workbook.add_format({"text_wrap": True})

    def money(self, digits: int) -> Any:
        """Return the format of amounts with as many digits behind the point."""
        if digits not in self._money:
            pattern = "#,##0" + ("." + "0" * digits if digits else "")
            self._money[digits] = self.workbook.add_format({"num_format": pattern})
        return self._money[digits]


class Sheet:
    """A sheet whose columns get the width of what is put into them."""

    def __init__(self, sheet: Worksheet, styles: Styles) -> None:
        self._sheet = sheet
        self.styles = styles
        self._widths = defaultdict[int, float](lambda: LEAST_WIDTH)
        self._head = 0
        self._last = 0

    def begin(self, lines: Sequence[str], headings: Iterable[str]) -> int:
        """Write a title with notes, and headings that stay in sight; return the row of these.

        Lines and headings may be none.
        """
        for row, line in enumerate(lines):
            style = self.styles.quiet if row else self.styles.bold
            self._sheet.write_string(row, 0, _shortened(line), style)
        self._head = len(lines)
        self.put_headings(self._head, headings)
        self._sheet.freeze_panes(self._head + 1, 0)
        return self._head

    def put_headings(self, row: int, headings: Iterable[str]) -> None:
        """Write headings of columns."""
        for place, heading in enumerate(headings):
            text = heading.replace("_", " ").strip()
            self.put(row, place, text, self.styles.heading)
            self._widen(place, len(text) + BUTTON)

    def put(self, row: int, place: int, value: Any, style: Any = None) -> None:
        """Write a value as it is: a number only if Excel keeps all its digits, else text.

        Raises StorageFailed where the sheet has no room.
        """
        if value is None:
            return
        if isinstance(value, Decimal | int) and not isinstance(value, bool):
            refused = self._put_number((row, place), Decimal(value), style)
        else:
            refused = self._put_text((row, place), _shortened(str(value)), style)
        if refused:
            raise StorageFailed(
                f"The sheet {self._sheet.get_name()} of the workbook has no room for row "
                f"{row + 1:,}. It was not written. Analysts still see the published version.",
                "Report this defect of partner-sync.",
            )
        self._last = max(self._last, row)

    def put_label(self, row: int, label: str) -> None:
        """Begin a row of totals; the label goes on over empty cells."""
        self._sheet.write_string(row, 0, label, self.styles.bold)
        self._last = max(self._last, row)

    def put_formula(self, cell: tuple[int, int], formula: str, value: Decimal, digits: int) -> None:
        """Write a formula with the value that it has, as an amount."""
        self._sheet.write_formula(*cell, formula, self.styles.money(digits), float(value))
        self._widen(cell[1], len(f"{value:,.{digits}f}"))
        self._last = max(self._last, cell[0])

    def filter(self, last: int, columns: int) -> None:
        """Let readers filter the rows below the headings, until the last one."""
        self._sheet.autofilter(self._head, 0, max(self._head, last), columns - 1)

    def finish(self, keys: int, columns: int) -> None:
        """Set widths, and how the first columns are printed: A4, headings on each page.

        `keys`: how many columns are repeated where the others need several pages beside each other.
        """
        for place, width in self._widths.items():
            self._sheet.set_column(place, place, width)
        self._sheet.set_landscape()
        self._sheet.set_paper(A4)
        self._sheet.set_margins(**MARGINS)
        self._sheet.set_footer(FOOTER)
        self._sheet.repeat_rows(self._head)
        self._sheet.print_area(0, 0, self._last, columns - 1)
        pages = ceil(sum(self._widths[place] for place in range(columns)) / ROOM)
        self._sheet.fit_to_pages(pages, 0)
        if pages > 1:
            self._sheet.repeat_columns(0, keys - 1)

    def _put_number(self, cell: tuple[int, int], number: Decimal, style: Any) -> Any:
        """Write a number; return what xlsxwriter returns, which is not 0 where it refuses it."""
        digits = "".join(map(str, number.as_tuple().digits)).strip("0")
        if len(digits) > DIGITS:
            return self._put_text(cell, f"{number:f}", style)
        self._widen(cell[1], len(f"{number:,f}"))
        return self._sheet.write_number(*cell, float(number), style)

    def _put_text(self, cell: tuple[int, int], text: str, style: Any) -> Any:
        width = len(text) if text.isascii() else _width_of(text)
        self._widen(cell[1], width * SPACE)
        if width * SPACE > MOST_WIDTH and style is None:
            style = self.styles.wrapped
        return self._sheet.write_string(*cell, text, style)

    def _widen(self, place: int, characters: float) -> None:
        width = min(characters + MARGIN, MOST_WIDTH)
        self._widths[place] = max(self._widths[place], width)


def _width_of(text: str) -> int:
    return sum(2 if east_asian_width(character) in DOUBLE else 1 for character in text)


def _shortened(text: str) -> str:
    """Return a text that a cell can hold, and that xlsxwriter does not take for markup."""
    if len(text) > LONGEST_TEXT:
        return f"{text[:LONGEST_TEXT]}… ({len(text):,} characters: see the table in the copy)"
    return f"{text} " if text.startswith("<r>") else text
