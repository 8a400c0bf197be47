"""Rows as a table on the screen: which columns give way where there is no room for all.

On a pipe nothing gives way: a value stays on one line, for grep and awk.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

LEAST = 12  # characters that a column keeps when even its words give way
GAPS = (3, 2, 1)  # characters between two columns, the more the better
ENDLESS = 10_000  # characters of a line on a pipe
Rows = Sequence[Mapping[str, object]]


def console(*, stderr: bool = False) -> Console:
    """Return where to print: the terminal as wide as it is, a pipe without an end of the line."""
    made = Console(stderr=stderr, highlight=False)
    if not made.is_terminal:
        made.width = ENDLESS
    return made


@dataclass(frozen=True)
class _Column:
    """A heading and what stands below it."""

    head: str
    cells: list[str]
    numeric: bool

    @property
    def width(self) -> int:
        """How wide it is where nothing gives way."""
        return max(map(len, [*self.head.split("\n"), *self.cells]))

    @property
    def word(self) -> int:
        """How wide it must be for its longest word; a number is never folded."""
        words = " ".join([self.head, *self.cells]).split()
        return self.width if self.numeric else max(map(len, words), default=0)


def drawn(rows: Rows, title: str, room: int) -> Table:
    """Return records as a table for `room` characters, every value as it is.

    The first record names the columns.
    """
    columns = [_column(name, [row[name] for row in rows]) for name in (rows[0] if rows else ())]
    if _around(columns, GAPS[0]) + sum(each.width for each in columns) > room:
        columns = [
            _Column(each.head.replace(" ", "\n"), each.cells, each.numeric) for each in columns
        ]
    gap, widths = _fitted(columns, room)
    table = Table(
        box=SIMPLE_HEAD,
        title=title or None,
        title_justify="left",
        title_style="bold",
        padding=(0, gap // 2, 0, gap // 3),
        show_edge=gap == GAPS[0],
        pad_edge=gap == GAPS[0],
    )
    for each, width in zip(columns, widths, strict=True):
        table.add_column(
            escape(each.head),
            justify="right" if each.numeric else "left",
            overflow="fold",
            width=width,
        )
    for row in zip(*(each.cells for each in columns), strict=True):
        table.add_row(*map(escape, row))
    return table


def _column(name: str, values: list[object]) -> _Column:
    numbers = [isinstance(each, int | float | Decimal) for each in values if each is not None]
    return _Column(name, [_text(each) for each in values], bool(numbers) and all(numbers))


def _text(value: object) -> str:
    """Return a value as it is, a decimal without an exponent."""
    if value is None:
        return ""
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _around(columns: Sequence[_Column], gap: int) -> int:
    """Count what is no column: the gaps, and where there is room the edges."""
    return gap * (len(columns) - 1) + (4 if gap == GAPS[0] else 0)


def _fitted(columns: Sequence[_Column], room: int) -> tuple[int, list[int]]:
    """Return the gap and each column's width: where nothing folds, else words, else anything."""
    widths, words = [each.width for each in columns], [each.word for each in columns]
    for least in (widths, words):
        for gap in GAPS:
            if sum(least) <= room - _around(columns, gap):
                return gap, _narrowed(widths, least, room - _around(columns, gap))
    least = [each.width if each.numeric else min(each.word, LEAST) for each in columns]
    return GAPS[-1], _narrowed(words, least, room - _around(columns, GAPS[-1]))


def _narrowed(widths: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Take what is too much from as few columns as will do, those with the most to give first."""
    taken = list(widths)
    for place in sorted(range(len(taken)), key=lambda at: least[at] - widths[at]):
        taken[place] = max(least[place], taken[place] - max(0, sum(taken) - room))
    return taken
