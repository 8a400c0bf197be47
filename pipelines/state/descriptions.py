"""Interface descriptions as they were seen, what changed from one to the next, and what differs.

One row for each description that means something else than the one before; where only its texts
differ, the row keeps the newer ones. Differences are those of what was read last.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime

from sqlalchemy import Engine, delete, insert, select, update

from pipelines.state import conflict
from pipelines.state.tables import DESCRIPTIONS, INTERFACE_CHANGES, INTERFACE_DIFFERENCES


@dataclass(frozen=True)
class Seen:
    """A description as served, and since when it has been seen; the first is number 1.

    Its paths are told below `base`, the path of the service's address.
    """

    connection: str
    number: int
    body: bytes = field(repr=False)
    base: str
    first_seen_at: datetime
    last_seen_at: datetime


@dataclass(frozen=True)
class SeenChange:
    """What changed when a description was first seen; `stream` is None where none reads the path.

    `meaning` is safe, breaking or opportunity.
    """

    connection: str
    stream: str | None
    path: str
    what: str
    before: str
    after: str
    meaning: str
    first_seen_at: datetime

    def __str__(self) -> str:
        """Say it on one line."""
        values = " -> ".join(each or "nothing" for each in (self.before, self.after))
        return f"{self.meaning}: {self.path} {self.what}: {values}"


@dataclass(frozen=True)
class Difference:
    """Where the records of a reading are not as described, in words."""

    connection: str
    stream: str
    field: str
    what: str
    described: str
    found: str
    manifest: str
    seen_at: datetime

    def __str__(self) -> str:
        """Say it on one line."""
        said = [f"described: {self.described}"] if self.described else []
        said += [f"found: {self.found}"] if self.found else []
        return f"{self.field} {self.what} ({', '.join(said)})"


def latest(engine: Engine, connection: str) -> Seen | None:
    """Return the description that was seen last; None where none ever was."""
    query = (
        select(DESCRIPTIONS)
        .where(DESCRIPTIONS.c.connection == connection)
        .order_by(DESCRIPTIONS.c.number.desc())
        .limit(1)
    )
    with engine.connect() as ledger:
        row = ledger.execute(query).mappings().first()
    return None if row is None else Seen(**row)


def again(engine: Engine, seen: Seen) -> None:
    """Record that a description was seen again, with the texts that it has now."""
    statement = (
        update(DESCRIPTIONS)
        .where(DESCRIPTIONS.c.connection == seen.connection, DESCRIPTIONS.c.number == seen.number)
        .values(body=seen.body, base=seen.base, last_seen_at=seen.last_seen_at)
    )
    with engine.begin() as ledger:
        ledger.execute(statement)


def add(engine: Engine, seen: Seen, changes: Sequence[SeenChange]) -> None:
    """Record a description that means something new; the first process to see it records it."""
    row = conflict.insert(engine, DESCRIPTIONS).values(asdict(seen)).on_conflict_do_nothing()
    rows = [
        asdict(change) | {"number": seen.number, "position": position}
        for position, change in enumerate(changes)
    ]
    with engine.begin() as ledger:
        if ledger.execute(row).rowcount and rows:
            ledger.execute(insert(INTERFACE_CHANGES), rows)


def changes(engine: Engine, connection: str | None = None) -> tuple[SeenChange, ...]:
    """Return what ever changed, the newest last; of one connection where it is named."""
    table = INTERFACE_CHANGES
    columns = [each for each in table.c if each.name not in {"number", "position"}]
    query = select(*columns).order_by(table.c.first_seen_at, table.c.connection, table.c.position)
    if connection is not None:
        query = query.where(table.c.connection == connection)
    with engine.connect() as ledger:
        return tuple(SeenChange(**row) for row in ledger.execute(query).mappings())


def differ(engine: Engine, connection: str, stream: str, differences: Sequence[Difference]) -> None:
    """Record how the last reading of a stream differs from its description."""
    table = INTERFACE_DIFFERENCES
    old = delete(table).where(table.c.connection == connection, table.c.stream == stream)
    rows = [asdict(each) | {"position": number} for number, each in enumerate(differences)]
    with engine.begin() as ledger:
        ledger.execute(old)
        if rows:
            ledger.execute(insert(table), rows)


def differences(engine: Engine, connection: str | None = None) -> tuple[Difference, ...]:
    """Return how the last readings differ from their descriptions; of one connection if named."""
    table = INTERFACE_DIFFERENCES
    columns = [each for each in table.c if each.name != "position"]
    query = select(*columns).order_by(table.c.connection, table.c.stream, table.c.position)
    if connection is not None:
        query = query.where(table.c.connection == connection)
    with engine.connect() as ledger:
        return tuple(Difference(**row) for row in ledger.execute(query).mappings())
