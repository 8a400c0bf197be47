"""What was published: one row for every file that analysts could open."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import Engine, insert, select

from pipelines.state.tables import VERSIONS


@dataclass(frozen=True)
class Version:
    """One published file.

    `holds` is the manifest of every `connection/stream` in it, `counts` the rows of every table.
    """

    version: int
    run: str
    file: str
    holds: Mapping[str, str]
    counts: Mapping[str, int]
    published_at: datetime


def latest(engine: Engine) -> Version | None:
    """Return the newest published file; None where nothing was published."""
    query = select(VERSIONS).order_by(VERSIONS.c.version.desc()).limit(1)
    with engine.connect() as ledger:
        row = ledger.execute(query).mappings().first()
    return None if row is None else Version(**row)


def add(engine: Engine, version: Version) -> None:
    """Record a published file."""
    with engine.begin() as ledger:
        ledger.execute(insert(VERSIONS).values(asdict(version)))
