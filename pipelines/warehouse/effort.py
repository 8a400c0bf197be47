"""What the runs did and cost, for analysts: `meta.runs` and `meta.requests`, from the ledger.

What is new is added, since a year has millions of requests; runs of the last week are written anew,
as they may have ended since. No secret is among them, since the ledger has none.
"""

from dataclasses import asdict
from datetime import timedelta

import duckdb
import pyarrow as pa
from sqlalchemy import Engine

from pipelines.state import runs
from pipelines.state.runs import Call, Run
from pipelines.warehouse.database import append, exists, scalar

AT_ONCE = 20_000  # requests
CHANGES = timedelta(days=7)  # from its beginning on; then a run is over, however it ended
TIME = pa.timestamp("us", tz="UTC")
RUNS = pa.schema(
    [
        ("run", pa.string()),
        ("connection", pa.string()),
        ("day", pa.date32()),
        ("begun_at", TIME),
        ("ended_at", TIME),
        ("outcome", pa.string()),
        ("requests", pa.int64()),
        ("refused", pa.int64()),
        ("waited_ms", pa.int64()),
    ]
)
REQUESTS = pa.schema(
    [
        ("number", pa.int64()),
        ("run", pa.string()),
        ("stream", pa.string()),
        ("method", pa.string()),
        ("path", pa.string()),
        ("query", pa.string()),
        ("sent_at", TIME),
        ("waited_ms", pa.int64()),
        ("took_ms", pa.int64()),
        ("status", pa.int64()),
        ("remaining", pa.int64()),
        ("request_id", pa.string()),
        ("error", pa.string()),
    ]
)


def tell(database: duckdb.DuckDBPyConnection, ledger: Engine) -> None:
    """Write the runs and requests of the ledger that are not in the tables, or may have changed."""
    if not exists(database, "meta", "runs"):
        _create(database, "runs", RUNS)
    [(newest,)] = database.execute("SELECT max(begun_at) FROM meta.runs").fetchall()
    if newest is not None:
        database.execute("DELETE FROM meta.runs WHERE begun_at >= ?", [newest - CHANGES])
    known = {run for (run,) in database.execute("SELECT run FROM meta.runs").fetchall()}
    for some in runs.others(ledger, known, AT_ONCE):
        append(database, "meta.runs", pa.Table.from_pylist([_run(each) for each in some], RUNS))
    if not exists(database, "meta", "requests"):
        _create(database, "requests", REQUESTS)
    after = scalar(database, "SELECT coalesce(max(number), 0) FROM meta.requests")
    for calls in runs.calls(ledger, after, AT_ONCE):
        rows = [_request(*each) for each in calls]
        append(database, "meta.requests", pa.Table.from_pylist(rows, REQUESTS))


def _create(database: duckdb.DuckDBPyConnection, table: str, columns: pa.Schema) -> None:
    empty = database.from_arrow(columns.empty_table())
    kinds = zip(columns.names, empty.types, strict=True)
    wanted = ", ".join(f'"{name}" {kind}' for name, kind in kinds)
    database.execute(f"CREATE TABLE meta.{table} ({wanted})")


def _run(run: Run) -> dict[str, object]:
    return asdict(run) | {"waited_ms": round(1000 * run.waited)}


def _request(number: int, run: str, call: Call) -> dict[str, object]:
    times = {"waited_ms": round(1000 * call.waited), "took_ms": round(1000 * call.took)}
    return asdict(call) | times | {"number": number, "run": run}
