"""Quarantine: what cannot be landed costs its own row, is kept, named and counted."""

import json

import pytest

from pipelines.errors import LandingFailed, WarehouseDamaged
from pipelines.state.proof import Grade
from pipelines.warehouse import meta
from tests.warehouse.conftest import Warehouse


def listed(first: int, rows: int, *wrong: str) -> str:
    """Return a page of sound records, the last ones replaced by the text of wrong ones."""
    sound = [json.dumps({"id": f"k{first + row}", "n": row}) for row in range(rows - len(wrong))]
    return f"[{', '.join([*sound, *wrong])}]"


def test_a_record_that_cannot_be_read_is_set_aside_and_named(warehouse: Warehouse) -> None:
    manifest = warehouse.manifest(listed(0, 50, '{"id": "bad", "n": [{"m": NaN}]}'))

    folded = warehouse.fold(manifest)

    assert (folded.read, folded.duplicates, folded.quarantined, folded.rows) == (50, 0, 1, 49)
    assert warehouse.query(
        "SELECT _connection, _key, _page, _row, _run, path, expected, got, reason "
        "FROM quarantine.things"
    ) == [
        (
            "default",
            "bad",
            manifest.pages[0].sha256,
            49,
            "run",
            "n[0].m",
            "a number",
            "NaN",
            "n[0].m is NaN, expected a number",
        )
    ]
    assert warehouse.query("SELECT count(*) FROM current.things WHERE id = 'bad'") == [(0,)]


WRONG = ['{"n": 1}', "null", '{"id": "a", "id": "b"}', '{"id": "a", "n": 1e999}', '{"id": {}}']
WRONG += ['{"id": true}']


@pytest.mark.parametrize("wrong", WRONG)
def test_whatever_is_wrong_costs_one_row(warehouse: Warehouse, wrong: str) -> None:
    folded = warehouse.fold(warehouse.manifest(listed(0, 9), listed(100, 9, wrong)))
    assert (folded.quarantined, folded.rows) == (1, 17)
    assert warehouse.query("SELECT count(*) FROM current.things") == [(17,)]
    assert warehouse.query("SELECT _row FROM quarantine.things") == [(8,)]


# Rows read, how many of them are wrong, and whether the stream may be published without them.
SHARES = [
    (1, 1, False),
    (2, 1, True),
    (2, 2, False),
    (50, 1, True),
    (50, 2, False),
    (199, 2, False),
    (200, 2, True),
    (500, 5, True),
    (500, 6, False),
]


@pytest.mark.parametrize(("rows", "wrong", "passes"), SHARES)
def test_one_row_or_one_percent_is_set_aside_and_no_more(
    warehouse: Warehouse, rows: int, wrong: int, *, passes: bool
) -> None:
    manifest = warehouse.manifest(listed(0, rows, *(["{}"] * wrong)))
    if passes:
        assert warehouse.fold(manifest).quarantined == wrong
        return
    words = f"^things: {wrong} of {rows} rows set aside. .* row {rows - wrong} of the page at "
    with pytest.raises(LandingFailed, match=words):
        warehouse.fold(manifest)
    assert not warehouse.held()


def test_a_row_that_was_read_twice_is_set_aside_once(warehouse: Warehouse) -> None:
    """Overlapping pages read it twice: the same place in the list is the same row."""
    wrong = '{"id": "bad", "n": NaN}'
    first, second = listed(0, 100, wrong), f"[{wrong}]"
    manifest = warehouse.manifest(first, second, offsets=(0, 99))

    folded = warehouse.fold(manifest)

    assert (folded.read, folded.duplicates, folded.quarantined, folded.rows) == (101, 1, 1, 99)
    assert warehouse.query("SELECT _page, _row FROM quarantine.things") == [
        (manifest.pages[1].sha256, 0)
    ]


# Two pages that meet in one record, read at the same place or one further on.
AGAIN = [
    ('{"id": "bad", "n": NaN}', 99, 1),
    ('{"id": "bad", "n": NaN}', 100, 1),
    ('{"n": NaN}', 99, 1),
    ('{"n": NaN}', 100, 2),  # without a key it may be another one
]


@pytest.mark.parametrize(("wrong", "offset", "aside"), AGAIN)
def test_what_was_read_again_is_told_by_its_key_else_by_text_and_place(
    warehouse: Warehouse, wrong: str, offset: int, aside: int
) -> None:
    manifest = warehouse.manifest(
        listed(0, 100, wrong), f"[{wrong}, {listed(200, 200)[1:]}", offsets=(0, offset)
    )
    folded = warehouse.fold(manifest)
    assert (folded.quarantined, folded.duplicates) == (aside, 2 - aside)


def test_a_row_that_changes_its_place_is_set_aside_once(warehouse: Warehouse) -> None:
    """A list whose order changes shows a row without a key at another place in each pass."""
    wrong = '{"n": 7}'
    pages = [listed(0, 99 - at, wrong) for at in range(4)]
    manifest = warehouse.manifest(*pages, offsets=(0,) * 4, grade=Grade.COMPLETE_BY_COUNT)
    folded = warehouse.fold(manifest)
    assert (folded.quarantined, folded.rows) == (1, 98)


GOOD, BAD = '{"id": "r", "n": 1}', '{"id": "r", "n": NaN}'


@pytest.mark.parametrize(("older", "newer", "aside"), [(GOOD, BAD, 1), (BAD, GOOD, 0)])
def test_of_a_sound_and_a_wrong_reading_the_newer_counts(
    warehouse: Warehouse, older: str, newer: str, aside: int
) -> None:
    manifest = warehouse.manifest(listed(0, 100, older), f"[{newer}]", offsets=(0, 99))
    folded = warehouse.fold(manifest)
    assert (folded.rows, folded.quarantined, folded.duplicates) == (100 - aside, aside, 1)
    there = warehouse.query("SELECT count(*) FROM current.things WHERE id = 'r'")
    assert there == [(1 - aside,)]


def test_each_fold_replaces_what_its_connection_had_in_quarantine(warehouse: Warehouse) -> None:
    warehouse.fold(warehouse.manifest(listed(0, 9, "1")))
    warehouse.fold(warehouse.manifest(listed(0, 9, "2"), connection="other"))
    warehouse.fold(warehouse.manifest(listed(0, 9)))
    assert warehouse.query("SELECT _connection FROM quarantine.things") == [("other",)]
    assert [fold.quarantined for fold in warehouse.held().values()] == [0, 1]


def test_rows_lost_from_quarantine_are_noticed(warehouse: Warehouse) -> None:
    warehouse.fold(warehouse.manifest(listed(0, 9, "1")))
    warehouse.query("DELETE FROM quarantine.things")
    with (
        warehouse.work.writing() as writer,
        pytest.raises(
            WarehouseDamaged, match=r"0 in quarantine rows, but .* 1 in quarantine were folded"
        ),
    ):
        meta.verify(writer, meta.held(writer))


def test_without_a_key_records_are_set_aside_too(warehouse: Warehouse) -> None:
    folded = warehouse.fold(warehouse.manifest('[{"a": 1}, {"a": NaN}, {"a": 1}]', key=None))
    assert (folded.rows, folded.quarantined) == (2, 1)
    assert warehouse.query("SELECT _key, _row FROM quarantine.things") == [(None, 1)]


def test_a_wrong_record_changes_no_columns(warehouse: Warehouse) -> None:
    warehouse.fold(warehouse.manifest('[{"id": 1, "a": 2}]'))
    warehouse.fold(warehouse.manifest('[{"id": 1, "a": 2}, {"id": 2, "a": "x", "b": 1, "c": NaN}]'))
    assert warehouse.types() == {"id": "BIGINT", "a": "BIGINT"}


def test_true_and_false_identify_nothing(warehouse: Warehouse) -> None:
    with pytest.raises(LandingFailed, match="id is true or false, expected what identifies"):
        warehouse.fold(warehouse.manifest('[{"id": true, "n": 1}, {"id": true, "n": 2}]'))
