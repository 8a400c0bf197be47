"""Rows of `decisions`: what people decided, with name and reason. Rows are only added."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from pipelines.core.errors import ConfigurationError
from pipelines.metadata.tables import Decision


def add_decision(session: Session, decision: Decision) -> Decision:
    """Add a decision; it gets its number. Raises ConfigurationError without person or reason."""
    for name in ("person", "reason"):
        if not getattr(decision, name).strip():
            raise ConfigurationError(
                f"A decision about {decision.subject} needs a {name}. Nothing was changed.",
                f"Run the command again with --{name}.",
            )
    session.add(decision)
    session.flush()
    return decision


def list_decisions(
    session: Session, kind: str | None = None, subject: str | None = None
) -> list[Decision]:
    """Return decisions (of one kind, about one subject), oldest first."""
    query = select(Decision).order_by(Decision.number)
    if kind is not None:
        query = query.where(Decision.kind == kind)
    if subject is not None:
        query = query.where(Decision.subject == subject)
    return list(session.scalars(query))
