"""A list that the page shows by clicking, its columns and its rows."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Column:
    """A column that the page shows.

    `kind`: `text`, `month` (2026-09), `day` (2026-09-30), `count`, `amount`, `change` (an amount
    with its sign), `price` (of one unit), `partner`, `number` (of a break or a bill, which opens
    its records), `file` (of a statement), `group` (not shown: a filter). `empty` is
    shown where a row has no value. `link` is the list to which the value leads, with the values of
    `by` and those of `only` as filters. `opens`: the value opens rows of another list, as a number
    does. Amounts and counts have a sum.
    """

    name: str
    label: str
    kind: str = "text"
    link: str = ""
    by: tuple[str, ...] = ()
    only: str = ""
    empty: str = ""
    opens: bool = False


@dataclass(frozen=True)
class Listing:
    """A list of the page. `command` shows what is not embedded of it, `note` says what it is.

    `table` has all its rows, where the file of `details/` selects only some of them. `parent` is
    the list whose rows open the rows of this one; then it has no place of its own. `has_sums`:
    its amounts may be added. `share`: it takes at most this part of the room that is left, such as
    2 for a half. `filters` are columns by whose values the list can be filtered.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    command: str
    note: str = ""
    table: str = ""
    parent: str = ""
    has_sums: bool = True
    share: int = 1
    filters: tuple[str, ...] = ()


@dataclass(frozen=True)
class Detail:
    """The rows of a list, by column, in the order in which they are embedded.

    `total` counts those that exist, which may be more.
    """

    listing: Listing
    columns: dict[str, list[Any]]
    total: int

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return len(next(iter(self.columns.values()), ()))
