"""Breaks and people: which there are and how they stand, what was done, and doing it.

What a rule found is the published table's; what people did is the ledger's, and newer where
nothing was published since. Not here: what is a break (reconciliation), what follows (state).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any

from pipelines.errors import ConfigurationError
from pipelines.run.session import Session
from pipelines.state import breaks
from pipelines.state.breaks import EVIDENCE, Act, Kind, Standing, State
from pipelines.warehouse import published

SEVERITIES = ("high", "medium", "low")
# What the ledger does not know of a break.
QUERY = """
SELECT break_id, severity, partner_name, age_days, artefact, artefact_reason
FROM reconciliation.breaks
"""


@dataclass(frozen=True)
class Break:
    """A break and how it stands now.

    What was not published yet of it is None; `age` in days is as of the published data.
    """

    standing: Standing
    severity: str | None = None
    partner_name: str | None = None
    age: int | None = None
    artefact: bool = False
    artefact_reason: str | None = None

    @property
    def partner(self) -> str | None:
        """Its name, where it has one."""
        return self.partner_name or self.standing.finding.partner


@dataclass(frozen=True)
class Chosen:
    """Which breaks are wanted; what is None or empty wants all."""

    rule: str | None = None
    partner: str | None = None
    month: date | None = None
    severity: str | None = None
    states: Sequence[State] = ()

    def takes(self, each: Break) -> bool:
        """Tell whether a break is wanted."""
        found = each.standing.finding
        names = {name.casefold() for name in (found.partner, each.partner_name) if name}
        return (
            self.rule in {None, found.rule}
            and (self.partner is None or self.partner.casefold() in names)
            and self.month in {None, found.month}
            and self.severity in {None, each.severity}
            and (not self.states or each.standing.state in self.states)
        )


def broken(session: Session, chosen: Chosen = Chosen()) -> list[Break]:
    """Return the breaks chosen, the gravest first."""
    said = _published(session)
    each = [Break(one, **said.get(one.break_id, {})) for one in breaks.standing(session.ledger)]
    return sorted(filter(chosen.takes, each), key=_gravest)


def totals(found: Sequence[Break]) -> dict[str, tuple[int, Decimal]]:
    """Return of each currency how many breaks there are, and the sum of their differences."""
    sums: dict[str, tuple[int, Decimal]] = {}
    for each in found:
        finding = each.standing.finding
        if finding.currency and finding.difference is not None:
            count, amount = sums.get(finding.currency, (0, Decimal(0)))
            sums[finding.currency] = (count + 1, amount + finding.difference)
    return dict(sorted(sums.items()))


def trail(session: Session, break_id: str) -> tuple[Break, list[Act]]:
    """Return a break, and what people did with it. Raises ConfigurationError for an unknown id."""
    one = _known(session, break_id)
    said = _published(session).get(one.break_id, {})
    return Break(one, **said), breaks.acts(session.ledger, one.break_id)


def decide(session: Session, act: Act) -> Standing:
    """Record what a person does with a break; return how it stands then.

    Raises ConfigurationError for an unknown id, and for what cannot be done as it stands.
    """
    one = _known(session, act.break_id)
    _refuse(act.act, one)
    seen = breaks.sighted(session.ledger, one.break_id)
    if seen is not None:
        done = replace(act, break_id=one.break_id)
        breaks.act(session.ledger, breaks.as_it_is(done, seen))
    return _known(session, one.break_id)


def _refuse(act: Kind, one: Standing) -> None:
    if one.resolved_by == EVIDENCE:
        raise ConfigurationError(
            f"break {one.break_id} is resolved by evidence: it is not in the data as of "
            f"{one.gone_at:%Y-%m-%d %H:%M} UTC any more. There is nothing to do; it opens again "
            "by itself where it is found again."
        )
    if act is Kind.REOPEN and one.state is not State.RESOLVED:
        raise ConfigurationError(
            f"break {one.break_id} is {one.state}, not resolved: there is nothing to reopen"
        )
    if act is not Kind.REOPEN and one.state is State.RESOLVED:
        raise ConfigurationError(
            f"break {one.break_id} was resolved by {one.resolved_by} ({one.note}). To change that: "
            f"`partner-sync breaks reopen {one.break_id} --note …`"
        )


def _known(session: Session, break_id: str) -> Standing:
    exact = break_id.strip()
    found = breaks.standing(session.ledger, exact[:1].upper() + exact[1:].lower())
    if not found:
        raise ConfigurationError(
            f"there is no break {break_id!r} in this home; `partner-sync breaks` lists what there "
            "is, and `--state RESOLVED` what there was"
        )
    return found[0]


def _published(session: Session) -> Mapping[str, Mapping[str, Any]]:
    """Return what the published file says of each break; nothing where it has no such table."""
    rows = published.rows(session.settings.place, ("reconciliation", "breaks"), QUERY)
    names = ("severity", "partner_name", "age", "artefact", "artefact_reason")
    return {which: dict(zip(names, rest, strict=True)) for which, *rest in rows}


def _gravest(each: Break) -> tuple[Any, ...]:
    finding = each.standing.finding
    grave = SEVERITIES.index(each.severity) if each.severity in SEVERITIES else len(SEVERITIES)
    return grave, finding.currency or "~", -abs(finding.difference or Decimal(0)), finding.break_id
