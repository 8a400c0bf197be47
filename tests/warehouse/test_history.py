"""History: what began and ended when and why, as it was known at any moment."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from pipelines.errors import LandingFailed
from pipelines.state.proof import Grade
from pipelines.warehouse.disappeared import Guard
from pipelines.warehouse.fold import Terms
from tests.warehouse.conftest import NOON, Warehouse

VERSIONS = "SELECT id, n, valid_from, valid_to, why FROM history.things ORDER BY id, valid_from"


def night(number: int) -> datetime:
    return NOON + timedelta(days=number)


def folded(warehouse: Warehouse, *nights: str) -> None:
    for records in nights:
        warehouse.fold(warehouse.manifest(records))


def test_a_change_ends_a_version_and_says_why(warehouse: Warehouse) -> None:
    folded(
        warehouse,
        '[{"id": 1, "n": 5, "t": "a"}, {"id": 2, "n": 5, "t": "a"}, {"id": 3, "n": 5, "t": "a"}]',
        '[{"id": 1, "n": 6, "t": "b"}, {"id": 2, "n": 5, "t": "b"}, {"id": 3, "n": 5, "t": "a"}]',
    )
    assert warehouse.query(VERSIONS) == [
        (1, 5, night(0), night(1), "restated"),
        (1, 6, night(1), None, None),
        (2, 5, night(0), night(1), "changed"),
        (2, 5, night(1), None, None),
        (3, 5, night(0), None, None),
    ]
    assert warehouse.query("SELECT id, first_seen, changed_at FROM current.things ORDER BY id") == [
        (1, night(0), night(1)),
        (2, night(0), night(1)),
        (3, night(0), night(0)),
    ]


# Two spellings or values of one record, and whether the second is another version, and why.
SPELLINGS = [
    ('"n": 1, "t": "a"', '"t": "a", "n": 1', None),
    ('"n": 1.5', '"n": 1.50', None),
    ('"n": 100', '"n": 1e2', None),
    ('"n": 1, "o": {"x": 1, "y": [1, 2]}', '"o": {"y": [1, 2], "x": 1}, "n": 1', None),
    ('"n": 1, "x": [{"a": "5"}, 1]', '"n": 1, "x": [{"a": "5"}, 1.0]', None),
    ('"n": 1, "x": null', '"n": 1', "changed"),
    ('"n": 1, "x": "1.50"', '"n": 1, "x": "1.5"', "changed"),
    ('"n": 1, "x": null', '"n": 1, "x": 5', "restated"),
    ('"n": 1, "x": [1, 2]', '"n": 1, "x": [1, 3]', "restated"),
    ('"n": 1, "x": [{"a": "u", "b": 1}]', '"n": 1, "x": [{"a": "v", "b": 1}]', "changed"),
    ('"n": 1, "x": []', '"n": 1, "x": null', "changed"),
    ('"n": 1, "x": ["a"]', '"n": 1, "x": ["a", "b"]', "changed"),
    ('"n": 1, "x": "2026-01-01T00:00:00Z"', '"n": 1, "x": "2026-01-01T00:00:00.0Z"', "changed"),
    ('"n": 1, "x": "\\u0041"', '"n": 1, "x": "A"', None),
]


@pytest.mark.parametrize(("before", "after", "why"), SPELLINGS)
def test_what_says_the_same_is_no_other_version(
    warehouse: Warehouse, before: str, after: str, why: str | None
) -> None:
    for values in (before, after, after):
        warehouse.fold(warehouse.manifest(f'[{{"id": 1, {values}}}, {{"id": 2, "n": 1}}]'))
    ended = warehouse.query("SELECT why FROM past.things")
    assert ended == ([(why,)] if why else [])
    assert warehouse.query("SELECT id, changed_at FROM current.things ORDER BY id") == [
        (1, night(1) if why else night(0)),
        (2, night(0)),
    ]


def test_children_are_versioned_with_their_parent(warehouse: Warehouse) -> None:
    folded(
        warehouse,
        '[{"id": 1, "l": [1, 2]}, {"id": 2, "l": [7]}]',
        '[{"id": 1, "l": [3]}, {"id": 2, "l": [7]}]',
    )
    assert warehouse.query(
        "SELECT id, idx, value, valid_from, valid_to FROM history.things__l ORDER BY ALL"
    ) == [
        (1, 0, 1, night(0), night(1)),
        (1, 0, 3, night(1), None),
        (1, 1, 2, night(0), night(1)),
        (2, 0, 7, night(0), None),
    ]
    for moment, values in ((night(0), [1, 2, 7]), (night(1), [3, 7])):
        known = f"SELECT value FROM history.things__l_as_of('{moment}') ORDER BY value"
        assert [value for (value,) in warehouse.query(known)] == values


TWO, ONE = '[{"id": 1, "n": 1}, {"id": 2, "n": 1}]', '[{"id": 1, "n": 1}]'


def test_a_row_is_gone_when_it_is_missing_twice(warehouse: Warehouse) -> None:
    folded(warehouse, TWO, ONE)
    assert warehouse.query("SELECT id, missing_since FROM current.things ORDER BY id") == [
        (1, None),
        (2, night(1)),
    ]
    assert [(each.rows, each.missing) for each in warehouse.held().values()] == [(2, 1)]
    folded(warehouse, ONE)
    assert warehouse.query("SELECT id FROM current.things") == [(1,)]
    assert warehouse.query("SELECT id, valid_to, why FROM past.things") == [
        (2, night(1), "missing")
    ]
    folded(warehouse, TWO)
    assert warehouse.query("SELECT first_seen, changed_at FROM current.things WHERE id = 2") == [
        (night(0), night(3))
    ]
    for moment, ids in ((0, [1, 2]), (1, [1]), (2, [1]), (3, [1, 2])):
        known = f"SELECT id FROM history.things_as_of('{night(moment)}') ORDER BY id"
        assert [each for (each,) in warehouse.query(known)] == ids


def test_a_row_that_is_seen_between_is_not_gone(warehouse: Warehouse) -> None:
    folded(warehouse, TWO, ONE, TWO, ONE)
    assert warehouse.query("SELECT missing_since FROM current.things WHERE id = 2") == [(night(3),)]
    assert warehouse.query("SELECT count(*) FROM past.things") == [(0,)]


@pytest.mark.parametrize("grade", [Grade.PARTIAL, Grade.COMPLETE_FOR_UNMOVED])
def test_only_a_reading_that_is_whole_counts_what_is_missing(
    warehouse: Warehouse, grade: Grade
) -> None:
    folded(warehouse, TWO)
    warehouse.fold(warehouse.manifest(ONE, grade=grade))
    assert warehouse.query("SELECT count(missing_since) FROM current.things") == [(0,)]
    folded(warehouse, ONE)
    for records, missing in ((ONE, 1), (TWO, 0)):
        warehouse.fold(warehouse.manifest(records, grade=grade))
        found = warehouse.query("SELECT count(missing_since) FROM current.things")
        assert found == [(missing,)]


def test_a_record_set_aside_counts_as_seen_and_keeps_its_version(warehouse: Warehouse) -> None:
    rows: list[dict[str, Any]] = [{"id": f"k{number}", "n": number} for number in range(200)]
    folded(warehouse, json.dumps(rows))
    broken = json.dumps(rows[:-1])[:-1] + ', {"id": "k199", "n": NaN}]'
    for _night in range(2):
        warehouse.fold(warehouse.manifest(broken))
    assert warehouse.query(
        "SELECT n, first_seen, missing_since FROM current.things WHERE id = 'k199'"
    ) == [(199, night(0), None)]
    assert [each.quarantined for each in warehouse.held().values()] == [1]
    nameless = json.dumps(rows[:-1])[:-1] + ', {"n": NaN}]'
    warehouse.fold(warehouse.manifest(nameless))
    assert warehouse.query("SELECT count(missing_since) FROM current.things") == [(0,)]


def test_the_same_manifest_twice_touches_nothing(warehouse: Warehouse) -> None:
    manifest = warehouse.manifest(TWO)
    first = warehouse.fold(manifest)
    assert warehouse.fold(manifest) == first
    assert warehouse.query("SELECT count(*) FROM meta.folds") == [(1,)]


def test_without_a_key_what_is_gone_is_gone_and_what_is_new_is_new(warehouse: Warehouse) -> None:
    for records in ('[{"n": 1}, {"n": 1}, {"n": 2}]', '[{"n": 1.0}, {"n": 3}]', '[{"n": 1}]'):
        warehouse.fold(warehouse.manifest(records, key=None))
    assert warehouse.query(
        "SELECT n, valid_from, valid_to, why FROM history.things ORDER BY n, valid_to"
    ) == [
        (1, night(0), night(1), "missing"),
        (1, night(0), None, None),
        (2, night(0), night(1), "missing"),
        (3, night(1), None, None),
    ]
    assert warehouse.query("SELECT n, missing_since FROM current.things ORDER BY n") == [
        (1, None),
        (3, night(2)),
    ]


def test_a_counted_list_shows_what_is_missing(warehouse: Warehouse) -> None:
    folded(warehouse, TWO)
    for _night in range(2):
        warehouse.fold(warehouse.manifest(ONE, grade=Grade.COMPLETE_BY_COUNT))
    assert warehouse.query("SELECT id, last_seen FROM current.things_seen") == [(1, night(2))]
    assert warehouse.query("SELECT id, why FROM past.things") == [(2, "missing")]


def test_when_a_row_was_seen_last(warehouse: Warehouse) -> None:
    folded(warehouse, TWO, TWO, ONE)
    assert warehouse.query("SELECT id, last_seen FROM current.things_seen ORDER BY id") == [
        (1, night(2)),
        (2, night(1)),
    ]


def test_views_show_columns_that_came_later(warehouse: Warehouse) -> None:
    folded(warehouse, '[{"id": 1, "n": 1}]', '[{"id": 1, "n": 1.5, "x": ["new"]}]')
    assert warehouse.query("SELECT n, x__count FROM history.things ORDER BY n") == [
        (1, None),
        (1.5, 1),
    ]
    assert warehouse.query(f"SELECT x__count FROM history.things_as_of('{night(0)}')") == [(None,)]
    assert warehouse.query("SELECT value, valid_to FROM history.things__x") == [("new", None)]


TEN = [{"id": number} for number in range(20)]
# Of 20 rows so many stay; what may be gone; whether it is held back.
GONE = [
    (18, Guard(), False),
    (17, Guard(), True),
    (17, Guard(share=0.15), False),
    (17, Guard(accepted=True), False),
    (0, Guard(share=1.0), True),
    (0, Guard(may_be_empty=True), False),
]


@pytest.mark.parametrize(("stay", "guard", "held"), GONE)
def test_too_much_gone_is_held_back(
    warehouse: Warehouse, stay: int, guard: Guard, *, held: bool
) -> None:
    folded(warehouse, json.dumps(TEN))
    warehouse.terms = Terms(guard)
    manifest = warehouse.manifest(json.dumps(TEN[:stay]))
    if not held:
        assert warehouse.fold(manifest).rows == 20
        return
    with pytest.raises(LandingFailed, match="disappeared accept things"):
        warehouse.fold(manifest)
    assert warehouse.query("SELECT count(*), count(missing_since) FROM current.things") == [(20, 0)]


@pytest.mark.parametrize("stay", [17, 0])
def test_nothing_is_gone_that_a_partial_reading_lacks(warehouse: Warehouse, stay: int) -> None:
    folded(warehouse, json.dumps(TEN))
    warehouse.terms = Terms(Guard())
    warehouse.fold(warehouse.manifest(json.dumps(TEN[:stay]), grade=Grade.PARTIAL))
    assert warehouse.query("SELECT count(*), count(missing_since) FROM current.things") == [(20, 0)]


def test_one_row_of_a_short_list_may_be_gone(warehouse: Warehouse) -> None:
    folded(warehouse, TWO)
    warehouse.terms = Terms(Guard())
    assert warehouse.fold(warehouse.manifest(ONE)).missing == 1
