"""What was folded into the work database and what was published of it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import Engine, func, insert, select

from pipelines.state.tables import FOLDS, VERSIONS


@dataclass(frozen=True)
class Fold:
    """One manifest folded into `current`; counts in rows."""

    run: str
    connection: str
    stream: str
    manifest: str
    read: int
    duplicates: int
    rows: int
    folded_at: datetime


@dataclass(frozen=True)
class Version:
    """One published file; `counts` are the rows of every table in it."""

    version: int
    run: str
    file: str
    counts: Mapping[str, int]
    published_at: datetime


def add_fold(engine: Engine, fold: Fold) -> None:
    """Record that a manifest was folded."""
    with engine.begin() as ledger:
        ledger.execute(insert(FOLDS).values(asdict(fold)))


def folds(engine: Engine) -> tuple[Fold, ...]:
    """Return the newest fold of every connection and stream: what `current` holds."""
    newest = select(func.max(FOLDS.c.number)).group_by(FOLDS.c.connection, FOLDS.c.stream)
    columns = [column for column in FOLDS.c if column.name != "number"]
    query = select(*columns).where(FOLDS.c.number.in_(newest)).order_by(FOLDS.c.stream)
    with engine.connect() as ledger:
        return tuple(Fold(**row) for row in ledger.execute(query).mappings())


def published_at(engine: Engine) -> datetime | None:
    """Return when the newest file was published; None where none was."""
    query = select(VERSIONS.c.published_at).order_by(VERSIONS.c.version.desc()).limit(1)
    with engine.connect() as ledger:
        return ledger.execute(query).scalar()


def next_version(engine: Engine) -> int:
    """Return the number of the next published file, from 1; numbers are never used twice."""
    with engine.connect() as ledger:
        return (ledger.execute(select(func.max(VERSIONS.c.version))).scalar() or 0) + 1


def add_version(engine: Engine, version: Version) -> None:
    """Record a published file."""
    with engine.begin() as ledger:
        ledger.execute(insert(VERSIONS).values(asdict(version)))
