"""Everything in the published file says what it is: nothing of ours without a COMMENT."""

from datetime import timedelta

import duckdb

from pipelines.clock import SYSTEM
from pipelines.state import runs
from pipelines.state.runs import Call
from pipelines.warehouse import comments
from pipelines.warehouse.publish import Edition, publish
from tests.warehouse.conftest import NOON, Warehouse
from tests.warehouse.kept import night

CALL = Call("things", "GET", "/v2/things", "limit=5", NOON, 0.25, 0.125, 200, 4, "r-1", None)
RECORDS = '[{"id": 1, "events": [{"at": "2026-01-01T00:00:00Z"}]}, {"id": 2, "amount": NaN}]'


def test_nothing_lacks_a_comment(warehouse: Warehouse) -> None:
    night(warehouse, RECORDS, '[{"id": 3}]')
    publish(warehouse.work, warehouse.ledger, Edition("run", 3), SYSTEM)

    with duckdb.connect(warehouse.home.link, read_only=True) as reader:
        bare = list(comments.lacking(reader))
        texts = reader.execute("SELECT comment FROM duckdb_columns() WHERE column_name = '_page'")
        assert "SHA-256 of the archived page" in str(texts.fetchall())
    assert bare == []


def test_what_is_commented_already_keeps_its_text(warehouse: Warehouse) -> None:
    night(warehouse, '[{"id": 1}]')
    warehouse.query("COMMENT ON TABLE current.things IS 'the service''s own words'")
    publish(warehouse.work, warehouse.ledger, Edition("run", 3), SYSTEM)
    found = "SELECT comment FROM duckdb_tables() WHERE schema_name = 'current'"
    assert warehouse.query(found) == [("the service's own words",)]


def test_runs_and_requests_are_told_once(warehouse: Warehouse) -> None:
    for number in range(3):
        runs.begin(warehouse.ledger, f"run-{number}", "default", NOON.date(), NOON)
        runs.record(warehouse.ledger, f"run-{number}", CALL)
        night(warehouse, f'[{{"id": {number}}}]', number=number)
        publish(warehouse.work, warehouse.ledger, Edition("run", 3), SYSTEM)

    with duckdb.connect(warehouse.home.link, read_only=True) as reader:
        told = reader.execute(
            "SELECT number, run, stream, path, status, waited_ms, took_ms, error FROM meta.requests"
        ).fetchall()
        ran = reader.execute("SELECT run, requests, refused, waited_ms, outcome FROM meta.runs")
        assert ran.fetchall() == [(f"run-{each}", 1, 0, 250, None) for each in range(3)]
    assert told == [
        (each + 1, f"run-{each}", "things", "/v2/things", 200, 250, 125, None) for each in range(3)
    ]


def test_a_run_that_ended_since_and_one_that_was_not_known_are_told(warehouse: Warehouse) -> None:
    for number, days in enumerate((0, 0, 30)):  # the last one by a clock that was set back
        begun = NOON - timedelta(days=days)
        runs.begin(warehouse.ledger, f"run-{number}", "default", NOON.date(), begun)
        runs.end(warehouse.ledger, f"run-{number - 1}", "published", NOON)
        night(warehouse, f'[{{"id": {number}}}]', number=number)
        publish(warehouse.work, warehouse.ledger, Edition("run", 3), SYSTEM)

    with duckdb.connect(warehouse.home.link, read_only=True) as reader:
        ran = reader.execute("SELECT run, outcome FROM meta.runs ORDER BY run").fetchall()
    assert ran == [("run-0", "published"), ("run-1", "published"), ("run-2", None)]
