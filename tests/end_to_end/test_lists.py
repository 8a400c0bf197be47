"""Every list is a stream: those that settings switch on are read, landed and published too."""

import json

import duckdb
import pytest

from pipelines import run
from pipelines.cli.sandbox import Service
from tests.end_to_end.conftest import Point

PARTNER = {"plans": {"path": "/v2/plans"}, "organizations": {"path": "/v2/organizations"}}


def test_lists_of_the_settings_are_read_and_published(
    point: Point, unlimited: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARTNER_SYNC_STREAMS", json.dumps(PARTNER))
    settings = point(unlimited)
    with run.open(settings) as session:
        outcome = run.sync(session, run.orders(session))

    assert outcome.exit_code == 0
    rows = {each.stream: each.fold.rows for each in outcome.streams if each.fold}
    assert set(rows) == {"billing", "organizations", "partners", "plans", "usage"}
    with duckdb.connect(settings.place.link, read_only=True) as reader:
        for stream in PARTNER:
            found = reader.execute(f"SELECT count(*) FROM current.{stream}").fetchone()
            assert found == (rows[stream],) != (0,)
        keys = reader.execute("SELECT count(DISTINCT plan_id) = count(*) FROM current.plans")
        assert keys.fetchone() == (True,)
