"""Tokens that end early: each sync is complete all the same."""

import pytest

from pipelines import run
from pipelines.cli.sandbox import Service
from tests.end_to_end.conftest import Point
from tests.sandbox.running import AUDIENCE, SECRET, started

pytestmark = pytest.mark.trial

SIZES = ("--partners=120", "--usage=5000", "--billing=500")
TRIALS = [
    ("--token-ttl=2", "--rate=5"),
    ("--fault=token-refused::7", "--rate=1000"),
]


@pytest.mark.parametrize("options", TRIALS, ids=str)
def test_a_sync_outlives_its_tokens(point: Point, options: tuple[str, ...]) -> None:
    with started(*options, *SIZES) as running:
        environment = {
            "PARTNER_SYNC_BASE_URL": running.url,
            "PARTNER_SYNC_AUTH_URL": running.url,
            "PARTNER_SYNC_AUDIENCE": AUDIENCE,
            "PARTNER_SYNC_CLIENT_ID": "demo",
            "PARTNER_SYNC_CLIENT_SECRET": SECRET,
        }
        with run.open(point(Service(running.url, environment))) as session:
            outcome = run.sync(session, run.orders(session))
        tokens = running.statistics()["requests"]["/oauth/token"]["200"]

    assert [str(each.error) for each in outcome.streams if each.error] == []
    assert outcome.exit_code == 0
    rows = {each.stream: each.fold.rows for each in outcome.streams if each.fold}
    assert rows == {"partners": 120, "usage": 5000, "billing": 500}
    assert tokens >= 2
