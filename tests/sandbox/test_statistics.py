"""What the server counted: early retries, first and last arrivals, beside what the limiter let in.

Not here: the limiter itself (test_limits).
"""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from sandbox.statistics import Statistics, wait
from sandbox.window import NANOSECONDS
from tests.sandbox.running import Running, started


@pytest.fixture(scope="module")
def hasty() -> Iterator[Running]:
    """A sandbox whose limiter is out of the way, so that storms alone tell callers to wait."""
    with started("--rate", "1000", "--usage", "10") as running:
        yield running


def early(running: Running) -> int:
    return int(running.statistics()["early_retries"])


# a storm and its value -> how many of two requests at once are early
STORMS = [
    ("storm-seconds", 60, 2),
    ("storm-seconds", 0, 0),
    ("storm-date", 60, 2),
    ("storm-silent", None, 0),
    ("storm-garbled", "-5", 0),
]


@pytest.mark.parametrize(("name", "value", "expected"), STORMS)
def test_a_retry_before_the_wait_is_over_is_early(
    hasty: Running, name: str, value: float | str | None, expected: int
) -> None:
    hasty.reset()
    scope: dict[str, Any] = {"times": 1} | ({} if value is None else {"value": value})
    hasty.fault(name, **scope)
    with hasty.client(hasty.token()) as client:
        statuses = [client.get("/v2/whoami").status_code for _ in range(3)]
    assert statuses == [429, 200, 200]
    assert early(hasty) == expected
    assert hasty.statistics()["callers"]["distributor:demo"]["early_retries"] == early(hasty)


def test_waiting_is_not_early_and_another_caller_is_not_concerned(hasty: Running) -> None:
    hasty.reset()
    hasty.fault("storm-seconds", "/v2/usage", times=1, value=1)
    with hasty.client(hasty.token()) as client, hasty.client() as nobody:
        assert client.get("/v2/usage").status_code == 429
        nobody.get("/v2/usage")
        time.sleep(1)
        assert client.get("/v2/usage").status_code == 200
    assert early(hasty) == 0


def test_the_limiters_own_refusals_tell_to_wait() -> None:
    with started("--rate", "2", "--window", "3600", "--usage", "1") as running:
        with running.client(running.token()) as client:
            statuses = [client.get("/v2/whoami").status_code for _ in range(5)]
        counted = running.statistics()
    assert statuses == [200, 200, 429, 429, 429]
    assert (counted["refused"], counted["early_retries"]) == (3, 2)


WAITS = [
    ("2", 2),
    (" 7 ", 7),
    ("0", 0),
    (None, 0),
    ("", 0),
    ("soon", 0),
    ("-1", 0),
    ("1.5", 0),
    ("\u00b2", 0),
]


@pytest.mark.parametrize(("text", "seconds"), WAITS)
def test_what_a_retry_after_asks_for(text: str | None, seconds: int) -> None:
    assert wait(text, 0.0) == seconds * NANOSECONDS


def test_a_caller_is_early_until_the_moment_it_was_told() -> None:
    statistics = Statistics(1.0)
    tally = statistics.arrival("a", 0, admitted=False, authenticated=True)
    tally.told(10)
    tally.told(5)  # a later answer does not shorten the wait
    for now in (9, 10, 11):
        statistics.arrival("a", now, admitted=True, authenticated=True)
    assert statistics.report()["early_retries"] == 1
