"""Runs and their requests: what was asked of the service, when, and what came back."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import date, datetime
from typing import Any

from sqlalchemy import Engine, Select, bindparam, case, func, insert, select, text, update

from pipelines.state import conflict
from pipelines.state.tables import REQUESTS, RUNS


@dataclass(frozen=True)
class Call:
    """One request as it went over the wire; `waited` and `took` in seconds.

    `stream` is None for calls that belong to none, `status` where no answer came.
    """

    stream: str | None
    method: str
    path: str
    query: str
    sent_at: datetime
    waited: float
    took: float
    status: int | None
    remaining: int | None
    request_id: str | None
    error: str | None


@dataclass(frozen=True)
class Effort:
    """What one stream of one run cost."""

    requests: int = 0
    refused: int = 0
    waited: float = 0.0


@dataclass(frozen=True)
class Run:
    """One run and what it cost; `outcome` and `ended_at` are None while it runs or if killed."""

    run: str
    connection: str
    day: date
    begun_at: datetime
    ended_at: datetime | None
    outcome: str | None
    requests: int
    refused: int
    waited: float


def begin(engine: Engine, run: str, connection: str, day: date, now: datetime) -> None:
    """Record that a run begins; each step of one run may say so."""
    values = {"run": run, "connection": connection, "day": day, "begun_at": now}
    with engine.begin() as ledger:
        ledger.execute(conflict.insert(engine, RUNS).values(values).on_conflict_do_nothing())


def began(engine: Engine, run: str, now: datetime) -> datetime:
    """Return when a run began: now where it has not said so yet."""
    query = select(RUNS.c.begun_at).where(RUNS.c.run == run)
    with engine.connect() as ledger:
        return ledger.execute(query).scalar() or now


def end(engine: Engine, run: str, outcome: str, now: datetime) -> None:
    """Record how a run ended."""
    with engine.begin() as ledger:
        ledger.execute(update(RUNS).where(RUNS.c.run == run).values(outcome=outcome, ended_at=now))


def fail(engine: Engine, ended: Mapping[str, datetime]) -> None:
    """Record that runs failed, each at its end, as their caller knows.

    It did not end, or not all of it is there; what is recorded already stays.
    """
    if not ended:
        return
    own = update(RUNS).where(RUNS.c.run == bindparam("failed"))
    partial = own.where(RUNS.c.outcome == "published").values(outcome="partial")
    failed = own.where(RUNS.c.outcome.is_(None)).values(outcome="failed", ended_at=bindparam("at"))
    with engine.begin() as ledger:
        ledger.execute(partial, [{"failed": run} for run in ended])
        ledger.execute(failed, [{"failed": run, "at": at} for run, at in ended.items()])


def last_end(engine: Engine, connection: str) -> datetime | None:
    """Return when a run of a connection last came to its end, None where none did."""
    query = select(RUNS.c.ended_at).where(RUNS.c.connection == connection)
    latest = query.where(RUNS.c.ended_at.is_not(None)).order_by(RUNS.c.ended_at.desc()).limit(1)
    with engine.connect() as ledger:
        ended: datetime | None = ledger.execute(latest).scalar()
    return ended


def record(engine: Engine, run: str, call: Call) -> None:
    """Keep one call of a run."""
    with engine.begin() as ledger:
        ledger.execute(insert(REQUESTS), asdict(call) | {"run": run})


_JUDGED = ("published", "partial", "failed")  # not what a person stopped
_COST = (
    func.count(REQUESTS.c.number),
    func.count(case((REQUESTS.c.status == 429, 1))),  # noqa: PLR2004
    func.coalesce(func.sum(REQUESTS.c.waited), 0.0),
)


def latest(engine: Engine, count: int) -> tuple[Run, ...]:
    """Return the newest runs, the newest first."""
    order = RUNS.c.begun_at.desc(), RUNS.c.run
    newest = select(RUNS.c.run).order_by(*order).limit(count)  # first: a year has many requests
    with engine.connect() as ledger:
        found = ledger.execute(_runs().where(RUNS.c.run.in_(newest)).order_by(*order))
        return tuple(Run(*row) for row in found)


def last_judged(engine: Engine, connection: str) -> tuple[str, datetime, str] | None:
    """Return name, begin and outcome of the last run of a connection that came to its own end."""
    query = (
        select(RUNS.c.run, RUNS.c.begun_at, RUNS.c.outcome)
        .where(RUNS.c.connection == connection, RUNS.c.outcome.in_(_JUDGED))
        .order_by(RUNS.c.ended_at.desc())
        .limit(1)
    )
    with engine.connect() as ledger:
        row = ledger.execute(query).first()
    return None if row is None else (row.run, row.begun_at, row.outcome)


def since(engine: Engine, moment: datetime) -> tuple[Run, ...]:
    """Return the runs that began at or after a moment, the oldest first."""
    query = _runs().where(RUNS.c.begun_at >= moment).order_by(RUNS.c.begun_at, RUNS.c.run)
    with engine.connect() as ledger:
        return tuple(Run(*row) for row in ledger.execute(query))


def others(engine: Engine, known: Collection[str], at_once: int) -> Iterator[list[Run]]:
    """Yield all runs that are not known, in the order in which they began, some at once."""
    order = RUNS.c.begun_at, RUNS.c.run
    with engine.connect() as ledger:
        every = ledger.execute(select(RUNS.c.run).order_by(*order)).scalars()
        new = [run for run in every if run not in known]
        for begin in range(0, len(new), at_once):
            some = RUNS.c.run.in_(new[begin : begin + at_once])
            yield [Run(*row) for row in ledger.execute(_runs().where(some).order_by(*order))]


def calls(engine: Engine, after: int, at_once: int) -> Iterator[list[tuple[int, str, Call]]]:
    """Yield number, run and call of every request with a greater number, some at once."""
    columns = [REQUESTS.c[each.name] for each in fields(Call)]
    query = select(REQUESTS.c.number, REQUESTS.c.run, *columns).where(REQUESTS.c.number > after)
    query = query.where(REQUESTS.c.number <= _settled(engine)).order_by(REQUESTS.c.number)
    with engine.connect() as ledger:
        rows = ledger.execute(query.execution_options(yield_per=at_once))
        for some in rows.partitions():
            yield [(number, run, Call(*call)) for number, run, *call in some]


def _settled(engine: Engine) -> int:
    """Return the number up to which every request is recorded; a lesser one never comes later.

    PostgreSQL gives numbers before it commits, so those that are being recorded are waited for.
    """
    with engine.begin() as ledger:
        if ledger.dialect.name == "postgresql":
            ledger.execute(text("LOCK TABLE requests IN SHARE MODE"))
        return ledger.execute(select(func.max(REQUESTS.c.number))).scalar() or 0


def _runs() -> Select[Any]:
    columns = [RUNS.c[name] for name in ("run", "connection", "day", "begun_at", "ended_at")]
    columns.append(RUNS.c.outcome)
    return (
        select(*columns, *_COST)
        .outerjoin(REQUESTS, REQUESTS.c.run == RUNS.c.run)
        .group_by(*columns)
    )


def last_by_connection(engine: Engine) -> dict[str, tuple[datetime, str | None]]:
    """Return when the last run of each connection began, and how it ended."""
    query = select(RUNS.c.connection, RUNS.c.begun_at, RUNS.c.outcome).order_by(RUNS.c.begun_at)
    with engine.connect() as ledger:
        return {connection: (begun, how) for connection, begun, how in ledger.execute(query)}


def efforts(engine: Engine, run: str) -> dict[str, Effort]:
    """Return what each stream of a run cost: requests, 429s among them, seconds waited."""
    query = (
        select(REQUESTS.c.stream, *_COST)
        .where(REQUESTS.c.run == run, REQUESTS.c.stream.is_not(None))
        .group_by(REQUESTS.c.stream)
    )
    with engine.connect() as ledger:
        return {stream: Effort(*figures) for stream, *figures in ledger.execute(query)}
