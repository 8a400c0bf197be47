"""Breaks of the published version: list them, and record what people decide about them."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal, localcontext
from typing import Final

from pipelines.app.reconciled import Row, open_reconciled, require_known, select
from pipelines.app.session import AppSession
from pipelines.core.errors import ConfigurationError
from pipelines.core.text import printable
from pipelines.load.records import EXACT
from pipelines.metadata.decisions import add_decision

Ask = Callable[[list[Row]], bool]
"""Gets what is about to be decided; returns whether to go on."""
KINDS: Final = ("assign", "resolve", "reopen")
BREAKS: Final = """
SELECT
    breaks.break_id, breaks.severity, breaks.rule, breaks.connection, breaks.partner,
    breaks.partner_name, strftime(breaks.month, '%Y-%m') AS month, breaks.currency,
    breaks.used_amount, breaks.billed_amount, breaks.difference, breaks.rows, breaks.cause,
    breaks.subject, breaks.age_days, breaks.state, breaks.owner, breaks.resolved_by, breaks.reason,
    breaks.uncertain, breaks.gone_at
FROM reconciliation.breaks AS breaks
WHERE {conditions}
ORDER BY
    list_position(['high', 'medium', 'low'], breaks.severity),
    abs(breaks.difference) DESC NULLS LAST, breaks.break_id
"""
CONDITIONS: Final = {
    "rule": "breaks.rule = $rule",
    "partner": "$partner IN (breaks.partner, breaks.partner_name)",
    "month": "strftime(breaks.month, '%Y-%m') = $month",
    "severity": "breaks.severity = $severity",
    "state": "breaks.state = $state",
    "break_id": "breaks.break_id = $break_id",
}


@dataclass(frozen=True)
class BreakFilter:
    """Which breaks; empty: all. `partner` is an identifier or a name, `month` is as 2026-09."""

    rule: str = ""
    partner: str = ""
    month: str = ""
    severity: str = ""
    state: str = ""
    break_id: str = ""

    def values(self) -> dict[str, str]:
        """Return what is given."""
        return {name: value for name, value in asdict(self).items() if value}

    def __str__(self) -> str:
        return ", ".join(f"{name}={printable(value)}" for name, value in self.values().items())

    def query(self, *, listed: bool = False) -> str:
        """Return the query for the breaks, most severe first, then by the size of the difference.

        `listed`: without those that are resolved, unless a state or a break is chosen.
        """
        conditions = [CONDITIONS[name] for name in self.values()]
        if listed and not (self.state or self.break_id):
            conditions.append("breaks.state <> 'resolved'")
        return BREAKS.format(conditions=" AND ".join(conditions) or "true")


@dataclass(frozen=True)
class Verdict:
    """What a person decides about a break. `kind` is one of KINDS; only `assign` has an owner."""

    kind: str
    reason: str
    owner: str = ""

    def problem(self) -> str:
        """Return what is wrong with it, whatever the break; empty if nothing is."""
        if self.kind not in KINDS:
            return f"unknown decision `{printable(self.kind)}`, use {', '.join(KINDS)}"
        if not self.reason.strip():
            return "it has no reason"
        if (self.kind == "assign") != bool(self.owner.strip()):
            return "it has no owner" if not self.owner else f"{self.kind} takes no owner"
        return ""

    def fits(self, found: Row) -> bool:
        """Whether it changes a break: what the evidence resolved cannot be reopened."""
        if self.kind == "reopen":
            return found["state"] == "resolved" and found["gone_at"] is None
        return bool(found["state"] != "resolved")


def list_breaks(session: AppSession, chosen: BreakFilter) -> list[Row]:
    """Return breaks, most severe first; resolved ones only where a state or a break is chosen.

    Raises ConfigurationError for an unknown value or without breaks, VersionNotFound.
    """
    with open_reconciled(session, "breaks") as (_version, db):
        require_known(db, chosen.values())
        return select(db, chosen.query(listed=True), chosen.values())


def totals(rows: Sequence[Row]) -> list[Row]:
    """Return the sum of the differences by currency; uncertain breaks are in none."""
    groups = defaultdict[str | None, list[Decimal]](list)
    for each in rows:
        if each["uncertain"] is None and each["difference"] is not None:
            groups[each["currency"]].append(each["difference"])
    with localcontext(EXACT):
        return [
            {"currency": currency, "breaks": len(found), "difference": sum(found, Decimal(0))}
            for currency, found in sorted(groups.items(), key=lambda group: group[0] or "")
        ]


def decide(session: AppSession, chosen: BreakFilter, verdict: Verdict, ask: Ask) -> int | None:
    """Record a decision about each break for which it makes sense; return how many.

    Returns None where `ask` refuses. Raises ConfigurationError where there is no such break.
    """
    if problem := verdict.problem() or ("" if chosen.values() else "no break or filter is given"):
        raise ConfigurationError(f"The decision is not complete: {problem}. Nothing was changed.")
    with open_reconciled(session, "breaks") as (_version, db):
        require_known(db, chosen.values())
        found = select(db, chosen.query(), chosen.values())
    fitting = [(each, verdict) for each in found if verdict.fits(each)]
    if not fitting:
        raise ConfigurationError(
            f"{len(found):,} breaks match {chosen}; there is none to {verdict.kind}. Nothing was "
            "changed.",
            "Run `partner-sync breaks` to see breaks with their states.",
        )
    return record(session, fitting, ask)


def record(session: AppSession, decided: Sequence[tuple[Row, Verdict]], ask: Ask) -> int | None:
    """Record decisions about breaks in one transaction, if `ask` agrees (else: None)."""
    preview = [
        found | {"decision": each.kind, "new_owner": each.owner, "new_reason": each.reason}
        for found, each in decided
    ]
    if not ask(preview):
        return None
    with session.metadata.transaction() as db:
        for found, each in decided:
            decision = session.decision(f"break_{each.kind}", found["break_id"], each.reason)
            difference = None if found["difference"] is None else f"{found['difference']:f}"
            about = {"difference": difference, "rows": found["rows"]}
            decision.details = {"owner": each.owner or None, **about}
            add_decision(db, decision)
    return len(decided)
