"""Closing a month: who may, when, on which data; the frozen copy; opening it again on purpose.

The copy is made of the version that analysts open, so that it says what they saw. Not here: how it
is written (warehouse.frozen), what has changed since (warehouse.corrections).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import duckdb

from pipelines.errors import ConfigurationError
from pipelines.run import reconciling
from pipelines.run.session import Session
from pipelines.settings import mapping
from pipelines.settings.mapping import Mapping as Given
from pipelines.state import closes, versions
from pipelines.state.closes import Close, Kind
from pipelines.state.proof import Grade
from pipelines.warehouse import database, matching, publish, published
from pipelines.warehouse.editions import editions
from pipelines.warehouse.frozen import Copies, Head

LONGEST = timedelta(days=31)
PROVEN = [grade.value for grade in Grade if grade.counts_missing]
READINGS = """
SELECT f.connection, f.stream, f.grade, f.ended_at, p.doubt
FROM meta.freshness f LEFT JOIN meta.proofs p
  ON (p.connection, p.stream, p.manifest) = (f.connection, f.stream, f.manifest) AND p.in_force
WHERE list_contains($streams, f.stream) ORDER BY ALL
"""
OPEN = """
SELECT count(*) FROM reconciliation.breaks WHERE month = $month AND state <> 'RESOLVED'
"""
SAID = "SELECT month, number, state, said FROM reconciliation.closes"


@dataclass(frozen=True)
class Signing:
    """What people say when they close a month, or open it again: then `preparer` does."""

    month: date
    preparer: str
    reviewer: str = ""
    note: str = ""


@dataclass(frozen=True)
class Closed:
    """A month that was closed just now, and the breaks of it that stand."""

    close: Close
    breaks: int

    @property
    def words(self) -> str:
        """The same for people."""
        at = f"archive/closes/{self.close.month:%Y-%m}/{self.close.number:03}"
        many = "breaks of it stand" if self.breaks > 1 else "break of it stands"
        stand = f"; {self.breaks:,} {many}" if self.breaks else ""
        return (
            f"{self.close.month:%Y-%m} is closed: {self.close.records:,} records in {at}, "
            f"manifest {self.close.sha256}{stand}"
        )


@dataclass(frozen=True)
class Listed:
    """A close, and how it stands in the published tables; empty where they do not have it yet."""

    close: Close
    state: str
    said: str


def close_month(session: Session, signing: Signing) -> Closed:
    """Freeze a month as it is published, and record who signed it off.

    Raises ConfigurationError for what forbids it; nothing is written then.
    """
    given = mapping.load(session.settings.place.config)
    if not given.digest:
        raise ConfigurationError(
            f"there is no mapping.toml in {session.settings.place.config}: nothing says which "
            "records are of that month. `partner-sync map` proposes one."
        )
    _signed(signing)
    ends = _end(signing.month, given.mapping)
    _refuse_early(signing.month, ends, session.clock.now())
    _refuse_closed(session, signing.month)
    opened = versions.opened(session.ledger)
    if opened is None:
        raise ConfigurationError("nothing was published yet: there is nothing to close")
    with session.work.publishing(), editions(session.work).reading(opened) as reader:
        _refuse_stale(session, reader)
        _refuse_unproven(reader, given.mapping, ends)
        return _frozen(session, reader, signing, given.mapping)


def reopen_month(session: Session, signing: Signing) -> Close:
    """Record that a month is open again; its frozen copy stays. Raises ConfigurationError."""
    standing = closes.closed(session.ledger).get(signing.month)
    if standing is None:
        raise ConfigurationError(f"{signing.month:%Y-%m} is not closed: there is nothing to reopen")
    if not signing.note.strip() or not signing.preparer.strip():
        raise ConfigurationError("say who opens the month again and why: --by and --note")
    who = (signing.preparer, "", session.clock.now(), signing.note)
    what = (standing.sha256, standing.records)
    act = Close(signing.month, standing.number, Kind.REOPEN, *who, *what)
    closes.add(session.ledger, act)
    return act


def closed_months(session: Session) -> list[Listed]:
    """Return every close, the oldest first, and what the published tables say of it."""
    told = _published(session)
    standing = closes.closed(session.ledger)
    found = []
    for each in closes.every(session.ledger):
        if each.act is Kind.CLOSE:
            state, said = told.get((each.month, each.number), ("", ""))
            if standing.get(each.month) != each:
                state = "REOPENED"
            found.append(Listed(each, state or "CLOSED", said))
    return found


def _published(session: Session) -> Mapping[tuple[date, int], tuple[str, str]]:
    rows = published.rows(session.settings.place, ("reconciliation", "closes"), SAID)
    return {(month, number): (state, said) for month, number, state, said in rows}


def _frozen(
    session: Session, reader: duckdb.DuckDBPyConnection, signing: Signing, given: Given
) -> Closed:
    as_of = reader.execute("SELECT max(ended_at) FROM meta.freshness").fetchall()
    matching.prepare(reader, given, as_of[0][0])
    records = _count(reader, "used", signing.month) + _count(reader, "billed", signing.month)
    if not records:
        raise ConfigurationError(f"there is no record of {signing.month:%Y-%m}: nothing to close")
    copies = Copies(session.archive)
    every = {each.number for each in closes.every(session.ledger) if each.month == signing.month}
    copies.sweep(signing.month, every)
    text = (session.settings.place.config / mapping.FILE).read_bytes()
    who = (signing.preparer.strip(), signing.reviewer.strip())
    head = Head(signing.month, *who, session.clock.now(), signing.note, text)
    close = copies.write(reader, head, max(every, default=0) + 1)
    closes.add(session.ledger, close)
    return Closed(close, database.scalar(reader, OPEN, {"month": signing.month}))


def _count(reader: duckdb.DuckDBPyConnection, table: str, month: date) -> int:
    query = f"SELECT count(*) FROM {table} WHERE month = $month"
    return database.scalar(reader, query, {"month": month})


def _signed(signing: Signing) -> None:
    preparer, reviewer = signing.preparer.strip(), signing.reviewer.strip()
    if not preparer or not reviewer:
        raise ConfigurationError("a month is signed off by two: --preparer and --reviewer")
    if preparer.casefold() == reviewer.casefold():
        raise ConfigurationError(
            f"{preparer} cannot review what {reviewer} prepared: a month is signed off by two"
        )


def _end(month: date, given: Given) -> datetime:
    """Return when a month and its grace are over, in the time zone of the mapping."""
    following = (month + LONGEST).replace(day=1)
    day = datetime(following.year, following.month, 1, tzinfo=ZoneInfo(given.time_zone))
    return day + timedelta(days=given.grace_days)


def _refuse_early(month: date, ends: datetime, now: datetime) -> None:
    if now < ends:
        raise ConfigurationError(
            f"{month:%Y-%m} is not over before {ends:%Y-%m-%d %H:%M %Z}, its grace included "
            "(grace_days in mapping.toml): until then its figures are tentative"
        )


def _refuse_closed(session: Session, month: date) -> None:
    if standing := closes.closed(session.ledger).get(month):
        raise ConfigurationError(
            f"{month:%Y-%m} was closed by {standing.preparer} and {standing.reviewer} at "
            f"{standing.at:%Y-%m-%d %H:%M} UTC. What changed since is in reconciliation."
            f"corrections. To close it anew: `partner-sync close {month:%Y-%m} --reopen --by … "
            "--note …`, then close it again."
        )


def _refuse_stale(session: Session, reader: duckdb.DuckDBPyConnection) -> None:
    """Refuse a version that lacks what people said since, or stands for a newer one."""
    if not database.exists(reader, "reconciliation", "breaks"):
        raise ConfigurationError(
            "what analysts open has no schema reconciliation (setting reconcile): there is nothing "
            "to sign off"
        )
    if back := versions.rolled_back(session.ledger):
        raise ConfigurationError(f"{back.words}; a month is closed on the newest version")
    opened = versions.opened(session.ledger)
    if opened is None or opened.made_of.get(publish.ADDED) != reconciling.digest(session):
        raise ConfigurationError(
            "the published tables do not have what was mapped, said of breaks or closed since: run "
            "`partner-sync publish`, look at them, and close then"
        )


def _refuse_unproven(reader: duckdb.DuckDBPyConnection, given: Given, ends: datetime) -> None:
    streams = [given.usage.stream, given.billing.stream]
    streams += [given.partners.stream] if given.partners.id else []
    found = reader.execute(READINGS, {"streams": streams}).fetchall()
    lacking = sorted(set(streams) - {stream for _connection, stream, *_rest in found})
    faults = [*(f"{each} was never read" for each in lacking), *_doubts(found, ends)]
    if faults:
        raise ConfigurationError(
            f"not proven: {'; '.join(faults)}. A month can be closed only if its lists were "
            "proven complete after its end: run `partner-sync sync`."
        )


def _doubts(found: Sequence[Sequence[Any]], ends: datetime) -> Iterator[str]:
    for connection, stream, grade, ended, doubt in found:
        if doubt or grade not in PROVEN:
            yield f"{stream} of {connection}: {doubt or grade.replace('_', ' ')}"
        elif ended < ends:
            yield f"{stream} of {connection} was read last at {ended:%Y-%m-%d %H:%M} UTC"
