"""Sheets whose totals are formulas, and are exact all the same.

Here: rows of a table with their amounts in whole minor units, and sums of blocks of such rows. Not
here: which sheets there are (working_paper).

Excel adds floats: a sum of fractions may be off in the last digit that it shows. Whole numbers
below 2**53 are added exactly. So a formula adds minor units, and divides the sum once. Excel shows
15 digits, so what has more is text, and so is what is finer than the minor unit.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from typing import Any, Final, NamedTuple

import duckdb
from xlsxwriter import Workbook
from xlsxwriter.utility import xl_col_to_name
from xlsxwriter.worksheet import Worksheet

from pipelines.core import stop
from pipelines.core.errors import StorageFailed
from pipelines.finance.currencies import digits_of
from pipelines.finance.reports.amounts import EXACT
from pipelines.finance.reports.text import format_amount

DIGITS: Final = 15  # that Excel shows
LONGEST_TEXT: Final = 32_000  # characters; a cell holds 32,767
MANY: Final = 10_000  # rows in memory
KEY: Final = ("currency", "connection", "partner")
NO_CURRENCY: Final = "no currency"
WIDTH: Final = 18
# Of each block of rows: sums, sums without signs, and the most digits behind the point.
BLOCKS: Final = """
SELECT rows.currency, rows.connection, rows.partner, count(*), {sums}
FROM ({query}) AS rows
GROUP BY rows.currency, rows.connection, rows.partner
ORDER BY {order}
"""
SUM: Final = """
[sum(rows.{0})::VARCHAR, sum(abs(rows.{0}))::VARCHAR,
    max(length(rtrim(split_part(rows.{0}::VARCHAR, '.', 2), '0')))::VARCHAR]
"""
ROWS: Final = "SELECT rows.* FROM ({query}) AS rows ORDER BY {order}"
ORDER: Final = "rows.currency NULLS LAST, rows.connection NULLS LAST, rows.partner NULLS LAST"
Key = tuple[str | None, ...]
"""Currency, connection and partner of a block of rows, or the currency alone."""


class Sum(NamedTuple):
    """A sum of amounts: exact, without their signs, and the most digits behind the point."""

    exact: Decimal = Decimal(0)
    absolute: Decimal = Decimal(0)
    digits: int = 0

    def plus(self, other: "Sum", sign: int = 1) -> "Sum":
        """Return the sum with another one added, or subtracted."""
        return Sum(
            self.exact + sign * other.exact,
            self.absolute + other.absolute,
            max(self.digits, other.digits),
        )

    def problem(self, currency: str | None) -> str:
        """Return why no formula can have this sum; empty if one can."""
        minor = digits_of(currency)
        if self.digits > minor:
            return "finer than the minor unit"
        if self.absolute.scaleb(minor) >= 10**DIGITS:
            return f"more than {DIGITS} digits"
        return ""


@dataclass
class Block:
    """Rows of a sheet that follow each other, counted from 0, and the sums of their amounts."""

    first: int
    last: int
    sums: dict[str, Sum]


@dataclass(frozen=True)
class Table:
    """Rows for a sheet: a query with `currency`, `connection`, `partner`, other columns, amounts.

    Rows of the same currency, connection and partner follow each other, in the order of `then`.
    """

    name: str
    title: str
    query: str
    amounts: tuple[str, ...]
    then: tuple[str, ...] = ()

    @property
    def order(self) -> str:
        """Return what rows are ordered by."""
        return ", ".join([ORDER, *(f"rows.{name} NULLS LAST" for name in self.then)])


@dataclass
class Layout:
    """Where the blocks of a table are on its sheet, and which columns have minor units."""

    name: str
    head: int = 0  # row of the headings
    blocks: dict[Key, Block] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)

    def currencies(self) -> list[str | None]:
        """Return the currencies of the rows, in their order."""
        return [key[0] for key in self.blocks if len(key) == 1]

    def reference(self, key: Key, amount: str) -> str:
        """Return the cells that have the minor units of a block."""
        block = self.blocks[key]
        column = self.columns[amount]
        return f"'{self.name}'!{column}{block.first + 1}:{column}{block.last + 1}"


class Term(NamedTuple):
    """A part of a figure: the sum of an amount of a table, added or subtracted."""

    table: str
    amount: str
    sign: int = 1


class Paper:
    """A workbook, and the layouts of the tables that it has so far."""

    def __init__(self, workbook: Workbook, db: duckdb.DuckDBPyConnection) -> None:
        self._workbook = workbook
        self._db = db
        self._layouts = dict[str, Layout]()
        self._bold = workbook.add_format({"bold": True})
        self._quiet = workbook.add_format({"font_color": "#666666", "italic": True})
        self._minor = workbook.add_format({"num_format": "#,##0"})
        self._money = dict[int, Any]()

    def add_sheet(self, name: str) -> Worksheet:
        """Add an empty sheet behind the others."""
        sheet = self._workbook.add_worksheet(name)
        sheet.set_column(0, 60, WIDTH)
        return sheet

    def write_table(self, sheet: Worksheet, table: Table) -> None:
        """Write title, totals by currency, and rows. Their blocks can be referred to afterwards."""
        layout = self._lay_out(table)
        names = self._db.sql(self._rows(table)).columns
        for place, amount in enumerate(table.amounts):
            layout.columns[amount] = xl_col_to_name(len(names) + place)
        self._layouts[table.name] = layout
        put(sheet, 0, 0, table.title, self._bold)
        for row, currency in enumerate(layout.currencies(), 1):
            self.write_total_label(sheet, row, currency)
            for amount in table.amounts:
                self.write_figure(
                    sheet, (row, names.index(amount)), [Term(table.name, amount)], (currency,)
                )
        headings = [*names, *(f"{amount}, minor units" for amount in table.amounts)]
        self.write_headings(sheet, layout.head, headings)
        sheet.autofilter(layout.head, 0, max(layout.head, self._last(layout)), len(headings) - 1)
        for number, values in enumerate(self._read(table), layout.head + 1):
            self._write_row(sheet, number, dict(zip(names, values, strict=True)), table.amounts)

    def _rows(self, table: Table) -> str:
        return ROWS.format(query=table.query, order=table.order)

    def write_title(self, sheet: Worksheet, title: str, note: str) -> None:
        """Write what a sheet shows, and a line that explains it."""
        put(sheet, 0, 0, title, self._bold)
        put(sheet, 1, 0, note, self._quiet)

    def write_total_label(self, sheet: Worksheet, row: int, currency: str | None) -> None:
        """Begin a row of totals of a currency."""
        put(sheet, row, 0, f"Total {currency or NO_CURRENCY}", self._bold)

    def write_headings(self, sheet: Worksheet, row: int, headings: Iterable[str]) -> None:
        """Write headings, below which the rows can be scrolled."""
        for place, heading in enumerate(headings):
            put(sheet, row, place, heading.replace("_", " "), self._bold)
        sheet.freeze_panes(row + 1, 0)

    def write_figure(
        self, sheet: Worksheet, cell: tuple[int, int], terms: Sequence[Term], key: Key
    ) -> None:
        """Write a sum of blocks of a key as a formula, or as text where Excel would round it."""
        total = Sum()
        formula = ""
        with localcontext(EXACT):
            for table, amount, sign in terms:
                block = self._layouts[table].blocks.get(key)
                if block is None:
                    continue
                total = total.plus(block.sums[amount], sign)
                reference = self._layouts[table].reference(key, amount)
                formula += f"{'+' if sign > 0 else '-'}SUM({reference})"
            problem = total.problem(key[0])
        currency = key[0]
        if problem:
            text = f"{format_amount(total.exact, currency)} ({problem}: no formula)"
            put(sheet, *cell, text)
            return
        digits = digits_of(currency)
        formula = f"=({formula.removeprefix('+') or 0})/{10**digits}"
        sheet.write_formula(*cell, formula, self._money_format(digits), float(total.exact))

    def _write_row(
        self, sheet: Worksheet, number: int, row: dict[str, Any], amounts: Sequence[str]
    ) -> None:
        """Write a row: its columns, then each amount in minor units."""
        digits = digits_of(row["currency"])
        for place, (name, value) in enumerate(row.items()):
            style = self._money_format(digits) if name in amounts else None
            put(sheet, number, place, value, style)
        for place, name in enumerate(amounts, len(row)):
            if row[name] is not None:
                put(sheet, number, place, row[name].scaleb(digits, EXACT), self._minor)

    def _money_format(self, digits: int) -> Any:
        if digits not in self._money:
            pattern = "#,##0" + ("." + "0" * digits if digits else "")
            self._money[digits] = self._workbook.add_format({"num_format": pattern})
        return self._money[digits]

    def _lay_out(self, table: Table) -> Layout:
        """Return where the rows of a table will be, with their sums."""
        sums = ", ".join(SUM.format(amount) for amount in table.amounts)
        query = BLOCKS.format(query=table.query, sums=sums, order=ORDER)
        found = self._db.execute(query).fetchall()
        layout = Layout(table.name)
        currencies = dict.fromkeys(row[0] for row in found)
        layout.head = len(currencies) + 2
        first = layout.head + 1
        with localcontext(EXACT):
            for row in found:
                key = tuple(row[: len(KEY)])
                rows, *texts = row[len(KEY) :]
                last = first + rows - 1
                sums_of = {}
                for amount, parts in zip(table.amounts, texts, strict=True):
                    sums_of[amount] = _sum_of(parts)
                layout.blocks[key] = Block(first, last, sums_of)
                _extend(layout.blocks, (key[0],), Block(first, last, sums_of))
                first = last + 1
        return layout

    def _read(self, table: Table) -> Iterator[tuple[Any, ...]]:
        result = self._db.execute(self._rows(table))
        while rows := result.fetchmany(MANY):
            stop.raise_if_requested()
            yield from rows

    @staticmethod
    def _last(layout: Layout) -> int:
        return max((block.last for block in layout.blocks.values()), default=0)


def _sum_of(parts: Sequence[str | None]) -> Sum:
    exact, absolute, digits = parts
    return Sum(Decimal(exact or 0), Decimal(absolute or 0), int(digits or 0))


def _extend(blocks: dict[Key, Block], key: Key, more: Block) -> None:
    """Add rows to the block of a currency, behind those that it has."""
    known = blocks.get(key)
    if known is None:
        blocks[key] = Block(more.first, more.last, dict(more.sums))
        return
    known.last = more.last
    for amount, part in more.sums.items():
        known.sums[amount] = known.sums[amount].plus(part)


def put(sheet: Worksheet, row: int, place: int, value: Any, style: Any = None) -> None:
    """Write a value as it is: a number only if Excel keeps all its digits, else text.

    Raises StorageFailed where the sheet has no room.
    """
    if value is None:
        return
    if isinstance(value, Decimal | int) and not isinstance(value, bool):
        refused = _put_number(sheet, (row, place), Decimal(value), style)
    else:
        refused = sheet.write_string(row, place, _shortened(str(value)), style)
    if refused:
        raise StorageFailed(
            f"The sheet {sheet.get_name()} of the working paper has no room for row {row + 1:,}. "
            "The month is not closed. Analysts still see the published version.",
            "Report this defect of partner-sync.",
        )


def _put_number(sheet: Worksheet, cell: tuple[int, int], number: Decimal, style: Any) -> Any:
    """Write a number; return what xlsxwriter returns, which is not 0 where it refuses it."""
    digits = "".join(map(str, number.as_tuple().digits)).strip("0")
    if len(digits) > DIGITS:
        return sheet.write_string(*cell, f"{number:f}", style)
    return sheet.write_number(*cell, float(number), style)


def _shortened(text: str) -> str:
    """Return a text that a cell can hold, and that xlsxwriter does not take for markup."""
    if len(text) > LONGEST_TEXT:
        return f"{text[:LONGEST_TEXT]}… ({len(text):,} characters: see the table in the copy)"
    return f"{text} " if text.startswith("<r>") else text
