"""When a proof names the service's clock beside ours."""

from datetime import timedelta
from email.utils import format_datetime

import pytest
from msgspec.structs import replace

from pipelines.extract.clocks import ServiceClock
from tests.archive.scans import exchange

ASKED = exchange(None).sent_at.replace(microsecond=0)
DIFFERS = {-7: True, -6: False, 0: False, 8: False, 9: True}  # by seconds after the request


@pytest.mark.parametrize("age", [0, 600])
@pytest.mark.parametrize("seconds", DIFFERS)
def test_clocks_differ_by_more_than_five_seconds_and_the_time_of_an_answer(
    seconds: int, age: int
) -> None:
    theirs = ASKED + timedelta(seconds=seconds)
    date = format_datetime(theirs - timedelta(seconds=age), usegmt=True)
    took = {"sent_at": ASKED, "received_at": ASKED + timedelta(seconds=3)}
    clock = ServiceClock()
    clock.note(replace(exchange(None), headers={"date": date, "age": str(age)}, **took))
    clock.note(replace(exchange(None), headers={}))
    assert clock.span() == ((theirs, theirs) if DIFFERS[seconds] else (None, None))


def test_a_time_that_no_clock_has_says_nothing() -> None:
    clock = ServiceClock()
    clock.note(replace(exchange(None), headers={"date": "Fri, 31 Dec 9999 23:59:59 -1200"}))
    assert clock.span() == (None, None)
