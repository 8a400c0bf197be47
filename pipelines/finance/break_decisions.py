"""Here: what a person decides about breaks, and that it is recorded.

Not here: how books then show it (books), decisions in a file (decisions_file).
"""

from typing import Final, NamedTuple

from pipelines.core.errors import ConfigurationError
from pipelines.core.text import counted, printable
from pipelines.finance.breaks import BreakFilter, read_breaks
from pipelines.metadata.decisions import add_decision
from pipelines.versions.stores import Stores
from pipelines.warehouse.duckdb_file import Row

KINDS: Final = ("assign", "resolve", "reopen")


class BreakDecision(NamedTuple):
    """What a person decides about a break: one of KINDS. Only `assign` has an owner."""

    decision: str
    new_reason: str
    new_owner: str = ""

    def problem(self, row: Row) -> str:
        """Return why this cannot be decided about a break; empty if it can."""
        if self.decision not in KINDS:
            return f"unknown decision `{printable(self.decision)}`, use {', '.join(KINDS)}"
        if not self.new_reason.strip():
            return "it has no reason"
        has_owner = bool(self.new_owner.strip())
        if self.decision == "assign" and not has_owner:
            return "it has no owner"
        if self.decision != "assign" and has_owner:
            return f"{self.decision} takes no owner"
        if not self._fits(row):
            return f"the break is {row['state']}, so no {self.decision}"
        return ""

    def _fits(self, row: Row) -> bool:
        """Return whether a break is in a state that this would change."""
        is_resolved = row["state"] == "resolved"
        if self.decision == "reopen":
            # One that is gone is resolved by evidence, and no person can reopen it.
            return is_resolved and row["gone_at"] is None
        return not is_resolved


def choose_breaks(stores: Stores, chosen: BreakFilter, decision: BreakDecision) -> list[Row]:
    """Return the breaks for which a decision makes sense, each with it.

    Raises ConfigurationError where there is no such break.
    """
    if not any(chosen):
        raise ConfigurationError("No break and no filter is given. Nothing was changed.")
    breaks = read_breaks(stores, chosen).to_pylist()
    fitting = []
    problems = set()
    for row in breaks:
        problem = decision.problem(row)
        if problem:
            problems.add(problem)
        else:
            fitting.append(row | decision._asdict())
    if not fitting:
        raise ConfigurationError(
            f"{len(breaks):,} breaks match {chosen}; there is none to {decision.decision}: "
            f"{'; '.join(sorted(problems))}. Nothing was changed.",
            "Run `partner-sync breaks` to see breaks with their states.",
        )
    return fitting


def record_decisions(stores: Stores, decided: list[Row]) -> str:
    """Record decisions about breaks in one transaction; return what was done, as a sentence."""
    with stores.metadata.transaction() as session:
        for row in decided:
            kind = f"break_{row['decision']}"
            difference = row["difference"]
            decision = stores.decision(kind, row["break_id"], row["new_reason"])
            decision.details = {
                "owner": row["new_owner"] or None,
                "difference": None if difference is None else f"{difference:f}",
                "rows": row["rows"],
                "rows_digest": row["rows_digest"],
                "since": row["since"].isoformat(),
            }
            add_decision(session, decision)
    return f"Recorded {counted(len(decided), 'decision')}."
