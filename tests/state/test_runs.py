"""Runs and their requests: recorded one by one, summed up by stream."""

from dataclasses import asdict, replace

from sqlalchemy import Engine, select

from pipelines.state import runs
from pipelines.state.runs import Call, Effort
from pipelines.state.tables import REQUESTS, RUNS
from tests.virtual import EPOCH

CALL = Call(
    stream="usage",
    method="GET",
    path="/v2/usage",
    query="limit=500&offset=0",
    sent_at=EPOCH,
    waited=0.25,
    took=0.125,
    status=200,
    remaining=4,
    request_id="r-1",
    error=None,
)


def test_a_run_is_begun_once_and_ended(ledger: Engine) -> None:
    """Each step of a run may begin it: the first counts."""
    later = EPOCH.replace(hour=5)
    for name, moment in (("default", EPOCH), ("other", later)):
        runs.begin(ledger, "run-1", name, EPOCH.date(), moment)
    runs.begin(ledger, "run-2", "default", EPOCH.date(), later)
    runs.end(ledger, "run-1", "partial", later)
    with ledger.connect() as connection:
        rows = connection.execute(select(RUNS).order_by(RUNS.c.run)).all()
    assert [tuple(row) for row in rows] == [
        ("run-1", "default", EPOCH.date(), EPOCH, later, "partial"),
        ("run-2", "default", EPOCH.date(), later, None, None),
    ]


def test_a_request_is_kept_whole(ledger: Engine) -> None:
    failed = replace(CALL, status=None, remaining=None, request_id=None, error="ReadTimeout")
    for call in (CALL, failed):
        runs.record(ledger, "run-1", call)
    columns = [column for column in REQUESTS.c if column.name != "number"]
    with ledger.connect() as connection:
        rows = connection.execute(select(*columns).order_by(REQUESTS.c.number)).mappings().all()
    assert [dict(row) for row in rows] == [
        asdict(call) | {"run": "run-1"} for call in (CALL, failed)
    ]


def test_the_effort_of_a_run_by_stream(ledger: Engine) -> None:
    failed = replace(CALL, status=None, error="ConnectError", waited=2.0)
    for call in (
        CALL,
        replace(CALL, status=429, waited=1.5),
        replace(CALL, status=429, waited=0.0),
        failed,
        replace(CALL, stream="billing", waited=0.0),
        replace(CALL, stream=None, path="/oauth/token"),
    ):
        runs.record(ledger, "run-1", call)
    runs.record(ledger, "run-2", replace(CALL, waited=100.0))
    assert runs.efforts(ledger, "run-1") == {
        "usage": Effort(requests=4, refused=2, waited=3.75),
        "billing": Effort(requests=1, refused=0, waited=0.0),
    }
    assert runs.efforts(ledger, "none") == {}


def test_the_latest_runs_with_what_they_cost(ledger: Engine) -> None:
    for hour in range(4):
        begun = EPOCH.replace(hour=hour)
        runs.begin(ledger, f"run-{hour}", "default", EPOCH.date(), begun)
    for call in (CALL, replace(CALL, stream=None, waited=0.0), replace(CALL, status=429)):
        runs.record(ledger, "run-2", call)
    runs.end(ledger, "run-2", "published", EPOCH.replace(hour=5))

    newest, second, third = runs.latest(ledger, 3)

    assert [newest.run, second.run, third.run] == ["run-3", "run-2", "run-1"]
    assert (newest.outcome, newest.ended_at) == (None, None)
    assert (newest.requests, newest.refused, newest.waited) == (0, 0, 0.0)
    assert second.ended_at == EPOCH.replace(hour=5)
    assert (second.requests, second.refused, second.waited) == (3, 1, 0.5)
