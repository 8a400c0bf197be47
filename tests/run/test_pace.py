"""What a progress line says: requests a second, and between which times all will be read."""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from pipelines.clock import Clock
from pipelines.run.pace import Outlook, Pace
from pipelines.state.proof import Counting
from pipelines.warehouse.scan import Progress
from tests.virtual import EPOCH


@dataclass
class Time:
    """Time that passes when it is told to."""

    passed: float = 0.0
    pages: dict[str, int] = field(default_factory=dict)

    @property
    def clock(self) -> Clock:
        return Clock(
            now=lambda: EPOCH + timedelta(seconds=self.passed),
            monotonic=lambda: self.passed,
            sleep=asyncio.sleep,
        )

    def read(self, pace: Pace, name: str, expected: int | None, *, done: bool = False) -> Outlook:
        """Read a page of 100 records a fifth of a second after the last one."""
        self.passed += 0.2
        pages = self.pages[name] = self.pages.get(name, 0) + 1
        return pace.count(Progress("default", name, pages, 100 * pages, done, expected))


def test_the_pace_of_the_last_half_minute() -> None:
    time = Time()
    pace = Pace(time.clock, allowance=5.0)
    outlooks = [time.read(pace, "usage", None) for _ in range(300)]
    assert [outlooks[0].rate, outlooks[1].rate] == [0.0, pytest.approx(5.0)]
    time.passed += 100
    slow = [time.read(pace, "usage", None) for _ in range(2)]
    assert [each.rate for each in slow] == [0.0, pytest.approx(5.0)]


def test_nobody_knows_the_end_of_a_list_that_is_read_for_the_first_time() -> None:
    time = Time()
    pace = Pace(time.clock, allowance=5.0)
    assert time.read(pace, "usage", 1000).earliest is not None
    assert time.read(pace, "billing", None).earliest is None
    assert time.read(pace, "billing", None, done=True).earliest is not None


def test_a_list_that_is_counted_says_how_far_it_is() -> None:
    time = Time()
    pace = Pace(time.clock, allowance=5.0)
    time.read(pace, "billing", 1000)
    news = Progress("default", "usage", 52, 6000, False, 6000, Counting(5987, 6000, 4))
    outlook = pace.count(news)
    assert (outlook.earliest, outlook.latest) == (None, None)
    assert outlook.words.endswith(
        "its end is not known yet; usage: counting, 5,987 of 6,000 places seen, pass 4"
    )
    assert pace.count(replace(news, counting=None, done=True)).counted == ()


def test_the_rest_at_the_allowance_and_at_the_pace_of_late() -> None:
    time = Time()
    pace = Pace(time.clock, allowance=10.0)
    for _ in range(4):
        time.read(pace, "usage", 1100)
    outlook = time.read(pace, "usage", 1100)
    now = EPOCH + timedelta(seconds=time.passed)
    # Six pages and the head once more, at 10 a second or at 5 with a tenth of slack.
    assert outlook.earliest == now + timedelta(seconds=0.7)
    assert outlook.latest is not None
    assert outlook.latest - now == timedelta(seconds=1.1 * 7 / 5)


def test_a_list_longer_than_last_time_still_needs_its_head() -> None:
    time = Time()
    pace = Pace(time.clock, allowance=5.0)
    outlooks = [time.read(pace, "usage", 150) for _ in range(5)]
    now = EPOCH + timedelta(seconds=time.passed)
    assert outlooks[-1].earliest == now + timedelta(seconds=0.2)
    assert time.read(pace, "usage", 150, done=True).latest == now + timedelta(seconds=0.2)
