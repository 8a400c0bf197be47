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
    of_kinds = select(Decision).where(Decision.kind.in_(kinds))
    return session.scalars(of_kinds.order_by(Decision.number)).all()


def unfinished_erasures(session: Session) -> list[Decision]:
    """Return the decisions to erase something that were not carried out to their end."""
    # The value itself is not kept: its digest is the subject of both decisions.
    newest = dict[str, Decision]()
    for decision in decisions_of(session, "erase", "erased"):
        newest[decision.subject] = decision
    return [decision for decision in newest.values() if decision.kind == "erase"]


def finished_erasures(session: Session) -> list[dict[str, Any]]:
    """Return who erased how many records when, newest first; never the value.

    An erasure that was interrupted counts once, with what it found at first. Numbers of those
    before release 0.3 were not recorded: 0.
    """
    finished = list[dict[str, Any]]()
    begun = dict[str, Decision]()
    for decision in decisions_of(session, "erase", "erased"):
        first = begun.setdefault(decision.subject, decision)
        if decision.kind == "erased":
            finished.append(
                {
                    "person": decision.person,
                    "erased_at": decision.decided_at,
                    "records": first.details.get("records", 0),
                    "files": first.details.get("files", 0),
                }
            )
            del begun[decision.subject]
    return finished[::-1]


def break_decisions(session: Session) -> list[dict[str, Any]]:
    """Return the decisions about breaks in their order, with the break as it was then."""
    decisions = decisions_of(session, "break_assign", "break_resolve", "break_reopen")
    return [_of_break(decision) for decision in decisions]


def mapping_decision(session: Session, digest: str) -> dict[str, Any] | None:
    """Return who accepted the mapping of a digest last, as a decision about no break; or None."""
    for decision in reversed(decisions_of(session, "accept_mapping")):
        if decision.subject == digest:
            return _of_break(decision) | {"break_id": None}
    return None


def _of_break(decision: Decision) -> dict[str, Any]:
    return {
        "number": decision.number,
        "break_id": decision.subject,
        "kind": decision.kind,
        "person": decision.person,
        "decided_at": decision.decided_at,
        "reason": decision.reason,
        "owner": decision.details.get("owner"),
        "difference": decision.details.get("difference"),
        "rows": decision.details.get("rows"),
        "rows_digest": decision.details.get("rows_digest"),
        "since": decision.details.get("since"),
    }
