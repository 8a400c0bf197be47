"""The rate limit of a real service: never a 429, never more admitted than allowed, one budget."""

import time

import httpx
import pytest

from pipelines import run
from tests.end_to_end.conftest import Point
from tests.other_client import sending
from tests.sandbox.running import sandboxed

WINDOW = "0.1"  # a tenth of the documented second: the same rule, ten times as fast


@pytest.mark.parametrize("latency", [("0", "0"), ("20", "4"), ("50", "20")])
def test_three_streams_side_by_side_meet_no_429(point: Point, latency: tuple[str, str]) -> None:
    options = (f"--latency-ms={latency[0]}", f"--jitter-ms={latency[1]}", f"--window={WINDOW}")
    sizes = ("--partners=250", "--usage=4000", "--billing=1000")
    with sandboxed(*options, *sizes) as service:
        service.environment["PARTNER_SYNC_WINDOW"] = WINDOW
        with run.open(point(service)) as session:
            outcome = run.sync(session, run.orders(session))
        served = httpx.get(f"{service.url}/__sandbox__/statistics").json()

    assert outcome.exit_code == 0
    assert served["refused"] == 0
    requests = sum(each.effort.requests for each in outcome.streams)
    quiet = 4 + 10 + 12  # pages by the formula of the chain
    # A guess that the end of a list made vain is taken back, before it arrived or after.
    assert 1 + quiet <= served["admitted"] <= 1 + requests  # with whoami
    assert requests <= quiet + 2 * 3
    assert served["most_admitted_in_any_window"] <= 5
    assert {each.effort.refused for each in outcome.streams} == {0}


def test_the_budget_is_used_though_the_limit_is_learned(point: Point) -> None:
    with sandboxed("--rate=50", "--window=1.0", "--usage=4000", "--billing=0") as service:
        with run.open(point(service)) as session:
            outcome = run.sync(session, run.orders(session))
        served = httpx.get(f"{service.url}/__sandbox__/statistics").json()

    assert outcome.exit_code == 0
    assert served["refused"] == 0
    # At the documented 5 a second the 12 requests would take two seconds.
    assert served["last_admitted"] - served["first_admitted"] < 1.9


def test_another_client_of_the_actor_is_left_its_requests_and_reported_once(point: Point) -> None:
    """By the real clock; how much of the rest is used tests/api and `benchmarks rate` show."""
    heard: list[str] = []
    sizes = ("--partners=120", "--usage=3000", "--billing=0")
    with sandboxed(*sizes) as service, sending(service, 0.4):
        time.sleep(1.0)
        with run.open(point(service), run.Watch(waiting=heard.append)) as session:
            outcome = run.sync(session, run.orders(session))
    assert outcome.exit_code == 0
    (warning,) = [words for words in heard if "another client" in words]
    assert "No row is lost. This sync leaves room for them: it sends " in warning
