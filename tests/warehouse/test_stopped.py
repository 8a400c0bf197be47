"""A column that no record has any more, or none from a place in the list on: said once."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pipelines.state.proof import Grade
from pipelines.warehouse import evolution
from pipelines.warehouse.disappeared import Guard
from pipelines.warehouse.evolution import Policy
from pipelines.warehouse.fold import Terms
from tests.warehouse.conftest import Warehouse

Record = dict[str, Any]
KINDS = {"stopped", "partly", "back"}


def listed(has: Callable[[int], bool], rows: int = 300, **also: object) -> list[str]:
    """Return three pages of records of which some have `n`."""
    every = [
        {"id": row, "t": "x", **({"n": row} if has(row) else {}), **also} for row in range(rows)
    ]
    return [json.dumps(every[first : first + 100]) for first in range(0, rows, 100)]


def night(warehouse: Warehouse, pages: Sequence[str], **how: Any) -> list[str]:
    """Fold one night; return what is said of columns that stop, as `column kind count place`."""
    manifest = warehouse.manifest(*pages, **how)
    warehouse.fold(manifest)
    with warehouse.work.writing() as writer:
        changes = evolution.recorded(writer, "things", manifest.file)
    return [
        f"{each.column} {each.what} {each.count} {each.place}"
        for each in changes
        if each.what in KINDS
    ]


ALL, NONE = listed(lambda _row: True), listed(lambda _row: False)
HALF = listed(lambda row: row % 2 == 0)
FROM_150 = listed(lambda row: row < 150)
# Nights, and what is said of the column n.
NIGHTS = [
    ([ALL, ALL, NONE, NONE, ALL, ALL], ["", "", "n stopped 300 None", "", "n back 300 None", ""]),
    ([ALL, FROM_150, FROM_150, NONE], ["", "n partly 150 150", "", "n stopped 150 None"]),
    (
        [ALL, FROM_150, ALL, FROM_150],
        ["", "n partly 150 150", "n back 300 None", "n partly 150 150"],
    ),
    (
        [ALL, FROM_150, NONE, HALF],
        ["", "n partly 150 150", "n stopped 150 None", "n back 150 None"],
    ),
    # A place is not named where a field was never in nearly all, or is lost here and there.
    ([HALF, listed(lambda row: row % 2 == 0 and row < 150)], ["", ""]),
    ([ALL, HALF], ["", ""]),
    ([ALL, listed(lambda row: row != 299)], ["", ""]),
    ([ALL, listed(lambda row: row not in {7, 8})], ["", ""]),
    ([ALL, listed(lambda row: row < 150 and row != 7)], ["", "n partly 150 150"]),
    # New records may lack what the old ones have.
    ([ALL, listed(lambda row: row < 300, 400)], ["", ""]),
    # Under another spelling of everything, and beside values that do not fit the column.
    ([ALL, listed(lambda row: row < 150, also="new")], ["", "n partly 150 150"]),
    ([ALL, [page.replace('"n": ', '"n": "a').replace("}", '"}') for page in ALL]], ["", ""]),
]


@pytest.mark.parametrize(("nights", "said"), NIGHTS)
def test_what_is_said_of_a_column_night_by_night(
    warehouse: Warehouse, nights: list[list[str]], said: list[str]
) -> None:
    assert [" ".join(night(warehouse, pages)) for pages in nights] == said
    assert "n" in warehouse.types()


def test_a_column_stops_where_the_records_that_had_it_are_gone(warehouse: Warehouse) -> None:
    one = '[{"id": 1, "n": 1}, {"id": 2}]'
    night(warehouse, [one])
    assert night(warehouse, ['[{"id": 2}]']) == ["n stopped 1 None"]
    assert night(warehouse, ['[{"id": 2}]']) == []
    assert night(warehouse, [one]) == ["n back 1 None"]


def test_rows_that_a_partial_reading_lacks_keep_their_columns(warehouse: Warehouse) -> None:
    night(warehouse, ALL)
    pages = [NONE[0], "[]", "[]"]
    assert night(warehouse, pages, grade=Grade.PARTIAL) == ["n partly 100 0"]
    assert night(warehouse, ALL) == ["n back 300 None"]


def test_a_list_without_a_key_says_it_too(warehouse: Warehouse) -> None:
    night(warehouse, ['[{"a": 1, "n": 1}, {"a": 2, "n": 1}]'], key=None)
    assert night(warehouse, ['[{"a": 1}, {"a": 2}]'], key=None) == ["n stopped 2 None"]


def test_a_column_of_items_stops_and_is_back(warehouse: Warehouse) -> None:
    items = [{"x": 1, "y": 2}, {"x": 2}]
    first = json.dumps([{"id": row, "l": items} for row in range(3)])
    without = first.replace(', "y": 2', "")
    partly = json.dumps([{"id": row, "l": items[row > 0 :]} for row in range(3)])
    assert night(warehouse, [first]) == []
    assert night(warehouse, [partly]) == []
    assert night(warehouse, [without]) == ["y stopped 1 None"]
    assert night(warehouse, [partly]) == ["y back 1 None"]
    assert night(warehouse, ['[{"id": 0}, {"id": 1}, {"id": 2}]']) == ["l__count stopped 3 None"]


def test_each_connection_speaks_of_its_own_records(warehouse: Warehouse) -> None:
    night(warehouse, ALL)
    assert night(warehouse, NONE, connection="other") == []
    assert night(warehouse, NONE, connection="other") == []
    assert night(warehouse, NONE) == ["n stopped 300 None"]
    assert night(warehouse, ALL, connection="other") == []


def test_an_empty_list_has_no_say(warehouse: Warehouse) -> None:
    night(warehouse, ALL)
    warehouse.terms = Terms(Guard(may_be_empty=True))
    assert night(warehouse, ["[]"]) == []


@pytest.mark.parametrize("policy", ["freeze", "discard"])
def test_frozen_columns_may_stop(warehouse: Warehouse, policy: str) -> None:
    warehouse.terms = replace(warehouse.terms, policy=Policy(policy))
    night(warehouse, ALL)
    assert night(warehouse, FROM_150) == ["n partly 150 150"]
    assert night(warehouse, NONE) == ["n stopped 150 None"]
    assert warehouse.query("SELECT count(n) FROM past.things") == [(300,)]
