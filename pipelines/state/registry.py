"""What is settled about a stream: the key of its records, pinned once per connection and stream.

Not here: the shape of its fields, which follows from the archive (warehouse/registry.py).
"""

from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import Engine, select

from pipelines.state.conflict import insert
from pipelines.state.tables import KEYS


@dataclass(frozen=True)
class Pin:
    """The settled key of a stream and the scan that settled it.

    `key` is None where the whole record identifies itself.
    """

    key: str | None
    scan: str


def pin(engine: Engine, connection: str, stream: str) -> Pin | None:
    """Return the pinned key, None where nothing is pinned yet."""
    query = select(KEYS.c.key, KEYS.c.scan).where(
        KEYS.c.connection == connection, KEYS.c.stream == stream
    )
    with engine.connect() as ledger:
        row = ledger.execute(query).first()
    return None if row is None else Pin(*row)


def set_pin(engine: Engine, connection: str, stream: str, settled: Pin, now: datetime) -> None:
    """Pin a stream's key; the first scan to say so decides."""
    values = {"connection": connection, "stream": stream, "pinned_at": now}
    statement = insert(engine, KEYS).values(values | asdict(settled)).on_conflict_do_nothing()
    with engine.begin() as ledger:
        ledger.execute(statement)
