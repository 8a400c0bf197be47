"""What figures have of months that wait for approval: books have only those that are closed."""

from dataclasses import dataclass
from datetime import date, datetime


@dataclass(frozen=True)
class Prepared:
    """A month that one user prepared, and that nobody has approved yet.

    `number` is that of its copy. `connections` are those for which it is to be closed; None: all.
    """

    month: date
    number: int
    preparer: str
    prepared_at: datetime
    connections: tuple[str, ...] | None

    def is_of(self, connection: str) -> bool:
        """Return whether the month is to be closed for a connection."""
        return self.connections is None or connection in self.connections
