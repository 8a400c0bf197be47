"""The nightly schedule: one run for each connection, named by the UTC day of the tick."""

from datetime import datetime
from zoneinfo import ZoneInfo

import dagster as dg
import pytest

from assets.definitions import defs
from assets.schedule import nightly

TICKS = [
    ("UTC", "2026-11-21T02:00", "2026-11-21"),
    ("Asia/Tokyo", "2026-11-21T02:00", "2026-11-20"),
    ("America/New_York", "2026-11-20T22:00", "2026-11-21"),
]


@pytest.mark.parametrize(("zone", "local", "day"), TICKS)
def test_a_tick_asks_for_the_utc_day_of_every_connection(
    instance: dg.DagsterInstance, zone: str, local: str, day: str
) -> None:
    instance.add_dynamic_partitions("connections", ["second"])
    context = dg.build_schedule_context(
        instance=instance,
        scheduled_execution_time=datetime.fromisoformat(local).replace(tzinfo=ZoneInfo(zone)),
        repository_def=defs.get_repository_def(),
    )

    ticked = nightly.evaluate_tick(context)

    requests = ticked.run_requests or []
    assert {request.run_key for request in requests} == {f"default|{day}", f"second|{day}"}
    assert {str(request.partition_key) for request in requests} == {
        f"default|{day}",
        f"second|{day}",
    }
