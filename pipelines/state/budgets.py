"""The request budgets as people read them: what was learned of every actor, and who has to wait.

Here: reading. Not here: taking slots (slots).
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Engine, select

from pipelines.state.tables import BUDGETS


@dataclass(frozen=True)
class Shared:
    """One actor's budget: requests a window as the service states them, seconds between requests.

    `blocked_to` is when a Retry-After is over, None where none is in force; `foreign_uses` counts
    answers that showed somebody else's requests.
    """

    actor: str
    limit: int | None
    gap: float
    blocked_to: datetime | None
    foreign_uses: int

    @property
    def words(self) -> str:
        """The same in one line."""
        known = (
            f"{self.limit} a window, as the service says" if self.limit else "limit not told yet"
        )
        words = [f"request budget of {self.actor}: {known}"]
        if self.gap:
            words.append(f"one each {self.gap:.2f} s since a 429")
        if self.foreign_uses:
            words.append("somebody else uses it too (allowance = leaves room)")
        if self.blocked_to:
            words.append(f"nothing is sent before {self.blocked_to:%H:%M:%S} UTC (Retry-After)")
        return "; ".join(words)


def shared(ledger: Engine, now: datetime) -> tuple[Shared, ...]:
    """Return every actor's budget."""
    query = select(
        BUDGETS.c.actor,
        BUDGETS.c.learned,
        BUDGETS.c.gap,
        BUDGETS.c.blocked_to,
        BUDGETS.c.foreign_uses,
    ).order_by(BUDGETS.c.actor)
    with ledger.connect() as connection:
        rows = connection.execute(query).all()
    return tuple(
        Shared(actor, learned, gap, _until(blocked_to, now), foreign)
        for actor, learned, gap, blocked_to, foreign in rows
    )


def _until(blocked_to: float, now: datetime) -> datetime | None:
    return datetime.fromtimestamp(blocked_to, UTC) if blocked_to > now.timestamp() else None
