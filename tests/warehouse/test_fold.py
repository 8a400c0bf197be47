"""The fold: newest read wins and is counted, types grow wider, a failure changes nothing."""

import json
from dataclasses import replace
from decimal import Decimal

import pytest

from pipelines.errors import LandingFailed
from tests import archives
from tests.warehouse.conftest import Warehouse


def test_rows_land_with_connection_and_lineage(warehouse: Warehouse) -> None:
    manifest = warehouse.manifest('[{"id": "a", "n": 1}]', '[{"id": "b", "n": 2}]')

    folded = warehouse.fold(manifest)

    assert (folded.read, folded.duplicates, folded.rows) == (2, 0, 2)
    hashes = [page.sha256 for page in manifest.pages]
    assert warehouse.query("SELECT _connection, id, n, _page, _row, _run FROM current.things") == [
        ("default", "a", 1, hashes[0], 0, "run"),
        ("default", "b", 2, hashes[1], 0, "run"),
    ]


def test_the_newest_read_of_a_key_wins_with_its_children(warehouse: Warehouse) -> None:
    manifest = warehouse.manifest(
        '[{"id": "a", "n": 1, "l": [1, 2]}, {"id": "b", "n": 1, "l": [7]}]',
        '[{"id": "b", "n": 2, "l": [8, 9]}, {"id": "b", "n": 3, "l": []}]',
    )

    folded = warehouse.fold(manifest)

    assert (folded.read, folded.duplicates, folded.rows) == (4, 1, 2)
    assert warehouse.query("SELECT id, n FROM current.things ORDER BY id") == [("a", 1), ("b", 3)]
    assert warehouse.query("SELECT id, idx, value FROM current.things__l") == [
        ("a", 0, 1),
        ("a", 1, 2),
    ]


def test_folding_again_touches_this_connections_rows_only(warehouse: Warehouse) -> None:
    warehouse.fold(warehouse.manifest('[{"id": 1}, {"id": 2}]'))
    warehouse.fold(warehouse.manifest('[{"id": 1}]', connection="other"))

    for _night in range(2):
        warehouse.fold(warehouse.manifest('[{"id": 3}]'))

    rows = warehouse.query("SELECT _connection, id FROM current.things ORDER BY ALL")
    assert rows == [("default", 3), ("other", 1)]
    assert [fold.rows for fold in warehouse.held().values()] == [1, 1]


TEXT_BESIDE = {"id": "BIGINT", "a": "DECIMAL(38,2)", "b__count": "BIGINT", "a__text": "VARCHAR"}


def test_types_grow_wider_from_night_to_night(warehouse: Warehouse) -> None:
    nights = [
        ('[{"id": 1, "a": null}]', {"id": "BIGINT", "a": "VARCHAR"}),
        ('[{"id": 1, "a": 5}]', {"id": "BIGINT", "a": "BIGINT"}),
        ('[{"id": 1, "a": 5.25}]', {"id": "BIGINT", "a": "DECIMAL(18,2)"}),
        ('[{"id": 1, "a": 1e20}]', {"id": "BIGINT", "a": "DECIMAL(38,2)"}),
        ('[{"id": 1, "a": 7, "b": [true]}]', None),
        ('[{"id": 1, "a": "x"}]', TEXT_BESIDE),
        ('[{"id": 1}]', TEXT_BESIDE),
    ]
    for rows, types in nights:
        warehouse.fold(warehouse.manifest(rows))
        assert types is None or warehouse.types() == types
    assert warehouse.types("things__b") == {"id": "BIGINT", "idx": "BIGINT", "value": "BOOLEAN"}


KINDS = [
    ("null", "[1]"),
    ("null", '{"x": 1}'),
    ('"2026-01-01T00:00:00Z"', '"soon"'),
    ("[1, 2]", '"none"'),
    ('[{"y": 1}]', "7"),
    ('{"x": 1}', "true"),
    ("5", '"five"'),
    ("[[1]]", "null"),
]


@pytest.mark.parametrize(("before", "after"), KINDS)
@pytest.mark.parametrize("turned", [False, True])
def test_a_field_may_change_its_kind_from_night_to_night(
    warehouse: Warehouse, before: str, after: str, *, turned: bool
) -> None:
    nights = (after, before) if turned else (before, after)
    for value in (*nights, nights[0]):
        folded = warehouse.fold(warehouse.manifest(f'[{{"id": 1, "a": {value}, "n": 3}}]'))
        assert folded.rows == 1
        assert warehouse.query("SELECT id, n FROM current.things") == [(1, 3)]


def test_an_array_that_became_a_text_stands_beside_it(warehouse: Warehouse) -> None:
    warehouse.fold(warehouse.manifest('[{"id": 1, "l": [1, 2]}]'))
    warehouse.fold(warehouse.manifest('[{"id": 1, "l": "none"}]'))
    assert warehouse.query("SELECT id, l__text, l__count FROM current.things") == [
        (1, "none", None)
    ]
    assert warehouse.query("SELECT count(*) FROM current.things__l") == [(0,)]


def test_a_published_column_never_changes_its_meaning(warehouse: Warehouse) -> None:
    warehouse.fold(warehouse.manifest('[{"id": 1, "a": {"x": 1}, "a__b": 7}]'))
    warehouse.fold(warehouse.manifest('[{"id": 1, "a": {"x": 1, "b": "five"}, "a__b": 7}]'))
    assert warehouse.query("SELECT a__b FROM current.things") == [(7,)]
    others = [name for name in warehouse.types() if name.startswith("a__b_")]
    assert warehouse.query(f"SELECT {others[0]} FROM current.things") == [("five",)]


KEYS = [
    ('[{"id": 1}]', '[{"id": "1"}]', 2),
    ('[{"id": 1}, {"id": 2}]', '[{"id": 1.0}, {"id": 2.5}]', 3),
    ('[{"id": "1.1"}, {"id": "1.10"}]', "[]", 2),
    ('[{"id": "2026-01-01T00:00:00Z"}]', '[{"id": "2026-01-01T00:00:00+00:00"}]', 2),
    ('[{"id": "1.5"}]', '[{"id": 1.5}]', 2),
]


@pytest.mark.parametrize(("first", "second", "rows"), KEYS)
def test_keys_are_equal_only_where_they_were_sent_equal(
    warehouse: Warehouse, first: str, second: str, rows: int
) -> None:
    folded = warehouse.fold(warehouse.manifest(first, second))
    assert folded.rows == rows
    distinct = warehouse.query("SELECT count(*), count(DISTINCT id) FROM current.things")
    assert distinct == [(rows, rows)]


# Two pages, and how many of their records are duplicates, and set aside as conflicts.
TWICE = [
    ('[{"id": 1, "a": 1}, {"id": 1, "a": 9}, {"id": 2}]', '[{"id": 2}]', 1, 1),
    ('[{"id": 1, "a": 1}, {"id": 1, "a": 1}]', "[]", 1, 0),
    # It changed between the two readings, as lists do.
    ('[{"id": 1, "a": 1}, {"id": 2}]', '[{"id": 1, "a": 9}, {"id": 2}]', 2, 0),
    ('[{"id": 1, "a": 9}, {"id": 1, "a": 9}]', '[{"id": 1, "a": 1}, {"id": 1, "a": 9}]', 2, 1),
]


@pytest.mark.parametrize(("first", "second", "duplicates", "conflicts"), TWICE)
def test_a_key_twice_in_one_page_with_other_content_is_a_conflict(
    warehouse: Warehouse, first: str, second: str, duplicates: int, conflicts: int
) -> None:
    folded = warehouse.fold(warehouse.manifest(first, second))
    assert (folded.duplicates, folded.conflicts) == (duplicates, conflicts)
    wanted = 9 if '"a": 9' in first + second else 1
    assert warehouse.query("SELECT a FROM current.things WHERE id = 1") == [(wanted,)]


def test_a_wider_type_keeps_the_values_of_other_connections(warehouse: Warehouse) -> None:
    warehouse.fold(warehouse.manifest('[{"id": 1, "a": 1.25}]'))
    warehouse.fold(warehouse.manifest('[{"id": 1, "a": 0.0001}]', connection="other"))

    rows = warehouse.query("SELECT a FROM current.things ORDER BY _connection")
    assert rows == [(Decimal("1.2500"),), (Decimal("0.0001"),)]


FAILURES = [
    ('[{"id": 1}, {"n": 5}, {}]', "2 of 4 rows set aside.*row 1 of .*id is missing, expected"),
    ('[{"id": null}, 5]', "2 of 3 rows set aside.*row 0 of .*id is null"),
    ('[{"id": 1, "x": NaN}, {"id": 2, "x": 1e999}]', "x is NaN, expected a number"),
]


@pytest.mark.parametrize(("rows", "words"), FAILURES)
def test_a_fold_that_fails_changes_nothing(warehouse: Warehouse, rows: str, words: str) -> None:
    warehouse.fold(warehouse.manifest('[{"id": 1, "n": 1}]'))
    before = warehouse.registered()

    with pytest.raises(LandingFailed, match=words) as failure:
        warehouse.fold(warehouse.manifest('[{"id": 9, "new": 1}]', rows))

    assert "offset 100" in str(failure.value)
    assert warehouse.query("SELECT id, n FROM current.things") == [(1, 1)]
    assert warehouse.registered() == before
    assert [fold.rows for fold in warehouse.held().values()] == [1]


def test_an_empty_list_is_an_empty_table(warehouse: Warehouse) -> None:
    folded = warehouse.fold(warehouse.manifest("[]"))
    assert folded.rows == 0
    assert warehouse.query("SELECT count(*) FROM current.things") == [(0,)]
    warehouse.fold(warehouse.manifest('[{"id": 1}]'))
    assert warehouse.query("SELECT id FROM current.things") == [(1,)]


def test_a_lost_page_is_a_failure_and_no_short_table(warehouse: Warehouse) -> None:
    manifest = warehouse.manifest('[{"id": 1}]', '[{"id": 2}]')
    lost = manifest.pages[1].sha256
    archives.lost(warehouse.archive, f"pages/{lost[:2]}/{lost}.json.zst")
    with pytest.raises(LandingFailed, match=lost):
        warehouse.fold(manifest)


def test_many_pages_with_overlap_land_once_each(warehouse: Warehouse) -> None:
    pages = [
        json.dumps([{"id": n, "seen": number} for n in range(number * 8, number * 8 + 10)])
        for number in range(40)
    ]

    folded = warehouse.fold(warehouse.manifest(*pages))

    assert (folded.read, folded.duplicates, folded.rows) == (400, 78, 322)
    assert warehouse.query("SELECT count(*), count(DISTINCT id) FROM current.things") == [
        (322, 322)
    ]
    assert warehouse.query("SELECT seen FROM current.things WHERE id = 8") == [(1,)]


def test_a_night_that_needs_more_memory_says_which_setting_to_raise(warehouse: Warehouse) -> None:
    row = {"id": 1, **{f"c{number}": "text" for number in range(60)}}
    manifest = warehouse.manifest(json.dumps([row]))
    narrow, warehouse.work = warehouse.work, replace(warehouse.work, memory_limit="4MB")
    with pytest.raises(LandingFailed, match="raise PARTNER_SYNC_MEMORY_LIMIT"):
        warehouse.fold(manifest)
    warehouse.work = narrow
    assert warehouse.fold(manifest).rows == 1
