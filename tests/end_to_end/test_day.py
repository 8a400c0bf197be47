"""Under which day a list may be read: today's, and until noon the day a run was meant for."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from pipelines import run
from pipelines.cli.sandbox import Service
from pipelines.clock import Clock
from pipelines.errors import DayUnread
from pipelines.state import runs
from tests.end_to_end.conftest import Point

DAY = datetime(2026, 10, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Case:
    """When a run of that day began and what time it is, in hours after the day's begin."""

    begun: float
    now: float
    read: bool
    scheduled: bool = False


CASES = [
    Case(2, 2, read=True),
    Case(23.9, 23.9, read=True),
    Case(23.9, 24.1, read=True),  # it waited over midnight
    Case(23.9, 35.9, read=True),
    Case(23.9, 36, read=False),
    Case(24.1, 24.1, read=False),  # a person asks for yesterday
    Case(24.1, 24.1, read=True, scheduled=True),  # the schedule asked in time
    Case(36, 36, read=False, scheduled=True),
    Case(-1, -1, read=False, scheduled=True),  # a day that has not come
]


@pytest.mark.parametrize("case", CASES)
def test_a_list_is_read_under_the_day_its_run_was_meant_for(
    point: Point, unlimited: Service, case: Case
) -> None:
    settings = point(unlimited)
    clock = Clock(now=lambda: DAY + timedelta(hours=case.now))
    with run.open(settings, clock=clock) as session:
        (order,) = run.orders(session)
        order = replace(order, day=DAY.date(), scheduled=case.scheduled, refetch=False)
        runs.begin(
            session.ledger, order.run, "default", order.day, DAY + timedelta(hours=case.begun)
        )
        outcomes = run.fetch(session, order)

    unread = [isinstance(each, DayUnread) for each in outcomes.values()]
    assert unread == [not case.read] * 3
