"""Under each policy: a column that appears, one that becomes text, one that disappears."""

import json
from dataclasses import replace

import pytest

from pipelines.errors import LandingFailed
from pipelines.state.decisions import Kind
from pipelines.warehouse import awaiting, comments, dictionary, evolution
from pipelines.warehouse.awaiting import Awaited
from pipelines.warehouse.evolution import Policy, What
from tests.warehouse.conftest import Warehouse

FIRST = '[{"id": 1, "n": 5, "t": "x"}, {"id": 2, "n": 6, "t": "y"}]'
APPEARS = '[{"id": 1, "n": 5, "t": "x", "new": 7.5}, {"id": 2, "n": 6, "t": "y"}]'
TEXT = '[{"id": 1, "n": "five", "t": "x"}, {"id": 2, "n": 6, "t": "y"}]'
WIDER = '[{"id": 1, "n": 5.25, "t": "x"}, {"id": 2, "n": 6, "t": "y"}]'
GONE = '[{"id": 1, "t": "x"}, {"id": 2, "t": "y"}]'
COLUMNS = {"id": "BIGINT", "n": "BIGINT", "t": "VARCHAR"}
# A policy, the second night, the columns then, and what is said: column, what, values.
CASES = [
    ("evolve", APPEARS, {**COLUMNS, "new": "DECIMAL(18,1)"}, [("new", "new", 0)]),
    ("evolve", TEXT, {**COLUMNS, "n__text": "VARCHAR"}, [("n__text", "text", 1)]),
    ("evolve", WIDER, {**COLUMNS, "n": "DECIMAL(18,2)"}, [("n", "widened", 0)]),
    ("evolve", GONE, COLUMNS, [("n", "stopped", 2)]),
    ("discard", APPEARS, COLUMNS, [("", "discarded", 1)]),
    ("discard", TEXT, {**COLUMNS, "n__text": "VARCHAR"}, [("n__text", "text", 1)]),
    ("discard", WIDER, {**COLUMNS, "n": "DECIMAL(18,2)"}, [("n", "widened", 0)]),
    ("discard", GONE, COLUMNS, [("n", "stopped", 2)]),
    ("freeze", FIRST, COLUMNS, []),
    ("freeze", GONE, COLUMNS, [("n", "stopped", 2)]),
]
HELD = [
    (APPEARS, r"things\.new is new \(DECIMAL\(18,1\)\)"),
    (TEXT, r"things\.n__text holds 1 values of \$\.n that fit no column"),
    (WIDER, r"things\.n was BIGINT and is DECIMAL\(18,2\)"),
]


def under(warehouse: Warehouse, policy: str) -> None:
    warehouse.terms = replace(warehouse.terms, policy=Policy(policy))


def said(warehouse: Warehouse) -> list[tuple[str, str, int]]:
    """Return what was said about the second manifest."""
    with warehouse.work.writing() as writer:
        changes = evolution.recorded(writer, "things")
    first = changes[0].manifest
    assert {each.what for each in changes if each.manifest == first} == {What.NEW}
    return [
        (each.column, each.what.value, each.count) for each in changes if each.manifest != first
    ]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_a_policy_lets_happen(
    warehouse: Warehouse, case: tuple[str, str, dict[str, str], list[tuple[str, str, int]]]
) -> None:
    policy, second, types, changes = case
    under(warehouse, policy)
    warehouse.fold(warehouse.manifest(FIRST))

    warehouse.fold(warehouse.manifest(second))

    assert warehouse.types() == types
    assert said(warehouse) == changes


@pytest.mark.parametrize(("second", "words"), HELD)
def test_frozen_columns_hold_a_manifest_back_until_a_person_accepts(
    warehouse: Warehouse, second: str, words: str
) -> None:
    under(warehouse, "freeze")
    warehouse.fold(warehouse.manifest(FIRST))
    before = warehouse.registered()
    manifest = warehouse.manifest(second)

    with pytest.raises(Awaited, match=f"{words}.*schema accept things --conn") as held:
        warehouse.fold(manifest)

    assert warehouse.types() == COLUMNS
    assert warehouse.query("SELECT n FROM current.things ORDER BY id") == [(5,), (6,)]
    assert warehouse.registered() == before
    assert (held.value.awaiting.kind, held.value.awaiting.count) == (Kind.SCHEMA, 1)
    warehouse.terms = replace(warehouse.terms, wider=True)
    warehouse.fold(manifest)
    assert warehouse.types() != COLUMNS
    assert len(said(warehouse)) == 1


def test_more_digits_of_the_same_type_change_no_frozen_column(warehouse: Warehouse) -> None:
    under(warehouse, "freeze")
    warehouse.fold(warehouse.manifest(FIRST))
    warehouse.fold(warehouse.manifest(FIRST.replace("5", "500000")))
    assert warehouse.query("SELECT n FROM current.things ORDER BY id") == [(500000,), (6,)]


def test_a_column_that_disappears_from_a_page_on_keeps_its_values_before(
    warehouse: Warehouse,
) -> None:
    warehouse.fold(warehouse.manifest(FIRST))
    gone = '[{"id": 3, "t": "z"}]'
    warehouse.fold(warehouse.manifest(FIRST, gone))
    rows = warehouse.query("SELECT id, n, t FROM current.things ORDER BY id")
    assert rows == [(1, 5, "x"), (2, 6, "y"), (3, None, "z")]
    assert warehouse.types() == COLUMNS


def test_a_person_lets_many_rows_be_set_aside_and_no_more(warehouse: Warehouse) -> None:
    sound = [json.dumps({"id": number}) for number in range(50)]
    wrong = [f'{{"id": {number}, "x": NaN}}' for number in range(50, 60)]
    manifest = warehouse.manifest(f"[{', '.join([*sound, *wrong])}]")
    with pytest.raises(Awaited, match=r"10 of 60 rows set aside.*quarantine accept things") as held:
        warehouse.fold(manifest)
    assert held.value.awaiting.count == 10

    warehouse.terms = replace(warehouse.terms, aside=9)
    with pytest.raises(LandingFailed):
        warehouse.fold(manifest)
    warehouse.terms = replace(warehouse.terms, aside=10)
    folded = warehouse.fold(manifest)

    assert (folded.rows, folded.quarantined) == (50, 10)


def test_what_awaits_a_word_is_noted_once_and_forgotten(warehouse: Warehouse) -> None:
    under(warehouse, "freeze")
    warehouse.fold(warehouse.manifest(FIRST))
    with pytest.raises(Awaited) as held:
        warehouse.fold(warehouse.manifest(APPEARS))
    with warehouse.work.writing() as writer:
        for _ in range(2):
            awaiting.note(writer, held.value.awaiting)
        assert awaiting.awaited(writer, Kind.SCHEMA) == [held.value.awaiting]
        assert awaiting.awaited(writer) == [held.value.awaiting]
        assert awaiting.awaited(writer, Kind.QUARANTINE) == []
        awaiting.forget(writer, "default", "things")
        assert awaiting.awaited(writer, Kind.SCHEMA) == []


def test_every_table_and_column_is_in_the_dictionary(warehouse: Warehouse) -> None:
    record = '{"id": 1, "o": {"unitPrice": 1.5}, "at": "2026-01-01T00:00:00Z", "l": [{"a b": 1}]}'
    first = warehouse.manifest(f"[{record}]")
    warehouse.fold(first)
    warehouse.fold(warehouse.manifest(f"[{record.replace('1.5', 'true')}]"))
    with warehouse.work.writing() as writer:
        dictionary.describe(writer)
        comments.tell(writer)
        dictionary.tell(writer)
        lacking = [each for each in comments.lacking(writer) if "meta.folds" not in each]
        assert lacking == []
    found = {
        (schema, table, column): rest
        for schema, table, column, *rest in warehouse.query("FROM meta.dictionary")
    }
    for schema in ("current", "past"):
        source = found[schema, "things", "o__unit_price"]
        assert source[:3] == ["DECIMAL(18,1)", "$.o.unitPrice", first.file]
    assert found["current", "things", "at__offset"][1] == "$.at"
    assert found["current", "things__l", "a_b"][1] == '$.l[*]["a b"]'
    text = found["current", "things", "o__unit_price__text"][3]
    assert text == "$.o.unitPrice where its value does not fit the column, whole"
    bare = [each for each, rest in found.items() if not rest[3] and each[1] != "folds"]
    assert bare == []
