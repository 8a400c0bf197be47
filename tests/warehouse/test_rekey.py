"""Keys that change their kind: set aside, or text from a person's word on, with their history."""

import json
from dataclasses import replace
from typing import Any

import pytest

from pipelines.state.decisions import Kind
from pipelines.warehouse.awaiting import Awaited
from pipelines.warehouse.evolution import Policy
from tests.warehouse.conftest import Warehouse

NUMBERS: list[dict[str, Any]] = [
    {"id": 1, "n": 1, "l": [{"x": 1}]},
    {"id": 2, "n": 1},
    {"id": 30, "n": 1},
]
TEXTS = [{"id": "1", "n": 1, "l": [{"x": 1}]}, {"id": "2", "n": 2}, {"id": "a", "n": 3}]
HISTORY = "SELECT id, n, valid_to IS NULL, why FROM history.things ORDER BY id, valid_from"


def fold(warehouse: Warehouse, rows: list[Any], *, accepted: bool = False, **how: Any) -> Any:
    """Fold a night that is held back until a person accepts it, where they do."""
    manifest = warehouse.manifest(json.dumps(rows), **how)
    if accepted:
        with pytest.raises(Awaited) as held:
            warehouse.fold(manifest)
        assert held.value.awaiting.kind is Kind.SCHEMA
        terms = warehouse.terms
        warehouse.terms = replace(terms, wider=True)
        folded = warehouse.fold(manifest)
        warehouse.terms = terms
        return folded
    return warehouse.fold(manifest)


def test_keys_of_another_kind_wait_for_a_word_about_the_columns(warehouse: Warehouse) -> None:
    fold(warehouse, NUMBERS)
    with pytest.raises(
        Awaited, match=r"3 of 3 rows set aside.*keep the text.*schema accept things"
    ):
        fold(warehouse, TEXTS)
    assert warehouse.types()["id"] == "BIGINT"
    assert warehouse.query("SELECT id FROM current.things ORDER BY id") == [(1,), (2,), (30,)]


def test_accepted_keys_are_text_and_the_records_the_same(warehouse: Warehouse) -> None:
    fold(warehouse, NUMBERS)
    folded = fold(warehouse, TEXTS, accepted=True)

    assert (folded.added, folded.changed, folded.restated, folded.missing) == (1, 1, 1, 1)
    assert warehouse.types()["id"] == "VARCHAR"
    assert warehouse.query(HISTORY) == [
        ("1", 1, False, "changed"),
        ("1", 1, True, None),
        ("2", 1, False, "restated"),
        ("2", 2, True, None),
        ("30", 1, True, None),
        ("a", 3, True, None),
    ]
    assert warehouse.query("SELECT id, idx, x FROM history.things__l ORDER BY valid_from") == [
        ("1", 0, 1),
        ("1", 0, 1),
    ]
    assert warehouse.query(
        "SELECT column_name, before, after FROM meta.schema_changes WHERE what = 'widened'"
    ) == [("id", "BIGINT", "VARCHAR")]


def test_a_list_that_mixes_kinds_from_then_on_is_folded(warehouse: Warehouse) -> None:
    fold(warehouse, NUMBERS)
    fold(warehouse, [*TEXTS, {"id": 30, "n": 1}], accepted=True)
    folded = fold(warehouse, [*NUMBERS, {"id": "a", "n": 4}, {"id": 7.50}])
    assert (folded.added, folded.missing, folded.quarantined) == (1, 0, 0)
    keys = warehouse.query("SELECT id FROM current.things ORDER BY id")
    assert keys == [("1",), ("2",), ("30",), ("7.5",), ("a",)]


def test_texts_that_become_numbers_are_accepted_too(warehouse: Warehouse) -> None:
    fold(warehouse, TEXTS)
    folded = fold(warehouse, NUMBERS, accepted=True)
    assert (folded.added, folded.missing) == (1, 1)
    assert warehouse.query("SELECT count(*) FROM past.things WHERE id = '1'") == [(1,)]


def test_decimal_keys_lose_their_trailing_zeros(warehouse: Warehouse) -> None:
    fold(warehouse, [{"id": 1.25}, {"id": 1.5}, {"id": 20}])
    folded = fold(warehouse, [{"id": "1.25"}, {"id": "1.5"}, {"id": "20"}], accepted=True)
    assert (folded.added, folded.missing, folded.changed) == (0, 0, 3)


def test_the_other_connection_keeps_its_rows(warehouse: Warehouse) -> None:
    fold(warehouse, NUMBERS)
    fold(warehouse, NUMBERS, connection="other")
    fold(warehouse, TEXTS, accepted=True)
    folded = fold(warehouse, NUMBERS, connection="other")
    assert (folded.added, folded.changed, folded.missing, folded.rows) == (0, 0, 0, 3)
    changed = [{**NUMBERS[0], "n": 9}, *NUMBERS[1:]]
    assert fold(warehouse, changed, connection="other").restated == 1


def test_rows_that_nothing_mends_wait_for_a_word_of_their_own(warehouse: Warehouse) -> None:
    fold(warehouse, NUMBERS)
    wrong = [{"id": row, "x": float("nan")} for row in range(5, 8)]
    with pytest.raises(Awaited) as held:
        fold(warehouse, [*wrong, *TEXTS])
    assert held.value.awaiting.kind is Kind.QUARANTINE


def test_frozen_columns_and_a_new_kind_of_key_take_one_word(warehouse: Warehouse) -> None:
    warehouse.terms = replace(warehouse.terms, policy=Policy.FREEZE)
    fold(warehouse, NUMBERS)
    folded = fold(warehouse, [{**row, "new": 1} for row in TEXTS], accepted=True)
    assert folded.quarantined == 0
    assert warehouse.types()["id"] == "VARCHAR"


def test_each_row_set_aside_says_what_can_be_done(warehouse: Warehouse) -> None:
    many = [{"id": row} for row in range(300)]
    fold(warehouse, many)
    fold(warehouse, [*many, {"id": "x"}, {"id": 300, "n": float("nan")}])
    mend = "the service has to mend it; each sync reads it again"
    command = "`partner-sync schema accept things --connection default` lets keys be text"
    assert warehouse.query("SELECT _key, remedy FROM quarantine.things ORDER BY _key") == [
        ("300", mend),
        ("x", f"{mend}. Where more than one in 100 rows are so, {command}"),
    ]
