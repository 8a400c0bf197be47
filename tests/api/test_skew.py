"""Clock skew: what an answer's Date can tell, and how sure."""

from datetime import timedelta
from email.utils import format_datetime

import pytest

from pipelines.api.skew import measured
from tests.virtual import EPOCH

# Seconds that the service is ahead, the round trip, and whether the clocks may agree to 2 s.
CASES = [
    (0.0, 0.0, True),
    (2.0, 0.1, True),
    (3.2, 0.1, False),
    (3.2, 2.0, True),
    (-2.0, 0.1, True),
    (-4.2, 0.1, False),
    (-4.2, 4.0, True),
    (3600.0, 1.0, False),
]


@pytest.mark.parametrize(("ahead", "trip", "tolerable"), CASES)
def test_skew_is_known_to_half_a_second_and_half_the_round_trip(
    ahead: float, trip: float, *, tolerable: bool
) -> None:
    there = EPOCH + timedelta(seconds=ahead + trip / 2)
    said = format_datetime(there.replace(microsecond=0), usegmt=True)
    skew = measured(said, EPOCH, EPOCH + timedelta(seconds=trip))
    assert skew is not None
    assert abs(skew.seconds - ahead) <= skew.within
    assert skew.within == 0.5 + trip / 2
    assert skew.tolerable == tolerable


@pytest.mark.parametrize("said", [None, "", "yesterday", "Sat, 99 Nov 2026 02:00:00 GMT"])
def test_an_answer_without_a_date_tells_nothing(said: str | None) -> None:
    assert measured(said, EPOCH, EPOCH) is None


def test_words() -> None:
    skew = measured("Thu, 01 Jan 2026 00:00:05 GMT", EPOCH, EPOCH + timedelta(seconds=1))
    assert str(skew) == "the service is 5.0 s ahead of this machine (± 1.0 s)"
    skew = measured("Wed, 31 Dec 2025 23:59:55 GMT", EPOCH, EPOCH)
    assert str(skew) == "the service is 4.5 s behind this machine (± 0.5 s)"
