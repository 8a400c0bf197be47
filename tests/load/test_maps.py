"""Objects whose names are data, such as days: a table with a row for each name."""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipelines.config.settings import Stream
from tests.load.scans import NEVER_HELD, Warehouse, open_warehouse

ROWS = """
SELECT rows._parent_key, rows._index, rows._name, rows.value, rows._extra
FROM current.usage__by_day AS rows
ORDER BY ALL
"""
VERSIONS = """
SELECT record._key, record.amount, count(item._name), sum(item.value)
FROM history.usage AS record
LEFT JOIN history.usage__by_day AS item
    ON (item._connection, item._parent_key, item._valid_from)
    = (record._connection, record._key, record._valid_from)
    AND item._valid_to IS NOT DISTINCT FROM record._valid_to
GROUP BY record._key, record._valid_from, record.amount
ORDER BY record._valid_from
"""

MOVED = ("version", "name", "n", "at", "count", "extra")
MOVED_ROWS = """
SELECT
    dense_rank() OVER (ORDER BY rows._valid_from) AS version, rows._name, rows.n, rows.at,
    rows.list__count, rows._extra
FROM history.usage__by_day AS rows
WHERE rows._name < 'd004'
ORDER BY ALL
"""


def raw(days: Iterable[int], **others: Any) -> str:
    by_day = {f"day {day:03}": day for day in days}
    return json.dumps({"id": "k", "byDay": by_day, "amount": "1.50", **others})


def codes(warehouse: Warehouse, records: Sequence[str], stream: Stream = NEVER_HELD) -> set[str]:
    return {each.code for each in warehouse.load(records, stream).findings}


def test_an_object_whose_names_grow_becomes_a_table(tmp_path: Path, warehouse: Warehouse) -> None:
    """Later in life and at the first scan, with the same rows; other fields keep their columns."""
    assert codes(warehouse, [raw([*range(100), 120])]) == set()
    assert len(warehouse.types()) == 103  # 101 names, but nobody knows whether they grow
    last = [raw([*range(100), 110, 120])]
    result = warehouse.load(last)
    assert [each.code for each in result.findings] == ["names_are_data"]
    assert (result.changed, result.unchanged) == (1, 0)
    types = {"id": "VARCHAR", "amount": "DECIMAL(38,2)"}
    assert (warehouse.types(), warehouse.types("usage__by_day")) == (types, {"value": "BIGINT"})
    found = warehouse.rows(ROWS)
    assert found[-2:] == [("k", 100, "day 110", 110, None), ("k", 101, "day 120", 120, None)]
    assert [(*row[2:],) for row in warehouse.rows(VERSIONS)] == [(101, 5070), (102, 5180)]
    assert warehouse.load([raw([*range(100), 110, 120]) + " "]).unchanged == 1
    with open_warehouse(tmp_path) as other:
        days = {f"day {day:03}": day for day in [*range(100), 110, 120, *range(200, 598)]}
        result = other.load([raw([], byDay=days), raw([], id="b", last=1)])
        assert [each.code for each in result.findings] == ["names_are_data"]
        assert other.rows(ROWS)[:102] == found
        assert other.types() == types | {"last": "BIGINT"}


@pytest.mark.long
def test_fields_of_a_record_keep_columns_beside_an_object_with_many_names(
    warehouse: Warehouse,
) -> None:
    fields = {f"f{at}": at for at in range(480)}
    assert codes(warehouse, [raw(range(101), **fields)]) == {"names_are_data"}
    assert len(warehouse.types()) == 482
    assert len(warehouse.rows(ROWS)) == 101


@pytest.mark.long
def test_an_object_of_the_same_fields_keeps_columns(warehouse: Warehouse) -> None:
    for amount in range(2):
        codes(warehouse, [raw(range(120), amount=amount)])
    assert len(warehouse.types()) == 122
    discard = NEVER_HELD.model_copy(update={"contract": "discard"})
    assert "values_discarded" in codes(warehouse, [raw(range(130))], discard)
    freeze = NEVER_HELD.model_copy(update={"contract": "freeze"})
    held = warehouse.load([raw(range(140))], freeze).held or ""
    assert "by_day__day_120" in held
    assert len(warehouse.types()) == 122


@pytest.mark.long
def test_what_columns_did_not_take_moves_exactly(warehouse: Warehouse) -> None:
    """Values of `_extra`, of history, lists, objects, times."""
    days: dict[str, Any] = {
        f"d{at:03}": {"n": at, "at": "2026-09-01T00:00:00+02:00"} for at in range(101)
    }
    days["d000"] = {"n": 1.25, "list": [{"x": 1}, {"x": 2.5}], "none": None}
    warehouse.load([json.dumps({"id": "k", "byDay": days})])
    days["d001"] = {"n": "no number", "at": {"odd": [1.50]}}
    days["d002"] = "no object"
    warehouse.load([json.dumps({"id": "k", "byDay": days})])
    before = len(warehouse.types())
    result = warehouse.load([json.dumps({"id": "k", "byDay": days | {"d101": {"n": 1}}})])
    assert (before > 200, warehouse.types()) == (True, {"id": "VARCHAR"})
    assert "names_are_data" in {each.code for each in result.findings}
    types = warehouse.types("usage__by_day")
    assert types == {
        "n": "DECIMAL(38,2)",
        "at": "TIMESTAMP WITH TIME ZONE",
        "at__offset": "VARCHAR",
        "list__count": "BIGINT",
    }
    moved = [dict(zip(MOVED, row, strict=True)) for row in warehouse.rows(MOVED_ROWS)]
    at = datetime(2026, 8, 31, 22, tzinfo=UTC)
    extra = '{"value":{"at":{"odd":["1.5"]},"n":"no number"}}'
    assert [each for each in moved if each["version"] == 2] == [
        dict(zip(MOVED, row, strict=True))
        for row in [
            (2, "d000", Decimal("1.25"), None, 2, None),
            (2, "d001", None, None, None, extra),
            (2, "d002", None, None, None, '{"value":"no object"}'),
            (2, "d003", 3, at, None, None),
        ]
    ]
    assert len(moved) == 12
    assert warehouse.row("SELECT count(*), sum(h.x) FROM history.usage__by_day__list AS h") == (
        6,
        Decimal("10.5"),
    )


def test_lists_of_values_move_as_they_are(warehouse: Warehouse) -> None:
    for names in (101, 102):
        days = {f"d{at:03}": {"tags": ["a", None, str(at)], "n": [at, 1.5]} for at in range(names)}
        warehouse.load([json.dumps({"id": "k", "byDay": days})])
    query = "SELECT h._name, h.tags, h.n FROM history.usage__by_day AS h WHERE h._name IN {}"
    rows = [(f"d{at:03}", ["a", None, str(at)], [at, Decimal("1.5")]) for at in (0, 0, 100, 100)]
    assert sorted(warehouse.rows(query.format(("d000", "d100")))) == rows


@pytest.mark.long
def test_any_name_is_data(warehouse: Warehouse) -> None:
    odd = dict.fromkeys(("_name", "value", "", "a\x00b", "ünï \" '", "1500"), 7)
    for size in (95, 96):
        names = {f"n{at}": at for at in range(size)}
        warehouse.load([json.dumps({"id": "k", "m": names | odd})])
    query = "SELECT h._name FROM history.usage__m AS h WHERE h.value = 7 AND h._name NOT LIKE 'n%'"
    found = [name for (name,) in warehouse.rows(query)]
    assert sorted(found) == sorted([*odd, *odd])


@pytest.mark.long
def test_several_maps_of_one_scan_end_as_one_around_them(warehouse: Warehouse) -> None:
    for partners, days in ((2, 101), (2, 102), (101, 2)):
        by_day = {f"d{day}": day for day in range(days)}
        shares = {f"p{partner}": by_day for partner in range(partners)}
        warehouse.load([json.dumps({"id": "k", "shares": shares})])
    assert warehouse.types() == {"id": "VARCHAR"}
    assert len(warehouse.rows("SELECT h._name FROM history.usage__shares AS h")) == 2 + 2 + 101
    values = "SELECT count(*), sum(h.value) FROM history.usage__shares__value AS h"
    assert warehouse.rows(values) == [(203 * 2 + 202, (5050 + 5151) * 2 + 101)]


@pytest.mark.long
def test_values_in_a_map_may_be_as_deep_as_in_an_object(warehouse: Warehouse) -> None:
    warehouse.load([json.dumps({"id": "k", "m": {f"n{at:03}": at for at in range(501)}})])
    deep: Any = 1
    for _ in range(62):  # with the record and `m`: 64, which is allowed
        deep = {"a": deep}
    assert warehouse.load([json.dumps({"id": "k", "m": {"x": deep}})]).quarantined == 0
    assert warehouse.load([json.dumps({"id": "k", "m": {"x": {"a": deep}}})]).quarantined == 1


@pytest.mark.long
def test_tables_of_one_map_may_have_columns_of_one_name(warehouse: Warehouse) -> None:
    """Each is stored by the type of its own column."""
    for names in (101, 102):
        days = {f"d{at:03}": {"n": at + 0.5, "parts": [{"n": f"p{at}"}]} for at in range(names)}
        warehouse.load([json.dumps({"id": "k", "byDay": days})])
    assert warehouse.types("usage__by_day")["n"] == "DECIMAL(38,1)"
    values = "SELECT sum(h.n) FROM history.usage__by_day AS h"
    assert warehouse.row(values) == (Decimal(101 * 50 + 102 * 101 // 2) + Decimal("101.5"),)
    parts = "SELECT count(*) FROM history.usage__by_day__parts AS h WHERE h.n[1:1] = 'p'"
    assert warehouse.row(parts) == (203,)
