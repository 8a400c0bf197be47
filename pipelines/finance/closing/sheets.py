"""Sheets whose totals are formulas, and are exact all the same.

Here: rows of a table with their amounts in whole minor units, and sums of blocks of such rows. Not
here: which sheets there are (working_paper).

Excel adds floats: a sum of fractions may be off in the last digit that it shows. Whole numbers
below 2**53 are added exactly. So a formula adds minor units, and divides the sum once. Excel shows
15 digits, so what has more is text, and so is what is finer than the minor unit.

Totals of rows are below them: however many there are, headings stay in sight, and rows can be
filtered.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from typing import Any, Final, NamedTuple

import duckdb
from xlsxwriter import Workbook
from xlsxwriter.utility import xl_col_to_name

from pipelines.core import stop
from pipelines.finance.closing.cells import DIGITS, Sheet, Styles
from pipelines.finance.currencies import digits_of
from pipelines.finance.reports.amounts import EXACT
from pipelines.finance.reports.text import format_amount

MANY: Final = 10_000  # rows in memory
NO_CURRENCY: Final = "no currency"
MINOR_UNITS: Final = (
    "Minor units: whole cents, or the smallest unit of the currency. Totals add them."
)
PARTNER: Final = ("connection", "partner")
# Of each block of rows: sums, sums without signs, and the most digits behind the point.
BLOCKS: Final = """
SELECT {key}, count(*), {sums}
FROM ({query}) AS rows
GROUP BY {key}
ORDER BY {order}
"""
SUM: Final = """
[sum(rows.{0})::VARCHAR, sum(abs(rows.{0}))::VARCHAR,
    max(length(rtrim(split_part(rows.{0}::VARCHAR, '.', 2), '0')))::VARCHAR]
"""
ROWS: Final = "SELECT rows.* FROM ({query}) AS rows ORDER BY {order}"
Key = tuple[str | None, ...]
"""What all rows of a block have: the group of a total, and behind it connection and partner."""


class Sum(NamedTuple):
    """A sum of amounts: exact, without their signs, and the most digits behind the point."""

    exact: Decimal = Decimal(0)
    absolute: Decimal = Decimal(0)
    digits: int = 0
    has_amounts: bool = False

    def plus(self, other: "Sum", sign: int = 1) -> "Sum":
        """Return the sum with another one added, or subtracted."""
        return Sum(
            self.exact + sign * other.exact,
            self.absolute + other.absolute,
            max(self.digits, other.digits),
            self.has_amounts or other.has_amounts,
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

    There is a total for each `group`, which begins with the currency. Rows of the same group,
    connection and partner follow each other, in the order of `then`. By the values of the column
    `part`, figures can have parts of a total.
    """

    name: str
    title: str
    query: str
    amounts: tuple[str, ...]
    then: tuple[str, ...] = ()
    group: tuple[str, ...] = ("currency",)
    notes: Sequence[str] = ()
    part: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """Return what all rows of a block have."""
        return (*self.group, *PARTNER)

    def order(self, *then: str) -> str:
        """Return what rows are ordered by."""
        return ", ".join(f"rows.{name} NULLS LAST" for name in (*self.key, *then))


@dataclass
class Layout:
    """Where the blocks of a table are on its sheet, and its columns; of amounts, minor units.

    `parts` has sums of a group by the values of the column `part`.
    """

    name: str
    part: str = ""
    parts: dict[Key, dict[str, Sum]] = field(default_factory=dict)
    blocks: dict[Key, Block] = field(default_factory=dict)
    totals: dict[Key, Block] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)

    @property
    def last(self) -> int:
        """Return the last row; 0 without rows."""
        return max((block.last for block in self.totals.values()), default=0)

    def block(self, key: Key) -> Block | None:
        """Return the rows of a group, or of a partner in it."""
        return self.totals.get(key) or self.blocks.get(key)

    def sum_of(self, block: Block, term: "Term", key: Key) -> tuple[Sum, str]:
        """Return the sum of a block, or of a part of it, and a formula that adds minor units."""
        cells = self._cells(block, term.amount)
        if term.part is None:
            return block.sums[term.amount], f"SUM({cells})"
        # Unlike SUMIF, it compares texts as they are: `2026-09` is no date.
        chosen = f'({self._cells(block, self.part)}="{term.part}")'
        return self.parts[(*key, term.part)][term.amount], f"SUMPRODUCT({chosen}*{cells})"

    def _cells(self, block: Block, name: str) -> str:
        column = self.columns[name]
        return f"'{self.name}'!{column}{block.first + 1}:{column}{block.last + 1}"


class Term(NamedTuple):
    """A part of a figure: the sum of an amount of a table, added or subtracted.

    `group` is the part of the rows behind the currency, where the table has such groups. `part`:
    only rows with this value of the table's column `part`.
    """

    table: str
    amount: str
    sign: int = 1
    group: Key = ()
    part: str | None = None

    def key(self, key: Key) -> Key:
        """Return what the rows have of a figure: a currency, or a currency and a partner."""
        return (key[0], *self.group, *key[1:])


class Paper:
    """A workbook, and the layouts of the tables that it has so far."""

    def __init__(self, workbook: Workbook, db: duckdb.DuckDBPyConnection) -> None:
        self.styles = Styles(workbook)
        self._workbook = workbook
        self._db = db
        self._layouts = dict[str, Layout]()

    def add_sheet(self, name: str) -> Sheet:
        """Add an empty sheet behind the others."""
        return Sheet(self._workbook.add_worksheet(name), self.styles)

    def write_table(self, table: Table) -> None:
        """Write a sheet of rows, and totals below. Blocks can be referred to afterwards.

        The last columns have minor units. They are not printed.
        """
        sheet = self.add_sheet(table.name)
        names = self._db.sql(_rows(table)).columns
        headings = [*names, *(f"{amount}, minor units" for amount in table.amounts)]
        head = sheet.begin([table.title, *table.notes, MINOR_UNITS], headings)
        layout = self._lay_out(table, head + 1)
        for place, name in enumerate((*names, *table.amounts)):
            layout.columns[name] = xl_col_to_name(place)  # of an amount, the last one
        self._layouts[table.name] = layout
        sheet.filter(layout.last, len(headings))
        for number, values in enumerate(self._read(table), head + 1):
            row = dict(zip(names, values, strict=True))
            self._write_row(sheet, number, row, table.amounts)
        columns = {amount: names.index(amount) for amount in table.amounts}
        self._write_totals(sheet, layout, columns)
        sheet.finish(len(PARTNER) + 1, len(names))

    def _write_totals(self, sheet: Sheet, layout: Layout, columns: dict[str, int]) -> None:
        """Write the totals of each group, two rows below the rows; `columns` are of amounts."""
        for number, (group, block) in enumerate(layout.totals.items(), layout.last + 2):
            self.write_total_label(sheet, number, group)
            for amount, column in columns.items():
                if block.sums[amount].has_amounts:
                    term = Term(layout.name, amount)
                    self.write_figure(sheet, (number, column), [term], group)

    def write_total_label(self, sheet: Sheet, row: int, group: Key) -> None:
        """Begin a row of totals of a currency, or of a part of its rows."""
        label = ", ".join([group[0] or NO_CURRENCY, *map(str, group[1:])])
        sheet.put_label(row, f"Total {label}")

    def write_figure(
        self, sheet: Sheet, cell: tuple[int, int], terms: Sequence[Term], key: Key
    ) -> None:
        """Write a sum of blocks of a key as a formula, or as text where Excel would round it."""
        total = Sum()
        formula = ""
        with localcontext(EXACT):
            for term in terms:
                layout = self._layouts[term.table]
                block = layout.block(term.key(key))
                if block is None:
                    continue
                part, added = layout.sum_of(block, term, term.key(key))
                total = total.plus(part, term.sign)
                formula += f"{'+' if term.sign > 0 else '-'}{added}"
            problem = total.problem(key[0])
        currency = key[0]
        if problem:
            text = f"{format_amount(total.exact, currency)} ({problem}: no formula)"
            sheet.put(*cell, text)
            return
        digits = digits_of(currency)
        formula = f"=({formula.removeprefix('+') or 0})/{10**digits}"
        sheet.put_formula(cell, formula, total.exact, digits)

    def parts(self, term: Term, currency: str | None) -> dict[str, Term]:
        """Return the parts of a term by their values of the column `part`, the last one first."""
        parts = {}
        for *group, part in sorted(self._layouts[term.table].parts, key=str, reverse=True):
            if tuple(group) == term.key((currency,)):
                parts[part or ""] = term._replace(part=part)
        return parts

    def _write_row(
        self, sheet: Sheet, number: int, row: dict[str, Any], amounts: Sequence[str]
    ) -> None:
        """Write a row: its columns, then each amount in minor units."""
        digits = digits_of(row["currency"])
        for place, (name, value) in enumerate(row.items()):
            style = self.styles.money(digits) if name in amounts else None
            sheet.put(number, place, value, style)
        for place, name in enumerate(amounts, len(row)):
            if row[name] is not None:
                sheet.put(number, place, row[name].scaleb(digits, EXACT), self.styles.minor)

    def _lay_out(self, table: Table, first: int) -> Layout:
        """Return where the rows of a table will be, with their sums."""
        key = ", ".join(f"rows.{name}" for name in table.key)
        layout = Layout(table.name, table.part)
        with localcontext(EXACT):
            for row in self._sums(table, key, table.order()):
                rows, *texts = row[len(table.key) :]
                last = first + rows - 1
                sums_of = _sums_of(table, texts)
                layout.blocks[row[: len(table.key)]] = Block(first, last, sums_of)
                _extend(layout.totals, row[: len(table.group)], Block(first, last, sums_of))
                first = last + 1
            if table.part:
                group = ", ".join(f"rows.{name}" for name in table.group)
                key = f"{group}, coalesce(rows.{table.part}, '')"
                for row in self._sums(table, key, group):
                    *parts, _rows_of_part = row[: len(table.group) + 2]
                    layout.parts[tuple(parts)] = _sums_of(table, row[len(table.group) + 2 :])
        return layout

    def _sums(self, table: Table, key: str, order: str) -> list[tuple[Any, ...]]:
        """Return a row for each value of a key: the key, the number of rows, sums as texts."""
        sums = ", ".join(SUM.format(amount) for amount in table.amounts)
        query = BLOCKS.format(key=key, query=table.query, sums=sums, order=order)
        return self._db.execute(query).fetchall()

    def _read(self, table: Table) -> Iterator[tuple[Any, ...]]:
        result = self._db.execute(_rows(table))
        while rows := result.fetchmany(MANY):
            stop.raise_if_requested()
            yield from rows


def _rows(table: Table) -> str:
    return ROWS.format(query=table.query, order=table.order(*table.then))


def _sums_of(table: Table, texts: Sequence[Sequence[str | None]]) -> dict[str, Sum]:
    return {name: _sum_of(parts) for name, parts in zip(table.amounts, texts, strict=True)}


def _sum_of(parts: Sequence[str | None]) -> Sum:
    exact, absolute, digits = parts
    return Sum(Decimal(exact or 0), Decimal(absolute or 0), int(digits or 0), exact is not None)


def _extend(totals: dict[Key, Block], group: Key, more: Block) -> None:
    """Add rows to the block of a group, behind those that it has."""
    known = totals.get(group)
    if known is None:
        totals[group] = Block(more.first, more.last, dict(more.sums))
        return
    known.last = more.last
    for amount, part in more.sums.items():
        known.sums[amount] = known.sums[amount].plus(part)
