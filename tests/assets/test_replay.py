"""A range of archived days in Dagster is replayed as `partner-sync replay` does: no request."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path

import pytest

from benchmarks import archived
from pipelines import run, settings
from pipelines.cli.sandbox import Service
from pipelines.run import Session
from pipelines.streams import STREAMS
from tests.assets.conftest import Materialize
from tests.assets.test_chain import admitted, why
from tests.run.contents import content

NIGHTS = 3
NAMES = [stream.name for stream in STREAMS]


def day(number: int) -> date:
    return (archived.FIRST + timedelta(days=number)).date()


@pytest.fixture
def session(materialize: Materialize) -> Iterator[Session]:
    """Open a home of some nights of every list."""
    assert materialize is not None
    with run.open(settings.load()) as opened:
        for number in range(1, NIGHTS + 1):
            for name in NAMES:
                rows = [{"id": each, "n": number if each % 5 else 0} for each in range(20)]
                archived.night(opened, name, number, map(json.dumps, rows))
        yield opened


def landed(session: Session) -> None:
    (order,) = archived.orders(session, NAMES)
    run.fold(session, order)
    run.publish(session, [order])


def asked(home: Path) -> int:
    """Return how many requests the ledger has."""
    with closing(sqlite3.connect(home / "state" / "state.sqlite")) as ledger:
        return int(ledger.execute("SELECT count(*) FROM requests").fetchone()[0])


def test_a_range_of_archived_days_is_replayed_without_a_request(
    materialize: Materialize, session: Session, service: Service, tmp_path: Path
) -> None:
    landed(session)
    expected, before = content(session), admitted(service)
    for first, last in ((1, 2), (NIGHTS, NIGHTS)):
        there = (session.settings.place.work / "warehouse.duckdb").stat().st_ino

        assert materialize(day(first), day(last)).success

        assert content(session) == expected
        assert (session.settings.place.work / "warehouse.duckdb").stat().st_ino != there
    (session.settings.place.work / "warehouse.duckdb").unlink()
    landed(session)  # a fresh build
    assert content(session) == expected
    assert (asked(tmp_path / "home"), admitted(service)) == (0, before)


def test_days_that_wait_are_folded_and_nothing_is_built_again(
    materialize: Materialize, session: Session, tmp_path: Path
) -> None:
    landed(session)
    there = (session.settings.place.work / "warehouse.duckdb").stat().st_ino
    for name in NAMES:
        rows = [{"id": each, "n": 0} for each in range(20)]
        archived.night(session, name, NIGHTS + 1, map(json.dumps, rows))

    assert materialize(day(NIGHTS + 1), day(NIGHTS + 1)).success

    assert (session.settings.place.work / "warehouse.duckdb").stat().st_ino == there
    folds = content(session)["meta.proofs"]
    assert len([each for each in folds if day(NIGHTS + 1) in each]) == len(NAMES)
    assert asked(tmp_path / "home") == 0


def test_days_in_the_base_fail_in_the_last_step_and_the_others_are_published(
    materialize: Materialize, session: Session
) -> None:
    landed(session)
    run.retain(session, 2, "ann")
    expected = content(session)

    result = materialize(day(1), day(NIGHTS))

    assert not result.success
    assert [each.step_key for each in result.all_events if each.is_step_failure] == [
        "published__warehouse"
    ]
    assert f"default|{day(1)}: billing of {day(1)} is in the base snapshot" in why(result)
    assert f"default|{day(2)}" not in why(result)
    failed = {each.check_name for each in result.get_asset_check_evaluations() if not each.passed}
    assert failed == {"folded"}
    assert content(session) == expected
    assert materialize(day(2), day(NIGHTS)).success
