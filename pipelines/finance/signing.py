"""The note on a close, who signs it, and what is asked of those.

Not here: what is asked of the month (close_refusals).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Final

import duckdb

from pipelines.core.text import counted, is_one_of
from pipelines.metadata.tables import Close

NOT_ASSIGNED: Final = """
SELECT count(*), min(breaks.break_id)
FROM reconciliation.breaks AS breaks
LEFT JOIN reconciliation.assignments AS assigned USING (break_id)
WHERE breaks.month = $month AND breaks.state <> 'resolved' AND breaks.severity = 'high'
    AND {is_chosen}
    AND (breaks.owner IS NULL OR coalesce(trim(assigned.reason), '') = '')
"""


@dataclass(frozen=True)
class Signing:
    """The note on a close, and who signs it; `approval` says how that is known: see `Close`.

    `accept_open` says why severe breaks stay open that have no owner or no reason. `connections`
    are those for which the month is closed; empty: all.
    """

    note: str = ""
    accept_open: str = ""
    connections: tuple[str, ...] = ()
    preparer: str = ""
    reviewer: str = ""
    approval: str = "declared"

    @property
    def state(self) -> str:
        """Return the state of the close: another user approves one of two people later."""
        return "prepared" if self.approval == "two" else "closed"


def not_assigned(
    month: date, connections: list[str] | None, db: duckdb.DuckDBPyConnection
) -> Iterator[tuple[str, str]]:
    """Yield that severe breaks of a month have no owner or no reason."""
    query = NOT_ASSIGNED.format(is_chosen=is_one_of("breaks.connection", connections))
    try:
        ((number, example),) = db.execute(query, {"month": month}).fetchall()
    except duckdb.CatalogException:  # books of an earlier release, which are refused
        return
    if number:
        why = (
            f"{counted(number, 'open break')} of severity high, such as {example}, "
            f"{'has' if number == 1 else 'have'} no owner with a reason"
        )
        yield why, 'Run `partner-sync breaks assign`, or give --accept-open "why".'


def one_person(close: Close) -> Iterator[tuple[str, str]]:
    """Yield that one person signs twice, if both names were typed."""
    if close.approval != "declared":
        return
    people = {close.preparer.casefold(), close.reviewer.casefold()}
    if len(people) == 1 or "" in people:
        yield "preparer and reviewer must be two people", "Name them: --preparer and --reviewer."


def signers_of(close: Close) -> str:
    """Return who signed a close: `ann and bob`, or the only person."""
    return " and ".join(filter(None, (close.preparer, close.reviewer)))
