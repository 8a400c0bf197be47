"""Published versions: the newest counts, no number twice."""

from dataclasses import replace

import pytest
from sqlalchemy import Engine
from sqlalchemy.exc import IntegrityError

from pipelines.state import versions
from pipelines.state.versions import Version
from tests.virtual import EPOCH

VERSION = Version(
    version=1,
    run="run-1",
    file="warehouse.v00000001.duckdb",
    holds={"default/usage": "default/usage/2026-01-01.001.json"},
    counts={"current.usage": 2**40, "current.usage__events": 0},
    published_at=EPOCH,
)


def test_the_newest_version_counts(ledger: Engine) -> None:
    assert versions.latest(ledger) is None
    for number in (1, 2, 3):
        versions.add(ledger, replace(VERSION, version=number))
        assert versions.latest(ledger) == replace(VERSION, version=number)


def test_no_number_is_used_twice(ledger: Engine) -> None:
    versions.add(ledger, VERSION)
    with pytest.raises(IntegrityError):
        versions.add(ledger, replace(VERSION, run="run-2"))
    assert versions.latest(ledger) == VERSION
