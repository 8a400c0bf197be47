"""Whom a connection lands for: pinned at its first landing, moved by a person and by nobody else.

Here: the pins, as rows that are only ever added; the newest counts. Not here: what an identity is
made of (api.identity).
"""

from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import Engine, exists, insert, literal, select

from pipelines.state.tables import IDENTITIES, PAGES, SCANS


@dataclass(frozen=True)
class Identity:
    """Who we are to a service: its host, and the digest of what it says of us; `words` show it."""

    host: str
    digest: str
    words: str

    def __str__(self) -> str:
        return f"{self.host}: {self.words}"


@dataclass(frozen=True)
class Pinned:
    """An identity, since when it counts and who decided so; `by` is None for a first landing."""

    identity: Identity
    at: datetime
    by: str | None


def pinned(engine: Engine, connection: str) -> Pinned | None:
    """Return whom a connection lands for, None before its first landing."""
    columns = (IDENTITIES.c.host, IDENTITIES.c.digest, IDENTITIES.c.words)
    query = (
        select(*columns, IDENTITIES.c.pinned_at, IDENTITIES.c.pinned_by)
        .where(IDENTITIES.c.connection == connection)
        .order_by(IDENTITIES.c.number.desc())
        .limit(1)
    )
    with engine.connect() as ledger:
        row = ledger.execute(query).first()
    return None if row is None else Pinned(Identity(*row[:3]), row[3], row[4])


def accepted_at(engine: Engine, connection: str) -> datetime | None:
    """Return when a person last moved the pin: what was read before, was somebody else's."""
    newest = pinned(engine, connection)
    return newest.at if newest and newest.by is not None else None


def pin(
    engine: Engine, connection: str, identity: Identity, now: datetime, by: str | None = None
) -> None:
    """Add a pin; it is the one that counts from now on."""
    values = asdict(identity) | {"connection": connection, "pinned_at": now, "pinned_by": by}
    with engine.begin() as ledger:
        ledger.execute(insert(IDENTITIES).values(values))


def settle(engine: Engine, connection: str, identity: Identity, now: datetime) -> Pinned:
    """Return whom a connection lands for: this identity, where no page of it ever landed.

    Of two processes that land first, one decides.
    """
    nothing_landed = ~exists().where(PAGES.c.scan == SCANS.c.scan, SCANS.c.connection == connection)
    newest = (
        select(IDENTITIES.c.digest)
        .where(IDENTITIES.c.connection == connection)
        .order_by(IDENTITIES.c.number.desc())
        .limit(1)
        .scalar_subquery()
    )
    other = nothing_landed & newest.is_distinct_from(identity.digest)
    values = asdict(identity) | {"connection": connection, "pinned_at": now}
    columns = [IDENTITIES.c[name] for name in values]
    row = select(*(literal(values[each.name], each.type) for each in columns)).where(other)
    with engine.begin() as ledger:
        ledger.execute(insert(IDENTITIES).from_select(columns, row))
    found = pinned(engine, connection)
    return Pinned(identity, now, None) if found is None else found
