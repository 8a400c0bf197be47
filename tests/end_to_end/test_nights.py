"""Rehearsed nights: each on its own day, of a service that has grown and restated since."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import duckdb
import pytest

from assets import nights
from pipelines.settings import load
from sandbox.data.calendar import EPOCH
from tests.cli.program import ran
from tests.sandbox.running import sandboxed

SIZES = ("--rate=0", "--partners=20", "--usage=400", "--billing=200")
DAYS = ("2027-01-08", "2027-01-09")
KNOWN = """
SELECT day::VARCHAR, rows, ended_at::DATE::VARCHAR FROM meta.folds WHERE stream = 'billing'
ORDER BY day
"""


def test_two_nights_are_of_their_days_and_the_second_knows_more(tmp_path: Path) -> None:
    home, said = tmp_path / "home", []
    for day in DAYS:
        with sandboxed(*SIZES, f"--now={day}") as service:
            environment = service.environment | {
                "PARTNER_SYNC_HOME": str(home),
                "PARTNER_SYNC_NOW": f"{day}T02:00:00Z",
            }
            said += [ran(environment, "sync"), ran(environment, "check")]
    assert [done.returncode for done in said] == [0, 0, 0, 0], said
    with duckdb.connect(home / "warehouse.duckdb", read_only=True) as reader:
        reader.execute("SET TimeZone = 'UTC'")
        known = reader.execute(KNOWN).fetchall()
        why = dict(reader.execute("SELECT why, count(*) FROM past.billing GROUP BY 1").fetchall())
    assert [(day, ended) for day, _rows, ended in known] == [(day, day) for day in DAYS]
    assert known[0][1] < known[1][1]
    assert why.get("restated", 0) >= 1


def test_a_service_elsewhere_is_not_rehearsed_with(tmp_path: Path) -> None:
    away = {f"PARTNER_SYNC_{name}": "https://api.example.com" for name in ("BASE_URL", "AUTH_URL")}
    us = {"PARTNER_SYNC_AUDIENCE": "api", "PARTNER_SYNC_CLIENT_ID": "us"}
    home = {"PARTNER_SYNC_HOME": str(tmp_path), "PARTNER_SYNC_NOW": "2026-11-20T02:00:00Z"}
    done = ran(away | us | home, "sync")
    assert done.returncode == 2
    assert "is not on this machine" in done.stderr
    assert list(tmp_path.iterdir()) == []


TODAY = datetime.now(UTC).date()
# Nights asked for, the day of the newest reading that is there, how many days ago each is recorded.
ASKED = [(3, None, [3, 2, 1]), (3, 2, [1]), (3, 1, []), (3, 0, []), (0, None, []), (1, 9, [1])]


@pytest.mark.parametrize(("count", "newest", "recorded"), ASKED)
def test_nights_are_recorded_in_order_and_once(
    tmp_path: Path, count: int, newest: int | None, recorded: list[int]
) -> None:
    if newest is not None:
        read(tmp_path, newest, "billing", "partners", "usage")
    found = nights.missing(load(tmp_path).place, count, TODAY)
    assert found == [TODAY - timedelta(days) for days in recorded]


def test_a_night_that_was_interrupted_is_recorded_again(tmp_path: Path) -> None:
    read(tmp_path, 3, "billing", "partners", "usage")
    read(tmp_path, 2, "partners")
    found = nights.missing(load(tmp_path).place, 3, TODAY)
    assert found == [TODAY - timedelta(days) for days in (2, 1)]


def read(home: Path, days: int, *streams: str) -> None:
    """Leave what a night so many days ago leaves of some lists."""
    for stream in streams:
        folder = load(home).place.archive / "manifests" / "default" / stream
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{TODAY - timedelta(days)}.001.json").touch()


def test_the_sandbox_has_data_on_every_day_that_it_is_told() -> None:
    assert EPOCH.date() == nights.FIRST
    assert nights.as_of(date(2020, 2, 29)) == nights.FIRST
    assert nights.as_of(date(2026, 11, 21)) == date(2026, 11, 21)
