"""Base snapshots: which manifests each holds, so that they need not be kept.

Not here: the file (warehouse.base), what is dropped (warehouse.retention).
"""

from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import Engine, insert, select

from pipelines.state.tables import BASES


@dataclass(frozen=True)
class Base:
    """One snapshot of the tables; `manifests` are all that are folded in it, or were passed over.

    Each holds what those before it held: only the newest counts.
    """

    number: int
    file: str
    sha256: str
    manifests: list[str]
    by: str
    at: datetime


def add(engine: Engine, base: Base) -> None:
    """Record a snapshot whose file is in the archive."""
    with engine.begin() as ledger:
        ledger.execute(insert(BASES).values(asdict(base)))


def newest(engine: Engine) -> Base | None:
    """Return the snapshot from which folding starts; None where it starts from nothing."""
    query = select(BASES).order_by(BASES.c.number.desc()).limit(1)
    with engine.connect() as ledger:
        row = ledger.execute(query).mappings().first()
    return None if row is None else Base(**row)
