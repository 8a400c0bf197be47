"""Rows of `decisions`: what people decided, with name and reason. Rows are only added."""

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from pipelines.core.errors import ConfigurationError
from pipelines.metadata.tables import Decision

BREAK_KINDS = ("break_assign", "break_resolve", "break_reopen")


def add_decision(session: Session, decision: Decision) -> None:
    """Add a decision. Raises ConfigurationError without a reason."""
    if not decision.reason.strip():
        raise ConfigurationError(
            f"A decision about {decision.subject} needs a reason. Nothing was changed.",
            "Run the command again with --reason.",
        )
    session.add(decision)


def unfinished_erasures(session: Session) -> list[Decision]:
    """Return the decisions to erase something that were not carried out to their end."""
    newest: dict[str, Decision] = {}
    kinds = select(Decision).where(Decision.kind.in_(["erase", "erased"]))
    for decision in session.scalars(kinds.order_by(Decision.number)):
        newest[decision.subject] = decision
    return [each for each in newest.values() if each.kind == "erase"]


def erased_digests(session: Session) -> list[str]:
    """Return the digests of the identifiers that people decided to erase."""
    found = select(Decision.subject).where(Decision.kind == "erase").distinct()
    return list(session.scalars(found.order_by(Decision.subject)))


def break_decisions(session: Session) -> list[dict[str, Any]]:
    """Return the decisions about breaks in their order, with the break as it was then."""
    found = select(Decision).where(Decision.kind.in_(BREAK_KINDS)).order_by(Decision.number)
    return [
        {
            "number": each.number,
            "break_id": each.subject,
            "kind": each.kind,
            "person": each.person,
            "decided_at": each.decided_at,
            "reason": each.reason,
            **{name: each.details.get(name) for name in ("owner", "difference", "rows")},
        }
        for each in session.scalars(found)
    ]
