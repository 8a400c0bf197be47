"""Runs and their requests: what was asked of the service, when, and what came back."""

from dataclasses import asdict, dataclass
from datetime import date, datetime

from sqlalchemy import Engine, case, func, select, update
from sqlalchemy.dialects.sqlite import insert

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


def begin(engine: Engine, run: str, connection: str, day: date, now: datetime) -> None:
    """Record that a run begins; each step of one run may say so."""
    values = {"run": run, "connection": connection, "day": day, "begun_at": now}
    with engine.begin() as ledger:
        ledger.execute(insert(RUNS).values(values).on_conflict_do_nothing())


def begun_at(engine: Engine, run: str) -> datetime:
    """Return when a run first said that it begins."""
    query = select(RUNS.c.begun_at).where(RUNS.c.run == run)
    with engine.connect() as ledger:
        begun: datetime = ledger.execute(query).scalar_one()
    return begun


def end(engine: Engine, run: str, outcome: str, now: datetime) -> None:
    """Record how a run ended."""
    with engine.begin() as ledger:
        ledger.execute(update(RUNS).where(RUNS.c.run == run).values(outcome=outcome, ended_at=now))


def record(engine: Engine, run: str, call: Call) -> None:
    """Keep one call of a run."""
    with engine.begin() as ledger:
        ledger.execute(insert(REQUESTS).values(asdict(call) | {"run": run}))


def efforts(engine: Engine, run: str) -> dict[str, Effort]:
    """Return what each stream of a run cost: requests, 429s among them, seconds waited."""
    query = (
        select(
            REQUESTS.c.stream,
            func.count(),
            func.sum(case((REQUESTS.c.status == 429, 1), else_=0)),  # noqa: PLR2004
            func.sum(REQUESTS.c.waited),
        )
        .where(REQUESTS.c.run == run, REQUESTS.c.stream.is_not(None))
        .group_by(REQUESTS.c.stream)
    )
    with engine.connect() as ledger:
        return {stream: Effort(*figures) for stream, *figures in ledger.execute(query)}
