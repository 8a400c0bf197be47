"""Lists of many columns are published within the memory that DuckDB may use."""

from dataclasses import replace
from typing import Any

import pytest

from pipelines.app.nightly import build_with_books
from pipelines.core.errors import MemoryRefused
from pipelines.versions.build import BuildResult
from pipelines.warehouse.memory_limit import MemoryLimit
from tests.versions.homes import Reading, Stores, read

KINDS = 6


def wide(columns: int, rows: int, night: int) -> list[dict[str, Any]]:
    """Return records with fields of six types; each night half of them differ, one field is new."""
    records = []
    for row in range(rows):
        turn = night if row % 2 else 0
        record: dict[str, Any] = {"id": f"u{row}"}
        for column in range(columns):
            number = row * column + turn
            values = (
                number,
                f"{number}.{column % 100:02}",
                f"2026-{number % 12 + 1:02}-01",
                f"2026-{number % 12 + 1:02}-01T00:00:{column % 60:02}Z",
                bool(number % 2),
                f"text {row} {column} {turn}",
            )
            record[f"field{column}"] = values[column % KINDS]
        if row % 2:
            record |= {f"new{each}": row for each in range(night)}
        records.append(record)
    return records


def publish(stores: Stores, columns: int, rows: int, night: int) -> BuildResult:
    read(stores, Reading(wide(columns, rows, night), page_size=500))
    return build_with_books(stores)


LONG = ((90, 3_000),)  # the others are slow
SLOW = (
    (480, 20),
    (480, 120),
    (480, 3_000),
    (90, 20),
    (90, 120),
    (200, 20),
    (200, 120),
    (200, 3_000),
)


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        (50, 20),
        *(pytest.param(*size, marks=pytest.mark.long) for size in LONG),
        *(pytest.param(*size, marks=pytest.mark.slow) for size in SLOW),
    ],
)
def test_a_list_of_many_columns_is_published_each_night(
    stores: Stores, columns: int, rows: int
) -> None:
    for night in range(3 if columns > 50 else 2):
        result = publish(stores, columns, rows, night)
        assert (result.is_new, result.failed) == (True, {})
        assert result.results[0].changed == (rows // 2 if night else 0)
        expected = [(f"u{row}", f"text {row} 5 {night if row % 2 else 0}") for row in range(rows)]
        found = stores.rows("SELECT usage.id, usage.field5 FROM current.usage")
        assert sorted(found) == sorted(expected)
        versions = stores.rows("SELECT count(*) FROM history.usage")
        assert versions == [(rows + night * (rows // 2),)]


def test_a_build_that_is_refused_memory_begins_again_with_more(
    stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    small = MemoryLimit("2MB")
    refused = replace(stores, warehouse=replace(stores.warehouse, memory_limit=small))
    with pytest.raises(MemoryRefused, match=r"\(memory_limit, now 2MB\)") as caught:
        publish(refused, 20, 20, 0)
    assert "memory_limit in settings.toml" in caught.value.remedy
    assert stores.warehouse.published() is None
    grows = replace(small, most=1_000_000_000)
    growing = replace(stores, warehouse=replace(stores.warehouse, memory_limit=grows))
    assert build_with_books(growing).is_new
    assert "It is built again with 8MB" in caplog.text
    assert len(stores.keys()) == 20
