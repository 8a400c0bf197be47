"""Rows of `decisions`: what people decided, with name and reason. Rows are only added."""

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
