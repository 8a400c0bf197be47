"""Breaks of the published version: list them, and record what people decide about them."""

from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal, localcontext
from typing import Final, NamedTuple

import pyarrow as pa

from pipelines.app.reconciled import open_reconciled, require_known
from pipelines.app.session import AppSession
from pipelines.core.errors import ConfigurationError
from pipelines.core.text import counted, printable
from pipelines.load.records import EXACT
from pipelines.metadata.decisions import add_decision
from pipelines.warehouse.duckdb_file import Row

UNKNOWN: Final = "unknown_partner"
KINDS: Final = ("assign", "resolve", "reopen")
BREAKS: Final = """
SELECT
    breaks.break_id, breaks.severity, breaks.rule, breaks.connection, breaks.partner,
    breaks.partner_name, strftime(breaks.month, '%Y-%m') AS month, breaks.currency,
    breaks.used_amount, breaks.billed_amount, breaks.difference, breaks.rows, breaks.cause,
    breaks.subject, breaks.age_days, breaks.state, breaks.owner, breaks.resolved_by, breaks.reason,
    breaks.uncertain, breaks.gone_at
FROM reconciliation.breaks AS breaks
WHERE $rule IN ('', breaks.rule)
    AND $partner IN ('', breaks.partner, breaks.partner_name)
    AND $month IN ('', strftime(breaks.month, '%Y-%m'))
    AND $severity IN ('', breaks.severity)
    AND $state IN ('', breaks.state)
    AND $break_id IN ('', breaks.break_id)
    AND (breaks.state <> 'resolved' OR concat($state, $break_id) <> '' OR $resolved)
ORDER BY
    list_position(['high', 'medium', 'low'], breaks.severity),
    abs(breaks.difference) DESC NULLS LAST, breaks.break_id
"""


class BreakFilter(NamedTuple):
    """Which breaks; empty: all. `partner` is an identifier or a name, `month` is as 2026-09."""

    rule: str = ""
    partner: str = ""
    month: str = ""
    severity: str = ""
    state: str = ""
    break_id: str = ""

    def __str__(self) -> str:
        given = ((name, value) for name, value in self._asdict().items() if value)
        return ", ".join(f"{name}={printable(value)}" for name, value in given)


class Verdict(NamedTuple):
    """What a person decides about a break: one of KINDS. Only `assign` has an owner."""

    decision: str
    new_reason: str
    new_owner: str = ""

    def problem(self, found: Row) -> str:
        """Return why this cannot be decided about a break; empty if it can."""
        if self.decision not in KINDS:
            return f"unknown decision `{printable(self.decision)}`, use {', '.join(KINDS)}"
        if not self.new_reason.strip():
            return "it has no reason"
        if (self.decision == "assign") != bool(self.new_owner.strip()):
            return "it has no owner" if not self.new_owner else f"{self.decision} takes no owner"
        is_open = found["state"] != "resolved"
        if is_open == (self.decision == "reopen") or (not is_open and found["gone_at"]):
            return f"the break is {found['state']}, so no {self.decision}"
        return ""


def read_breaks(
    session: AppSession, chosen: BreakFilter, *, with_resolved: bool = False
) -> pa.Table:
    """Return breaks, most severe first, then by the size of the difference.

    Resolved ones are among them only where a state or a break is chosen, or `with_resolved`. Raises
    ConfigurationError for an unknown value or without breaks, PartnerSyncError.
    """
    with open_reconciled(session, "breaks") as (_version, db):
        bound = chosen._asdict()
        require_known(db, bound)
        return db.execute(BREAKS, bound | {"resolved": with_resolved}).to_arrow_table()


def totals(rows: Iterable[Row]) -> list[Row]:
    """Return the sum of the differences by currency; uncertain breaks are in none.

    `unknown_partners` is the part of it that is in no known partner's difference.
    """
    groups = defaultdict[str | None, list[Row]](list)
    for each in rows:
        if each["uncertain"] is None and each["difference"] is not None:
            groups[each["currency"]].append(each)
    return [
        {
            "currency": name,
            **_sum(found),
            "unknown_partners": _sum([each for each in found if each["rule"] == UNKNOWN]),
        }
        for name, found in sorted(groups.items(), key=lambda group: str(group[0]))
    ]


def _sum(rows: list[Row]) -> Row:
    with localcontext(EXACT):
        total = sum((each["difference"] for each in rows), Decimal(0))
    return {"breaks": len(rows), "difference": total}


def choose_breaks(session: AppSession, chosen: BreakFilter, verdict: Verdict) -> list[Row]:
    """Return the breaks for which a verdict makes sense, each with it.

    Raises ConfigurationError where there is no such break.
    """
    if not any(chosen):
        raise ConfigurationError("No break and no filter is given. Nothing was changed.")
    found = read_breaks(session, chosen, with_resolved=True).to_pylist()
    problems = [verdict.problem(each) for each in found]
    fitting = [each for each, problem in zip(found, problems, strict=True) if not problem]
    if not fitting:
        raise ConfigurationError(
            f"{len(found):,} breaks match {chosen}; there is none to {verdict.decision}: "
            f"{'; '.join(sorted({*problems}))}. Nothing was changed.",
            "Run `partner-sync breaks` to see breaks with their states.",
        )
    return [each | verdict._asdict() for each in fitting]


def record_decisions(session: AppSession, decided: list[Row]) -> str:
    """Record breaks with their verdicts in one transaction; return what was done, as a sentence."""
    with session.metadata.transaction() as db:
        for each in decided:
            kind, difference = f"break_{each['decision']}", each["difference"]
            decision = session.decision(kind, each["break_id"], each["new_reason"])
            decision.details = {
                "owner": each["new_owner"] or None,
                "difference": None if difference is None else f"{difference:f}",
                "rows": each["rows"],
            }
            add_decision(db, decision)
    return f"Recorded {counted(len(decided), 'decision')}."
