"""What a person decided: rows that are only ever added, applied wherever history is folded again.

Here: who decided what, when and from which manifest on. Not here: what a decision changes.
"""

from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import Engine, insert, select

from pipelines.state.judgements import DECISIONS


class Kind(StrEnum):
    """What can be decided."""

    DISAPPEARED = "disappeared"  # so many records are truly gone
    SCHEMA = "schema"  # a frozen stream may have the columns and types that it has now
    QUARANTINE = "quarantine"  # so many records may be set aside
    ERASED = "erased"  # a partner's records were taken out of the archive


@dataclass(frozen=True)
class Decision:
    """One decision of a person about a stream of a connection.

    It holds from `manifest` on: its file below archive/manifests. `subject` says of what, where
    the kind alone does not.
    """

    kind: Kind
    connection: str
    stream: str
    manifest: str
    by: str
    at: datetime
    subject: str = ""
    note: str = ""


def decide(engine: Engine, decision: Decision) -> None:
    """Add a decision."""
    with engine.begin() as ledger:
        ledger.execute(insert(DECISIONS).values(asdict(decision)))


def made(engine: Engine, kind: Kind, connection: str, stream: str) -> list[Decision]:
    """Return the decisions of a kind about a stream, in the order in which they were made."""
    columns = [DECISIONS.c[name] for name in Decision.__dataclass_fields__]
    query = (
        select(*columns)
        .where(
            DECISIONS.c.kind == kind,
            DECISIONS.c.connection == connection,
            DECISIONS.c.stream == stream,
        )
        .order_by(DECISIONS.c.number)
    )
    with engine.connect() as ledger:
        rows = ledger.execute(query).mappings().all()
    return [Decision(**{**row, "kind": Kind(row["kind"])}) for row in rows]
