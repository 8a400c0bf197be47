"""How fresh a list is: as its newest proven reading in the published file, in check and alert."""

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from pipelines import run
from pipelines.clock import Clock
from pipelines.run import Freshness
from pipelines.run.alerting import stands
from pipelines.state.proof import Grade
from tests.run.nights import FIRST, Nights
from tests.run.test_any_history import home

ONE, TWO = '[{"id": 1}]', '[{"id": 1}, {"id": 2}]'


def seen(nights: Nights, now: datetime) -> tuple[Freshness, bool]:
    """Return how fresh usage is at a moment, and whether the alert says that it is stale."""
    session = replace(nights.session, clock=Clock(now=lambda: now))
    (found,) = (each for each in run.freshness(session) if each.row)
    told = [each.standing.key for each in stands(session)]
    return found, ("stale_data", "default/usage") in told


@pytest.mark.parametrize(
    ("grades", "proven"),
    [
        ((Grade.COMPLETE, Grade.COMPLETE_BY_COUNT), 1),
        ((Grade.COMPLETE, Grade.PARTIAL), 0),
        ((Grade.PARTIAL, Grade.SNAPSHOT), 1),
        ((Grade.PARTIAL, Grade.PARTIAL), 0),
        ((Grade.COMPLETE, Grade.UNSTABLE_ORDER), 0),  # of a release before 0.2
    ],
)
def test_a_list_is_as_fresh_as_its_newest_proven_reading(
    tmp_path: Path, grades: tuple[Grade, Grade], proven: int
) -> None:
    """Of two nights; where none is proven, it is as old as the first."""
    with home(tmp_path / "home") as nights:
        for grade, records in zip(grades, (ONE, TWO), strict=True):
            nights.read(records, grade=grade)
            nights.fold()
        assert run.publish_folded(nights.session)
        until = nights.moment - timedelta(days=1 - proven) + timedelta(hours=36)
        fresh, told = seen(nights, until)
        assert (fresh.day, fresh.until, fresh.rows) == (FIRST + timedelta(days=proven), until, 2)
        assert (fresh.stale, told) == (False, False)
        stale, told = seen(nights, until + timedelta(seconds=1))
        assert (stale.stale, told) == (True, True)
