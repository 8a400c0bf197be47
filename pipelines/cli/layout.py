"""A frame as a table on the screen: which columns give way where there is no room for all.

On a pipe nothing gives way: a value stays on one line, for grep and awk.
"""

import pandas as pd
from pandas.api.types import is_numeric_dtype
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

LEAST = 12  # characters that a column keeps when it gives way
BETWEEN = 3  # characters between two columns
ENDLESS = 10_000  # characters of a line on a pipe


def console(*, stderr: bool = False) -> Console:
    """Return where to print: the terminal as wide as it is, a pipe without an end of the line."""
    made = Console(stderr=stderr, highlight=False)
    if not made.is_terminal:
        made.width = ENDLESS
    return made


def drawn(frame: pd.DataFrame, title: str, room: int) -> Table:
    """Return a frame as a table for `room` characters, every value as it is."""
    texts = {name: ["" if pd.isna(each) else str(each) for each in frame[name]] for name in frame}
    widths = {name: max(map(len, [str(name), *texts[name]])) for name in texts}
    tight = sum(widths.values()) + BETWEEN * len(widths) > room
    heads = {name: str(name).replace(" ", "\n") if tight else str(name) for name in texts}
    if tight:
        widths = {name: max(map(len, [*heads[name].split("\n"), *texts[name]])) for name in texts}
    folding = _folding(list(widths.values()), room)
    table = Table(box=SIMPLE_HEAD, title=title or None, title_justify="left", title_style="bold")
    for place, (name, head) in enumerate(heads.items()):
        numeric = is_numeric_dtype(frame[name].dtype)
        table.add_column(
            escape(head),
            justify="right" if numeric else "left",
            overflow="fold",
            min_width=None if place in folding else widths[name],
            no_wrap=place not in folding,
        )
    for row in zip(*texts.values(), strict=True):
        table.add_row(*map(escape, row))
    return table


def _folding(widths: list[int], room: int) -> set[int]:
    """Return the places of the columns that give way, the widest first: dates before numbers."""
    folding: set[int] = set()
    needed = sum(widths) + BETWEEN * len(widths)
    for place in sorted(range(len(widths)), key=lambda each: -widths[each]):
        if needed <= room:
            break
        needed -= max(0, widths[place] - LEAST)
        folding.add(place)
    return folding
