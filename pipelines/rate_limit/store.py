"""The rows of one actor in the metadata database. Every function runs inside one transaction.

Statements are built once and run on the connection: the same through the ORM takes three times as
long, and several run for each request.
"""

from collections.abc import Iterable
from typing import cast

from sqlalchemy import Table, bindparam, delete, insert, select, update
from sqlalchemy.orm import Session

from pipelines.metadata.tables import RateLimitActor, RateLimitSlot
from pipelines.rate_limit.memory import Memory
from pipelines.rate_limit.policy import Row

_ACTORS = cast("Table", RateLimitActor.__table__)
_SLOTS = cast("Table", RateLimitSlot.__table__)
_COLUMNS = [_SLOTS.c[name] for name in Row.__dataclass_fields__]
_IS_ACTOR = _ACTORS.c.actor == bindparam("of_actor")
_IS_ROW = _SLOTS.c.number == bindparam("of_number")

SELECT_ACTOR = select(_ACTORS).where(_IS_ACTOR).with_for_update()
INSERT_ACTOR = insert(_ACTORS)
UPDATE_ACTOR = update(_ACTORS).where(_IS_ACTOR)
FORGET_BLOCK = UPDATE_ACTOR.values(blocked_until=0.0)
SELECT_ROWS = (
    select(*_COLUMNS).where(_SLOTS.c.actor == bindparam("of_actor")).order_by(_SLOTS.c.number)
)
INSERT_ROW = insert(_SLOTS)
UPDATE_ROW = update(_SLOTS).where(_IS_ROW)
DELETE_ROW = delete(_SLOTS).where(_IS_ROW)


def read_memory(session: Session, actor: str) -> Memory:
    """Return what is known of an actor, and keep other processes out until the commit."""
    found = session.connection().execute(SELECT_ACTOR, {"of_actor": actor}).one_or_none()
    if found is None:
        session.connection().execute(INSERT_ACTOR, {"actor": actor, **_values(Memory())})
        return Memory()
    state = found.state
    probed, probed_at = state.get("probed", (0, 0.0))
    return Memory(
        limit=found.limit,
        blocked_until=found.blocked_until,
        caution_until=found.caution_until,
        caution_seconds=found.caution_seconds,
        others=tuple((second, count) for second, count in state.get("others", ())),
        brief=tuple((second, count) for second, count in state.get("brief", ())),
        probed=probed,
        probed_at=probed_at,
    )


def write_memory(session: Session, actor: str, memory: Memory) -> None:
    """Store what is known of an actor; `read_memory` comes first in the same transaction."""
    session.connection().execute(UPDATE_ACTOR, {"of_actor": actor, **_values(memory)})


def forget_block(session: Session, actor: str) -> None:
    """Forget a remembered Retry-After."""
    session.connection().execute(FORGET_BLOCK, {"of_actor": actor})


def read_rows(session: Session, actor: str) -> list[Row]:
    """Return the rows of an actor in the order of the queue."""
    found = session.connection().execute(SELECT_ROWS, {"of_actor": actor})
    return [Row(*values) for values in found]


def add_row(session: Session, actor: str, owner: str, sent_at: float | None) -> int:
    """Add a row at the end of the queue; return its number."""
    values = {"actor": actor, "owner": owner, "sent_at": sent_at, "credit": 0.0}
    added = session.connection().execute(INSERT_ROW, values).inserted_primary_key
    return int(added[0]) if added else 0


def change_row(session: Session, number: int, values: dict[str, float | None]) -> None:
    """Change one row."""
    session.connection().execute(UPDATE_ROW, {"of_number": number, **values})


def delete_rows(session: Session, numbers: Iterable[int]) -> None:
    """Delete rows by their numbers."""
    if rows := [{"of_number": number} for number in numbers]:
        session.connection().execute(DELETE_ROW, rows)


def _values(memory: Memory) -> dict[str, object]:
    return {
        "limit": memory.limit,
        "blocked_until": memory.blocked_until,
        "caution_until": memory.caution_until,
        "caution_seconds": memory.caution_seconds,
        "state": {
            "others": memory.others,
            "brief": memory.brief,
            "probed": (memory.probed, memory.probed_at),
        },
    }
