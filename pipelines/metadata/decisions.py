"""Rows of `decisions`: what people decided, with name and reason. Rows are only added."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from pipelines.core.errors import ConfigurationError
from pipelines.metadata.tables import Decision


def add_decision(session: Session, decision: Decision) -> None:
    """Add a decision. Raises ConfigurationError without person or reason."""
    for name in ("person", "reason"):
        if not getattr(decision, name).strip():
            raise ConfigurationError(
                f"A decision about {decision.subject} needs a {name}. Nothing was changed.",
                f"Run the command again with --{name}.",
            )
    session.add(decision)


def unfinished_erasures(session: Session) -> list[Decision]:
    """Return the decisions to erase something that were not carried out to their end."""
    newest: dict[str, Decision] = {}
    kinds = select(Decision).where(Decision.kind.in_(["erase", "erased"]))
    for decision in session.scalars(kinds.order_by(Decision.number)):
        newest[decision.subject] = decision
    return [each for each in newest.values() if each.kind == "erase"]
