"""Which breaks partners were told of: those of the statements that were written and sent.

Not here: what a statement says (statements), and notes that it was sent (statement_sent).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from pipelines.finance.reports.text import format_day, format_month
from pipelines.warehouse.duckdb_file import Row

TOLD: Final = "yes"
NOT_SENT: Final = "statement not sent"


@dataclass(frozen=True)
class Told:
    """The last statement that tells of a break and was sent, or else the last that tells of it."""

    number: str
    month: str
    page: str
    sent: str | None

    @property
    def state(self) -> str:
        """Whether somebody noted that it was sent."""
        return TOLD if self.sent else NOT_SENT

    def text(self) -> str:
        """Return which statement it is, and when it was sent."""
        name = f"{self.number} of {format_month(date.fromisoformat(f'{self.month}-01'))}"
        if not self.sent:
            return f"{name}, not noted as sent"
        return f"{name}, sent {format_day(date.fromisoformat(self.sent))}"


def told_by(statements: Iterable[Row]) -> dict[str, Told]:
    """Return by its number which statement tells of a break; the newest statements come first."""
    told: dict[str, Told] = {}
    for row in statements:
        found = Told(row["number"], row["month"], row["statement"], row["sent"])
        for break_id in row["breaks"]:
            known = told.get(break_id)
            if known is None or (found.sent and not known.sent):
                told[break_id] = found
    return told


def count_by_state(breaks: Iterable[Row], told: dict[str, Told]) -> dict[str | None, int]:
    """Return how many breaks there are of each state; None: in no statement."""
    counts: dict[str | None, int] = {TOLD: 0, NOT_SENT: 0, None: 0}
    for row in breaks:
        found = told.get(row["break_id"])
        counts[found.state if found else None] += 1
    return counts


def add_told(columns: dict[str, list[Any]], told: dict[str, Told]) -> None:
    """Add to the columns of a list of breaks which partner was told, and by which statement."""
    found = [told.get(break_id) for break_id in columns["break_id"]]
    columns["told"] = [each and each.state for each in found]
    columns["told_in"] = [each and each.text() for each in found]
    columns["told_page"] = [each and each.page for each in found]
