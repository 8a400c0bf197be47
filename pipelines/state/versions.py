"""What was published: one row for every file that analysts could open, and every step back.

A step back is a person's decision. It holds until a version is published that is newer than those
there were at that time.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime

from sqlalchemy import Engine, insert, select

from pipelines.state.tables import ROLLBACKS, VERSIONS


@dataclass(frozen=True)
class Version:
    """One published file.

    `holds` is the newest manifest of every `connection/stream` in it, `counts` the rows of every
    table, `totals` the control totals of the tables of records, `made_of` by stream what marks the
    folds behind its tables, `doubts` the `connection/stream` whose rows may not be today's.
    """

    version: int
    run: str
    file: str
    holds: Mapping[str, str]
    counts: Mapping[str, int]
    published_at: datetime
    sha256: str = ""
    totals: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    made_of: Mapping[str, str] = field(default_factory=dict)
    doubts: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Rollback:
    """A person let analysts open an older version than the newest of that time."""

    newest: int
    opened: int
    by: str
    at: datetime
    reason: str = ""

    @property
    def words(self) -> str:
        """The same for people."""
        why = f" ({self.reason})" if self.reason else ""
        return (
            f"version {self.newest} was rolled back to {self.opened} by {self.by} at "
            f"{self.at:%Y-%m-%d %H:%M} UTC{why}; the next fold of something new publishes again"
        )


def every(engine: Engine) -> tuple[Version, ...]:
    """Return what was ever published, the oldest first."""
    with engine.connect() as ledger:
        rows = ledger.execute(select(VERSIONS).order_by(VERSIONS.c.version)).mappings()
        return tuple(Version(**row) for row in rows)


def latest(engine: Engine) -> Version | None:
    """Return the newest published file; None where nothing was published."""
    query = select(VERSIONS).order_by(VERSIONS.c.version.desc()).limit(1)
    with engine.connect() as ledger:
        row = ledger.execute(query).mappings().first()
    return None if row is None else Version(**row)


def named(engine: Engine, number: int) -> Version | None:
    """Return a version by its number."""
    with engine.connect() as ledger:
        found = ledger.execute(select(VERSIONS).where(VERSIONS.c.version == number)).mappings()
        row = found.first()
    return None if row is None else Version(**row)


def opened(engine: Engine) -> Version | None:
    """Return the version that analysts open: the newest, unless it was rolled back."""
    back = rolled_back(engine)
    return named(engine, back.opened) if back else latest(engine)


def add(engine: Engine, version: Version) -> None:
    """Record a published file."""
    with engine.begin() as ledger:
        ledger.execute(insert(VERSIONS).values(asdict(version)))


def roll_back(engine: Engine, rollback: Rollback) -> None:
    """Record that analysts open another version than the newest, or the newest again."""
    with engine.begin() as ledger:
        ledger.execute(insert(ROLLBACKS).values(asdict(rollback)))


def rolled_back(engine: Engine) -> Rollback | None:
    """Return the step back that holds now; None where analysts open the newest version."""
    newest = latest(engine)
    columns = [ROLLBACKS.c[each.name] for each in fields(Rollback)]
    query = select(*columns).order_by(ROLLBACKS.c.number.desc()).limit(1)
    with engine.connect() as ledger:
        row = ledger.execute(query).first()
    back = None if row is None else Rollback(*row)
    if back is None or newest is None or back.newest != newest.version:
        return None
    return None if back.opened == newest.version else back
