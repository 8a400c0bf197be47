"""The ledger of breaks: what rules found, since when, and what people did with it.

A sighting is never deleted: what is no longer found is resolved by evidence. What people do is only
ever added, and the state of a break follows from both. Not here: what is a break (reconciliation).
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from hashlib import sha256
from itertools import groupby

from sqlalchemy import Connection, Engine, bindparam, case, insert, select, update
from sqlalchemy.dialects.sqlite import Insert

from pipelines.state import conflict
from pipelines.state.judgements import BREAK_ACTS, BREAKS
from pipelines.state.types import UtcTime

EVIDENCE = "evidence"  # who resolved a break that is no longer found


class State(StrEnum):
    """How a break stands."""

    OPEN = "OPEN"
    ASSIGNED = "ASSIGNED"
    PENDING = "PENDING"
    RESOLVED = "RESOLVED"


class Kind(StrEnum):
    """What a person can do with a break."""

    ASSIGN = "assign"
    PEND = "pend"  # it waits for somebody else: a correction, an answer
    RESOLVE = "resolve"
    REOPEN = "reopen"


class Reason(StrEnum):
    """Why a person resolves a break that is still found."""

    ACCEPTED = "accepted"
    WRITTEN_OFF = "written-off"
    CORRECTED = "corrected"
    DUPLICATE = "duplicate"
    OTHER = "other"


@dataclass(frozen=True)
class Finding:
    """A break as a rule found it last; `difference` is billed less used, None where no amount is.

    `month` is its first day, `rows` how many records make the break.
    """

    break_id: str
    rule: str
    connection: str
    partner: str | None
    month: date | None
    currency: str | None
    subject: str
    cause: str
    used_amount: Decimal | None
    billed_amount: Decimal | None
    difference: Decimal | None
    rows: int


@dataclass(frozen=True)
class Sighting:
    """A break in the ledger: as of which data it was first and last found, and when it was not.

    `returns` counts how often it was found again after it was gone.
    """

    finding: Finding
    first_seen: datetime
    last_seen: datetime
    gone_at: datetime | None
    returns: int


@dataclass(frozen=True)
class Act:
    """What a person did; the last three say how the break was at that time."""

    break_id: str
    act: Kind
    by: str
    at: datetime
    owner: str = ""
    reason: str = ""
    note: str = ""
    amount: Decimal | None = None
    rows: int = 0
    returns: int = 0

    @property
    def words(self) -> str:
        """The note, and before it the reason where there is one."""
        return f"{self.reason}: {self.note}" if self.reason else self.note


@dataclass(frozen=True)
class Standing:
    """A break and how it stands; `resolved_by` is empty, 'evidence' or a person."""

    break_id: str
    finding: Finding
    first_seen: datetime
    last_seen: datetime
    gone_at: datetime | None
    state: State
    owner: str
    note: str
    resolved_by: str


def sight(
    engine: Engine, findings: Sequence[Finding], moment: datetime, evaluated: Collection[str]
) -> None:
    """Record what was found as of a moment of the data.

    A break of an evaluated rule that is no longer found is gone from then on; one that is found
    again stands again, first seen when it was. A rule that was not evaluated says nothing.
    """
    found = {each.break_id for each in findings}
    seen = {"first_seen": moment, "last_seen": moment, "gone_at": None, "returns": 0}
    rows = [vars(each) | seen for each in findings]
    with engine.begin() as ledger:
        gone = [each for each in _unresolved(ledger, evaluated) if each not in found]
        if rows:
            ledger.execute(_upsert(ledger), rows)
        if gone:
            ledger.execute(_GONE, [{"which": each, "moment": moment} for each in gone])


def as_it_is(done: Act, sighting: Sighting) -> Act:
    """Return an act with how the break is now."""
    found = sighting.finding
    return replace(done, amount=found.difference, rows=found.rows, returns=sighting.returns)


def act(engine: Engine, done: Act) -> None:
    """Add what a person did."""
    with engine.begin() as ledger:
        ledger.execute(insert(BREAK_ACTS).values(vars(done)))


def sighted(engine: Engine, break_id: str) -> Sighting | None:
    """Return a break as it was last found, None where no rule ever found it."""
    with engine.connect() as ledger:
        found = [*_sightings(ledger, break_id)]
    return found[0] if found else None


def acts(engine: Engine, break_id: str | None = None) -> list[Act]:
    """Return what people did with a break, or with all of them one after the other, in order."""
    with engine.connect() as ledger:
        return _acts(ledger, break_id)


def standing(engine: Engine, break_id: str | None = None) -> list[Standing]:
    """Return how each break that was ever found stands, or only one."""
    with engine.connect() as ledger:
        sightings, done = [*_sightings(ledger, break_id)], _acts(ledger, break_id)
    trails = {which: [*trail] for which, trail in groupby(done, lambda each: each.break_id)}
    return [judged(each, trails.get(each.finding.break_id, [])) for each in sightings]


def judged(sighting: Sighting, trail: Sequence[Act]) -> Standing:
    """Say how a break stands after what people did with it.

    What was decided holds until the break was gone and came back; a resolution by hand only while
    the difference is as it was then.
    """
    owner = next((each.owner for each in reversed(trail) if each.owner), "")
    last = trail[-1] if trail else None
    state = State.ASSIGNED if owner else State.OPEN
    by = ""
    if sighting.gone_at is not None:
        state, by = State.RESOLVED, EVIDENCE
    elif last and last.returns == sighting.returns:
        if last.act is Kind.PEND:
            state = State.PENDING
        elif last.act is Kind.RESOLVE and _as_then(sighting.finding, last):
            state, by = State.RESOLVED, last.by
    seen = (sighting.first_seen, sighting.last_seen, sighting.gone_at)
    note = last.words if last else ""
    return Standing(sighting.finding.break_id, sighting.finding, *seen, state, owner, note, by)


def digest(engine: Engine) -> str:
    """Return what tells whether people did something since."""
    with engine.connect() as ledger:
        rows = ledger.execute(select(BREAK_ACTS).order_by(BREAK_ACTS.c.number)).all()
    return sha256(repr([tuple(row) for row in rows]).encode()).hexdigest()


def _as_then(finding: Finding, done: Act) -> bool:
    """Tell whether a break is what it was; without amounts its rows are counted."""
    if finding.difference is None or done.amount is None:
        return finding.difference is done.amount and finding.rows == done.rows
    return finding.difference == done.amount


def _upsert(ledger: Connection) -> Insert:
    new = conflict.insert(ledger, BREAKS)
    held, found = BREAKS.c.last_seen, new.excluded.last_seen
    return new.on_conflict_do_update(
        BREAKS.primary_key,
        set_={each.name: new.excluded[each.name] for each in _FOUND[1:]}
        | {
            "last_seen": case((held > found, held), else_=found),
            "returns": BREAKS.c.returns + case((BREAKS.c.gone_at.is_(None), 0), else_=1),
            "gone_at": None,
        },
    )


def _unresolved(ledger: Connection, evaluated: Collection[str]) -> Iterator[str]:
    query = select(BREAKS.c.break_id, BREAKS.c.rule).where(BREAKS.c.gone_at.is_(None))
    for which, rule in ledger.execute(query):
        if rule in evaluated:
            yield which


def _sightings(ledger: Connection, break_id: str | None) -> Iterator[Sighting]:
    query = select(*_FOUND, *_SEEN).order_by(BREAKS.c.break_id)
    if break_id is not None:
        query = query.where(BREAKS.c.break_id == break_id)
    for row in ledger.execute(query):
        yield Sighting(Finding(*row[: len(_FOUND)]), *row[len(_FOUND) :])


def _acts(ledger: Connection, break_id: str | None) -> list[Act]:
    query = select(*_DONE).order_by(BREAK_ACTS.c.break_id, BREAK_ACTS.c.number)
    if break_id is not None:
        query = query.where(BREAK_ACTS.c.break_id == break_id)
    return [Act(which, Kind(kind), *rest) for which, kind, *rest in ledger.execute(query)]


_FOUND = [BREAKS.c[each.name] for each in fields(Finding)]
_SEEN = [BREAKS.c[each.name] for each in fields(Sighting)[1:]]
_DONE = [BREAK_ACTS.c[each.name] for each in fields(Act)]
_GONE = (
    update(BREAKS)
    .where(BREAKS.c.break_id == bindparam("which"))
    .values(gone_at=bindparam("moment", type_=UtcTime))
)
