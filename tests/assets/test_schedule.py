"""The nightly schedule, one run for each connection, and the sensor that follows their file."""

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from pathlib import Path
from zoneinfo import ZoneInfo

import dagster as dg
import pytest

from assets.definitions import defs
from assets.once import RUN_KEY_TAG
from assets.partitions import request
from assets.resources import night
from assets.schedule import follow, nightly
from pipelines.errors import ConfigurationError
from pipelines.run import Lane
from pipelines.settings import load
from tests.assets.conftest import ON_DISK, TODAY

# Zone of the cron, UTC hour of the tick: in Tokyo it is tomorrow by then, in New York yesterday.
TICKS = [("UTC", 2), ("Asia/Tokyo", 22), ("America/New_York", 2)]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return what configures merchant connections of these names."""
    monkeypatch.setenv("PARTNER_SYNC_HOME", str(tmp_path / "home"))
    config = tmp_path / "home" / "config"
    config.mkdir(parents=True)
    table = "[{}]\nsurface = 'merchant'\nbase_url = 'https://api.example.com'\nsecret = 'A_KEY'\n"

    def tables(*names: str) -> None:
        (config / "connections.toml").write_text("".join(table.format(name) for name in names))

    return tables


@ON_DISK
@pytest.mark.parametrize("tick", TICKS)
def test_a_tick_asks_for_the_utc_day_of_every_connection(
    instance: dg.DagsterInstance, write: Callable[..., None], tick: tuple[str, int]
) -> None:
    zone, hour = tick
    write("first", "second")
    due = datetime.combine(TODAY, time(hour), UTC)
    context = dg.build_schedule_context(
        instance=instance,
        scheduled_execution_time=due.astimezone(ZoneInfo(zone)),
        repository_def=defs.get_repository_def(),
    )

    ticked = nightly.evaluate_tick(context)

    requests = ticked.run_requests or []
    keys = {f"first|{TODAY}", f"second|{TODAY}"}
    assert {request.run_key for request in requests} == keys
    assert dict(requests[0].tags) == {
        "dagster/partition": f"first|{TODAY}",
        "dagster/partition/connection": "first",
        "dagster/partition/date": str(TODAY),
        "dagster/schedule_name": "nightly",
    }
    assert {str(request.partition_key) for request in requests} == keys
    assert set(instance.get_dynamic_partitions("connections")) == {"default", "first", "second"}


@ON_DISK
def test_a_later_tick_of_a_day_asks_for_what_no_tick_has_asked_for(
    instance: dg.DagsterInstance, write: Callable[..., None]
) -> None:
    write("first", "second")
    context = dg.build_schedule_context(
        instance=instance,
        scheduled_execution_time=datetime.combine(TODAY, time(2), UTC),
        repository_def=defs.get_repository_def(),
    )
    for name, left in (("first", {f"second|{TODAY}"}), ("second", set())):
        tags = {RUN_KEY_TAG: f"{name}|{TODAY}"}
        instance.add_run(
            dg.DagsterRun(job_name="nightly_sync", tags=tags, status=dg.DagsterRunStatus.STARTED)
        )

        ticked = nightly.evaluate_tick(context)

        assert {request.run_key for request in ticked.run_requests or ()} == left
    assert ticked.skip_message == f"every connection has had its run of {TODAY}"


@ON_DISK
def test_a_run_that_a_killed_daemon_made_and_never_submitted_is_asked_for_again(
    instance: dg.DagsterInstance, write: Callable[..., None]
) -> None:
    write("first")
    tags = {RUN_KEY_TAG: f"first|{TODAY}"}
    instance.add_run(dg.DagsterRun(job_name="nightly_sync", tags=tags))
    context = dg.build_schedule_context(
        instance=instance,
        scheduled_execution_time=datetime.combine(TODAY, time(2), UTC),
        repository_def=defs.get_repository_def(),
    )

    ticked = nightly.evaluate_tick(context)

    assert [request.run_key for request in ticked.run_requests or ()] == [f"first|{TODAY}"]


def test_a_tick_that_is_made_up_for_too_late_asks_for_nothing(
    instance: dg.DagsterInstance, write: Callable[..., None]
) -> None:
    write("first")
    context = dg.build_schedule_context(
        instance=instance,
        scheduled_execution_time=datetime.fromisoformat("2026-01-05T02:00+00:00"),
        repository_def=defs.get_repository_def(),
    )

    ticked = nightly.evaluate_tick(context)

    assert not ticked.run_requests
    words = "2026-01-05 can be read no more: its runs could until 2026-01-06 12:00 UTC"
    assert ticked.skip_message == words


def test_no_run_is_asked_for_of_a_day_before_the_first() -> None:
    with pytest.raises(ConfigurationError, match="2024-12-31 is before it and cannot be chosen"):
        request("first", date(2024, 12, 31), "first|2024-12-31")


@pytest.mark.parametrize(
    ("tags", "scheduled", "lane"),
    [
        ({"dagster/schedule_name": "nightly"}, True, Lane.NIGHTLY),
        ({"dagster/backfill": "abc"}, False, Lane.ADHOC),
        ({}, False, Lane.ADHOC),
    ],
)
def test_what_the_schedule_asked_for_goes_first_and_is_of_its_day(
    write: Callable[..., None], tags: dict[str, str], lane: Lane, *, scheduled: bool
) -> None:
    write("first")
    asked = dg.DagsterRun(job_name="nightly_sync", tags=tags)
    order = night(asked, load().connection("first"), date(2026, 11, 21))
    assert (order.scheduled, order.lane, order.run) == (scheduled, lane, asked.run_id)


def test_the_sensor_adds_what_is_new_and_takes_nothing_away(
    instance: dg.DagsterInstance, write: Callable[..., None]
) -> None:
    write("first")
    with dg.build_sensor_context(instance=instance) as context:
        told = follow(context)
        assert isinstance(told, dg.SensorResult)
        (asked,) = told.dynamic_partitions_requests or ()
        assert (asked.partitions_def_name, list(asked.partition_keys)) == ("connections", ["first"])
        instance.add_dynamic_partitions("connections", ["first"])
        again = follow(context)
        assert isinstance(again, dg.SkipReason)
        assert again.skip_message == "no new connection"
        write()
        broken = follow(context)
    assert isinstance(broken, dg.SkipReason)
    assert "names no connection" in str(broken.skip_message)


def test_the_sensor_runs_unless_somebody_stops_it() -> None:
    assert follow.default_status == dg.DefaultSensorStatus.RUNNING
