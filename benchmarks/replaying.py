"""What a replay costs: nights of a list with 1 % changed in each, folded again from the archive.

The process is its own for each: nights folded as they come, a replay of all of them, one from a
base snapshot. All three have to be equal, value for value and type for type.
"""

import json
import multiprocessing
import os
import resource
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import duckdb

from benchmarks import archived
from benchmarks.machine import table
from pipelines import run
from pipelines.run import Session
from pipelines.warehouse.database import quoted

ROWS = int(os.environ.get("BENCH_ROWS", "100000"))
NIGHTS = int(os.environ.get("BENCH_NIGHTS", "10"))
EVERY, KEPT = 100, 3  # one row of so many changes; readings kept beside a base snapshot
STREAM = "things"
OWN = ("folded_at",)


@dataclass(frozen=True)
class Cost:
    """Of one process: CPU seconds, megabytes at the peak, and a digest of what it made."""

    cpu: float
    peak: float
    digest: str


def measure() -> str:
    """Fold, replay and replay from a base; return a table."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        with run.open(archived.settings(home, (STREAM,))) as session:
            for number in range(1, NIGHTS + 1):
                archived.night(session, STREAM, number, _records(number))
        steps = {
            "folded, nothing there yet": (_fold, NIGHTS),
            "replayed from the first day": (_replay, NIGHTS),
            f"retained, {KEPT} readings kept": (_retain, NIGHTS - KEPT),
            "replayed from the base snapshot": (_replay, KEPT),
        }
        costs = {name: _cost(home, step) for name, (step, _nights) in steps.items()}
    rows = [
        [
            name,
            nights,
            f"{costs[name].cpu:.1f} s",
            f"{nights * ROWS / costs[name].cpu:,.0f}",
            f"{costs[name].peak:.0f} MB",
        ]
        for name, (_step, nights) in steps.items()
    ]
    columns = ["step", "nights folded", "CPU", "rows a CPU second", "peak"]
    text = f"{ROWS:,} rows, {NIGHTS} nights, 1 % changed each night\n\n{table(columns, rows)}"
    if len({each.digest for each in costs.values()}) != 1:
        raise SystemExit(f"{text}\n\nthe tables are not equal")
    return f"{text}\n\nThe tables were equal after each step."


def _records(number: int) -> Iterator[str]:
    """Yield a night: a row changes in one night of a hundred, and keeps what it says then."""
    for row in range(ROWS):
        changed = max(
            (each for each in range(1, number + 1) if (row + each) % EVERY == 0), default=0
        )
        lines = [{"kind": "peak", "fee": f"{row % 7}.{changed:02}"}] * (row % 3)
        yield json.dumps(
            {"id": f"t-{row:09}", "amount": f"{row % 9973}.{changed:02}", "text": "x" * 60}
            | {"lines": lines}
        )


def _fold(session: Session) -> None:
    (order,) = archived.orders(session, (STREAM,))
    failed = [each for each in run.fold(session, order).values() if isinstance(each, Exception)]
    if failed:
        raise SystemExit(f"not folded: {failed}")


def _replay(session: Session) -> None:
    last = archived.FIRST.date() + timedelta(days=NIGHTS)
    run.replay(session, last - timedelta(days=KEPT - 1), last)


def _retain(session: Session) -> None:
    run.retain(session, KEPT, "bench")


def _cost(home: Path, step: Callable[[Session], None]) -> Cost:
    """Take one step in a process of its own; return what it cost and what there is then."""
    context = multiprocessing.get_context("spawn")
    heard: multiprocessing.Queue[Cost] = context.Queue()
    process = context.Process(target=_step, args=(home, step, heard))
    process.start()
    cost = heard.get()
    process.join()
    return cost


def _step(
    home: Path, step: Callable[[Session], None], heard: "multiprocessing.Queue[Cost]"
) -> None:
    with run.open(archived.settings(home, (STREAM,))) as session:
        before = _seconds()
        step(session)
        took = _seconds() - before
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        with session.work.writing() as writer:
            heard.put(Cost(took, peak, _digest(writer)))


def _seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _digest(database: duckdb.DuckDBPyConnection) -> str:
    """Return one digest of every value and type of the tables of records and their folds."""
    tables = database.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE schema_name <> 'meta' OR "
        "table_name IN ('folds', 'registry') ORDER BY ALL"
    ).fetchall()
    whole = sha256()
    for names in tables:
        columns = database.execute(f"DESCRIBE {quoted(*names)}").fetchall()
        own = ", ".join(quoted(name) for name, *_rest in columns if name not in OWN)
        whole.update(repr([names, [each[:2] for each in columns]]).encode())
        rows = database.execute(f"SELECT {own} FROM {quoted(*names)} ORDER BY ALL")
        while some := rows.fetchmany(10_000):
            whole.update(repr(some).encode())
    return whole.hexdigest()
