"""Rows of `decisions`: what people decided, with name and reason. Rows are only added."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from pipelines.core.errors import ConfigurationError
from pipelines.metadata.tables import Decision


def add_decision(session: Session, decision: Decision) -> None:
    """Add a decision. Raises ConfigurationError without a reason."""
    if not decision.reason.strip():
        raise ConfigurationError(
            f"A decision about {decision.subject} needs a reason. Nothing was changed.",
            "Run the command again with --reason.",
        )
    session.add(decision)


def decisions_of(session: Session, *kinds: str) -> Sequence[Decision]:
    """Return the decisions of some kinds in their order."""
    found = select(Decision).where(Decision.kind.in_(kinds))
    return session.scalars(found.order_by(Decision.number)).all()


def unfinished_erasures(session: Session) -> list[Decision]:
    """Return the decisions to erase something that were not carried out to their end."""
    newest = {each.subject: each for each in decisions_of(session, "erase", "erased")}
    return [each for each in newest.values() if each.kind == "erase"]


def finished_erasures(session: Session) -> list[dict[str, Any]]:
    """Return who erased how many records when, newest first; never the value.

    An erasure that was interrupted counts once, with what it found at first. Numbers of those
    before release 0.3 were not recorded: 0.
    """
    found = list[dict[str, Any]]()
    begun = dict[str, Decision]()
    for each in decisions_of(session, "erase", "erased"):
        first = begun.setdefault(each.subject, each)
        if each.kind == "erased":
            numbers = {name: first.details.get(name, 0) for name in ("records", "files")}
            found.append({"person": each.person, "erased_at": each.decided_at, **numbers})
            del begun[each.subject]
    return found[::-1]


def break_decisions(session: Session) -> list[dict[str, Any]]:
    """Return the decisions about breaks in their order, with the break as it was then."""
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
        for each in decisions_of(session, "break_assign", "break_resolve", "break_reopen")
    ]
