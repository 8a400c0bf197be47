"""Folds and published versions: the newest of each counts, no number twice."""

from dataclasses import asdict, replace

import pytest
from sqlalchemy import Engine, select
from sqlalchemy.exc import IntegrityError

from pipelines.state import versions
from pipelines.state.tables import VERSIONS
from pipelines.state.versions import Fold, Version
from tests.virtual import EPOCH

FOLD = Fold(
    run="run-1",
    connection="default",
    stream="usage",
    manifest="default/usage/2026-01-01.001.json",
    read=2345,
    duplicates=3,
    rows=2342,
    folded_at=EPOCH,
)


def test_of_every_connection_and_stream_the_newest_fold(ledger: Engine) -> None:
    newest = (
        replace(FOLD, connection="second", stream="billing"),
        replace(FOLD, run="run-2", rows=1, folded_at=EPOCH.replace(hour=1)),
    )
    older = replace(FOLD, folded_at=EPOCH.replace(hour=9))
    for fold in (older, newest[0], newest[1]):
        versions.add_fold(ledger, fold)
    # The newest is the one added last, whatever a clock that was set back said.
    assert versions.folds(ledger) == newest


def test_of_nothing_folded_nothing(ledger: Engine) -> None:
    assert versions.folds(ledger) == ()


def test_versions_are_numbered_from_one_and_never_twice(ledger: Engine) -> None:
    counts = {"current.usage": 2**40, "current.usage__events": 0}
    for number in (1, 2, 3):
        assert versions.next_version(ledger) == number
        version = Version(number, "run-1", f"warehouse.v{number:08}.duckdb", counts, EPOCH)
        versions.add_version(ledger, version)
    with pytest.raises(IntegrityError):
        versions.add_version(ledger, version)
    with ledger.connect() as connection:
        rows = connection.execute(select(VERSIONS)).mappings().all()
    assert [row["version"] for row in rows] == [1, 2, 3]
    assert dict(rows[-1]) == asdict(version)
