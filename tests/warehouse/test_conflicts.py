"""Conflicts: of records with one key and other values one is loaded, the others are set aside."""

import json
from collections.abc import Iterable

import msgspec
import pytest

from pipelines.state.decisions import Kind
from pipelines.state.proof import Grade
from pipelines.warehouse.archive import Manifest
from pipelines.warehouse.awaiting import Awaited
from pipelines.warehouse.disappeared import Guard
from pipelines.warehouse.fold import Terms
from pipelines.warehouse.meta import Fold
from tests.warehouse.conftest import Warehouse

REASON = "another record has the same key and other values"
SET_ASIDE = "SELECT _key, _page, _row, reason FROM quarantine.things ORDER BY ALL"


def page(rows: Iterable[tuple[int, int]]) -> str:
    """Return a page of records: their keys, and a number each."""
    return json.dumps([{"id": f"k{key}", "n": number, "key": "page"} for key, number in rows])


def sound(first: int, rows: int) -> list[tuple[int, int]]:
    """Return records with keys of their own."""
    return [(key, 0) for key in range(first, first + rows)]


def counts(folded: Fold) -> tuple[int, ...]:
    """Return what a night with nothing new has zeros in."""
    return folded.added, folded.changed, folded.restated, folded.gone, folded.missing


def loaded(warehouse: Warehouse, key: int) -> list[tuple[object, ...]]:
    """Return the values that are loaded under a key."""
    return warehouse.query(f"SELECT n FROM current.things WHERE id = 'k{key}'")


def test_of_two_records_with_one_key_the_later_in_the_list_is_loaded(warehouse: Warehouse) -> None:
    manifest = warehouse.manifest(page([*sound(0, 98), (7, 1), (200, 0)]))

    folded = warehouse.fold(manifest)

    assert loaded(warehouse, 7) == [(1,)]
    assert warehouse.query(SET_ASIDE) == [("k7", manifest.pages[0].sha256, 7, REASON)]
    found = (folded.read, folded.duplicates, folded.conflicts, folded.quarantined, folded.rows)
    assert found == (100, 0, 1, 1, 99)


def test_the_second_night_with_the_same_pair_changes_nothing(warehouse: Warehouse) -> None:
    night = page([*sound(0, 98), (7, 1)])
    warehouse.fold(warehouse.manifest(night))

    folded = warehouse.fold(warehouse.manifest(night))

    assert counts(folded) == (0, 0, 0, 0, 0)
    assert (folded.conflicts, folded.quarantined, folded.rows) == (1, 1, 98)
    assert len(warehouse.query(SET_ASIDE)) == 1
    assert warehouse.query("SELECT count(*) FROM past.things") == [(0,)]


def test_the_record_that_is_loaded_stays_wherever_it_stands(warehouse: Warehouse) -> None:
    """The pair has changed places, and another record came with the key: still the first counts."""
    warehouse.fold(warehouse.manifest(page([*sound(0, 98), (7, 1)])))
    manifest = warehouse.manifest(page([(7, 1), *sound(0, 98), (7, 2)]))

    folded = warehouse.fold(manifest)

    assert loaded(warehouse, 7) == [(1,)]
    assert counts(folded) == (0, 0, 0, 0, 0)
    assert [row for _, _, row, _ in warehouse.query(SET_ASIDE)] == [8, 99]


def test_a_pair_that_was_one_record_keeps_what_is_loaded(warehouse: Warehouse) -> None:
    warehouse.fold(warehouse.manifest(page(sound(0, 98))))
    folded = warehouse.fold(warehouse.manifest(page([*sound(0, 98), (7, 1)])))
    assert (loaded(warehouse, 7), counts(folded)) == ([(0,)], (0, 0, 0, 0, 0))


def test_where_the_pair_is_one_again_what_is_left_is_loaded(warehouse: Warehouse) -> None:
    warehouse.fold(warehouse.manifest(page([*sound(0, 98), (7, 1)])))
    folded = warehouse.fold(warehouse.manifest(page(sound(0, 98))))
    assert (loaded(warehouse, 7), warehouse.query(SET_ASIDE)) == ([(0,)], [])
    assert counts(folded) == (0, 0, 1, 0, 0)


def test_values_that_differ_between_two_answers_are_a_change(warehouse: Warehouse) -> None:
    first, second = page(sound(0, 50)), page([*sound(50, 50), (7, 1)])
    folded = warehouse.fold(warehouse.manifest(first, second))
    assert loaded(warehouse, 7) == [(1,)]
    assert (folded.duplicates, folded.conflicts, folded.quarantined) == (1, 0, 0)


def repeated(manifest: Manifest, *places: tuple[int, int]) -> Manifest:
    """Return a manifest of which some places were proven to be repeats."""
    return msgspec.structs.replace(manifest, repeated=places)


def test_a_repeat_that_was_proven_is_a_conflict_and_no_change(warehouse: Warehouse) -> None:
    first, second = page(sound(0, 50)), page([*sound(50, 50), (7, 1)])
    for night, added in enumerate((100, 0)):
        manifest = repeated(warehouse.manifest(first, second), (0, 7))
        folded = warehouse.fold(manifest)
        assert loaded(warehouse, 7) == [(1,)], night
        assert counts(folded) == (added, 0, 0, 0, 0)
        assert warehouse.query(SET_ASIDE) == [("k7", manifest.pages[0].sha256, 7, REASON)]


def test_the_later_in_the_list_is_loaded_though_it_was_read_first(warehouse: Warehouse) -> None:
    early, late = page([*sound(50, 50), (7, 1)]), page(sound(0, 50))
    manifest = repeated(warehouse.manifest(early, late, offsets=(50, 0)), (1, 7))
    warehouse.fold(manifest)
    assert loaded(warehouse, 7) == [(1,)]


def test_repeats_that_say_the_same_are_one_row(warehouse: Warehouse) -> None:
    first, second = page(sound(0, 50)), page([*sound(50, 50), (7, 0), (51, 0)])
    for added in (100, 0):
        folded = warehouse.fold(repeated(warehouse.manifest(first, second), (0, 7)))
        assert (folded.duplicates, folded.conflicts, folded.quarantined) == (2, 0, 0)
        assert (folded.rows, counts(folded)) == (100, (added, 0, 0, 0, 0))


def test_what_was_read_before_the_conflict_was_seen_is_out_of_date(warehouse: Warehouse) -> None:
    """A record of a pair changed between two passes: what it said before is not set aside."""
    passes = [page([*sound(0, 98), (7, 1)]), page([*sound(0, 98), (7, 2)])]
    manifest = warehouse.manifest(*passes, grade=Grade.COMPLETE_BY_COUNT, offsets=(0, 0))

    folded = warehouse.fold(manifest)

    assert loaded(warehouse, 7) == [(2,)]
    assert warehouse.query(SET_ASIDE) == [("k7", manifest.pages[1].sha256, 7, REASON)]
    assert (folded.read, folded.duplicates, folded.rows) == (198, 99, 98)


def test_a_list_read_in_passes_is_the_same_every_night(warehouse: Warehouse) -> None:
    """The order moves, and each pass shows the pair."""
    rows = [*sound(0, 98), (7, 1)]
    passes = [page(rows), page(rows[::-1]), page(rows[50:] + rows[:50])]
    for added in (98, 0, 0):
        manifest = warehouse.manifest(*passes, grade=Grade.COMPLETE_BY_COUNT, offsets=(0, 0, 0))
        folded = warehouse.fold(manifest)
        assert counts(folded) == (added, 0, 0, 0, 0)
        assert (folded.duplicates, folded.conflicts, folded.rows) == (198, 1, 98)
        assert len(warehouse.query(SET_ASIDE)) == 1


# Keys, how many of them are in conflict, and whether the stream may be published.
SHARES = [(40, 1, True), (40, 2, False), (500, 10, True), (500, 11, False)]


@pytest.mark.parametrize(("keys", "wrong", "passes"), SHARES)
def test_two_percent_of_the_keys_may_be_in_conflict_and_no_more(
    warehouse: Warehouse, keys: int, wrong: int, *, passes: bool
) -> None:
    manifest = warehouse.manifest(page([*sound(0, keys), *((key, 1) for key in range(wrong))]))
    if passes:
        assert warehouse.fold(manifest).quarantined == wrong
        return
    words = rf"^things: {wrong} of {keys} keys \(id\) are shared by records with different values"
    with pytest.raises(Awaited, match=words) as held:
        warehouse.fold(manifest)
    assert (held.value.awaiting.kind, held.value.awaiting.count) == (Kind.QUARANTINE, wrong)
    assert not warehouse.held()


def test_a_key_in_use_with_too_many_conflicts_waits_and_overwrites_nothing(
    warehouse: Warehouse,
) -> None:
    warehouse.fold(warehouse.manifest(page(sound(0, 100))))
    manifest = warehouse.manifest(page([*sound(0, 100), *((key, 1) for key in range(3))]))
    with pytest.raises(Awaited, match="row 100 of the page at offset 0"):
        warehouse.fold(manifest)
    assert warehouse.query("SELECT sum(n), count(*) FROM current.things") == [(0, 100)]

    warehouse.terms = Terms(Guard(accepted=True), aside=3)
    folded = warehouse.fold(manifest)

    assert (folded.conflicts, counts(folded)) == (3, (0, 0, 0, 0, 0))
    assert warehouse.query("SELECT sum(n), count(*) FROM current.things") == [(0, 100)]


def test_conflicts_do_not_use_up_what_may_be_set_aside_otherwise(warehouse: Warehouse) -> None:
    rows = json.loads(page([*sound(0, 199), (7, 1), (8, 1), (9, 1)]))
    text = json.dumps([*rows, {"id": "bad", "n": float("nan")}, {"n": 2}])
    folded = warehouse.fold(warehouse.manifest(text))
    assert (folded.conflicts, folded.quarantined, folded.rows) == (3, 5, 199)


def test_the_same_values_in_another_spelling_are_no_conflict(warehouse: Warehouse) -> None:
    first = '[{"id": 1, "n": 1.5, "t": "a"}, {"t": "a", "n": 1.50, "id": 1}]'
    for added in (1, 0):
        folded = warehouse.fold(warehouse.manifest(first))
        assert (folded.duplicates, folded.conflicts, folded.quarantined) == (1, 0, 0)
        assert (folded.rows, counts(folded)) == (1, (added, 0, 0, 0, 0))


def test_children_of_what_is_set_aside_are_not_loaded(warehouse: Warehouse) -> None:
    lists = [{"id": each, "l": [each]} for each in range(50)] + [{"id": 3, "l": [7, 8]}]
    warehouse.fold(warehouse.manifest(json.dumps(lists)))
    warehouse.fold(warehouse.manifest(json.dumps(lists[::-1])))
    assert warehouse.query("SELECT value FROM current.things__l WHERE id = 3") == [(7,), (8,)]


def test_without_a_key_nothing_is_in_conflict(warehouse: Warehouse) -> None:
    rows = '[{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1, "b": 2.0}]'
    folded = warehouse.fold(warehouse.manifest(rows, rows, key=None))
    assert (folded.conflicts, folded.quarantined) == (0, 0)
