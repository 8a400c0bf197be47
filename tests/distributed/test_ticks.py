"""The nightly tick of many connections, on Dagster's storage in PostgreSQL."""

from pathlib import Path

import pytest

from tests.distributed.ticks import Tick, settled, ticks


def test_a_tick_has_as_many_queries_with_many_connections_as_with_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, many = (_ticks(tmp_path, monkeypatch, size) for size in (2, 50))
    assert [len(tick.requests) for tick in (*few, *many)] == [2, 0, 50, 0]
    assert [tick.queries for tick in few] == [tick.queries for tick in many]


def _ticks(folder: Path, monkeypatch: pytest.MonkeyPatch, connections: int) -> list[Tick]:
    for name, value in settled(folder / str(connections), connections).items():
        monkeypatch.setenv(name, value)
    return list(ticks())
