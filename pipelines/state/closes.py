"""Months that were signed off, in the ledger: by whom, when, on which frozen copy; rows only added.

Also what changed in them since: each change is posted once, to the month that was open then. Not
here: the frozen copy (warehouse.frozen), what has changed (warehouse.corrections).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from hashlib import sha256

from sqlalchemy import Engine, insert, select

from pipelines.state.judgements import CLOSES, CORRECTIONS


class Kind(StrEnum):
    """What a person can do with a month."""

    CLOSE = "close"
    REOPEN = "reopen"


@dataclass(frozen=True)
class Close:
    """A month that was closed or opened again; `number` is its frozen copy.

    `sha256` is of the copy's manifest, `records` what is in it. Who reopens stands as preparer.
    """

    month: date
    number: int
    act: Kind
    preparer: str
    reviewer: str
    at: datetime
    note: str
    sha256: str
    records: int


@dataclass(frozen=True)
class Posting:
    """A change of a closed month since: `difference` is posted to another month.

    `amount_then` is what was signed off and posted until then, `amount_now` what it is now.
    """

    month: date
    number: int
    connection: str | None
    side: str
    id: str | None
    partner: str | None
    currency: str | None
    amount_then: Decimal | None
    amount_now: Decimal | None
    difference: Decimal | None
    why: str
    posted_to: date
    seen_at: datetime

    @property
    def about(self) -> tuple[str | None, ...]:
        """Which record it is about."""
        return self.side, self.connection, self.id, self.partner, self.currency


def add(engine: Engine, close: Close) -> None:
    """Record that a month was closed or opened again."""
    with engine.begin() as ledger:
        ledger.execute(insert(CLOSES).values(vars(close)))


def every(engine: Engine) -> list[Close]:
    """Return all that was closed and opened again, the oldest first."""
    query = select(*[CLOSES.c[each.name] for each in fields(Close)]).order_by(CLOSES.c.sequence)
    with engine.connect() as ledger:
        return [
            Close(month, number, Kind(kind), *rest)
            for month, number, kind, *rest in ledger.execute(query)
        ]


def closed(engine: Engine) -> Mapping[date, Close]:
    """Return the months that are closed now, each by its last close."""
    last = {each.month: each for each in every(engine)}
    return {month: last[month] for month in sorted(last) if last[month].act is Kind.CLOSE}


def post(engine: Engine, postings: Sequence[Posting]) -> None:
    """Record changes of closed months."""
    if postings:
        with engine.begin() as ledger:
            ledger.execute(insert(CORRECTIONS), [vars(each) for each in postings])


def posted(engine: Engine, close: Close) -> list[Posting]:
    """Return what changed of a frozen copy, in the order in which it was found."""
    query = (
        select(*[CORRECTIONS.c[each.name] for each in fields(Posting)])
        .where(CORRECTIONS.c.month == close.month, CORRECTIONS.c.number == close.number)
        .order_by(CORRECTIONS.c.sequence)
    )
    with engine.connect() as ledger:
        return [Posting(*row) for row in ledger.execute(query)]


def digest(engine: Engine) -> str:
    """Return what tells whether a month was closed or opened again since."""
    return sha256(repr(every(engine)).encode()).hexdigest()
