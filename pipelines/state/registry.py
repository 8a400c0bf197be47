"""What is settled about a stream: the key of its records and the shape of its fields.

A key is pinned once, per connection and stream; shapes are numbered and only grow wider.
"""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, func, select
from sqlalchemy.dialects.sqlite import insert

from pipelines.state.tables import KEYS, SCHEMAS


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
    statement = insert(KEYS).values(values | asdict(settled)).on_conflict_do_nothing()
    with engine.begin() as ledger:
        ledger.execute(statement)


@dataclass(frozen=True)
class Registered:
    """A stream's shape and the names its paths were given, both as JSON."""

    shape: Any
    names: Any


def registered(engine: Engine, stream: str) -> Registered | None:
    """Return what is registered of a stream; None where nothing is."""
    query = (
        select(SCHEMAS.c.shape, SCHEMAS.c.names)
        .where(SCHEMAS.c.stream == stream)
        .order_by(SCHEMAS.c.number.desc())
        .limit(1)
    )
    with engine.connect() as ledger:
        row = ledger.execute(query).first()
    return None if row is None else Registered(*row)


def register(engine: Engine, stream: str, wider: Registered, manifest: str, now: datetime) -> None:
    """Record a wider shape with its names, and the manifest that needed it."""
    number = select(func.coalesce(func.max(SCHEMAS.c.number), 0) + 1).where(
        SCHEMAS.c.stream == stream
    )
    values = asdict(wider) | {"stream": stream, "manifest": manifest, "recorded_at": now}
    with engine.begin() as ledger:
        ledger.execute(insert(SCHEMAS).values(values | {"number": number.scalar_subquery()}))
