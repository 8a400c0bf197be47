"""What becomes of tables when records change: columns appear, change their kind, disappear."""

import json
from decimal import Decimal
from typing import Any

import pytest

from pipelines.errors import LandingFailed
from pipelines.warehouse import loss
from pipelines.warehouse.decode import Decoder, Misfit
from pipelines.warehouse.room import MOST_NEW, Rules, columns
from pipelines.warehouse.schema import EMPTY, Kind, Shape
from tests.warehouse.conftest import Warehouse

# A value of the first night, one of the second; type of the column then, its value, and the text.
CHANGES = [
    ("5", '"five"', "BIGINT", None, "five"),
    ("5", '"7"', "BIGINT", None, "7"),
    ("5", "2.50", "DECIMAL(18,2)", Decimal("2.50"), None),
    ("5", '"2.50"', "DECIMAL(18,2)", Decimal("2.50"), None),
    ("5", "true", "BIGINT", None, "true"),
    ("5", '"true"', "BIGINT", None, '"true"'),
    ("5", '{"x": 1.50}', "BIGINT", None, '{"x":1.50}'),
    ("5", f"1{'0' * 38}", "BIGINT", None, f"1{'0' * 38}"),
    (f"1{'0' * 36}", "0.25", "DECIMAL(38,0)", None, "0.25"),
    ("0.25", f"1{'0' * 36}", "DECIMAL(18,2)", None, f"1{'0' * 36}"),
    ('"1.50"', '"n/a"', "DECIMAL(18,2)", None, "n/a"),
    ('"2026-01-01T00:00:00Z"', '"soon"', "TIMESTAMP WITH TIME ZONE", None, "soon"),
    ('"2026-01-01T00:00:00Z"', "5", "TIMESTAMP WITH TIME ZONE", None, "5"),
    ('"abc"', "5", "VARCHAR", None, "5"),
    ('"abc"', '"2026-01-01T00:00:00Z"', "VARCHAR", "2026-01-01T00:00:00Z", None),
    ("true", "0", "BOOLEAN", None, "0"),
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_a_published_column_keeps_its_kind(
    warehouse: Warehouse, change: tuple[str, str, str, object, str | None]
) -> None:
    first, second, kind, value, text = change
    warehouse.fold(warehouse.manifest(f'[{{"id": 1, "a": {first}}}, {{"id": 2, "a": {first}}}]'))

    warehouse.fold(warehouse.manifest(f'[{{"id": 1, "a": {first}}}, {{"id": 2, "a": {second}}}]'))

    types = warehouse.types()
    assert types["a"] == kind
    assert ("a__text" in types) == (text is not None)
    beside = ", a__text" if text is not None else ", NULL"
    found = warehouse.query(f"SELECT a{beside} FROM current.things ORDER BY id")
    assert found[1] == (value, text)
    assert found[0][0] is not None
    assert found[0][1] is None


def test_objects_and_arrays_keep_their_columns_and_tables(warehouse: Warehouse) -> None:
    sound = '"o": {"n": 1}, "l": [{"n": 1}, {"n": 2}]'
    warehouse.fold(warehouse.manifest(f'[{{"id": 1, {sound}}}]'))

    wrong = '"o": "none", "l": [{"n": "x", "new": 7}, 5]'
    warehouse.fold(warehouse.manifest(f'[{{"id": 1, {sound}}}, {{"id": 2, {wrong}}}]'))

    rows = warehouse.query("SELECT id, o__n, o__text FROM current.things ORDER BY id")
    assert rows == [(1, 1, None), (2, None, "none")]
    items = warehouse.query(
        "SELECT id, idx, n, n__text, new, value__text FROM current.things__l ORDER BY id, idx"
    )
    assert items[2:] == [(2, 0, None, "x", 7, None), (2, 1, None, None, None, "5")]


def test_kinds_that_were_mixed_from_the_start_are_text(warehouse: Warehouse) -> None:
    warehouse.fold(warehouse.manifest('[{"id": 1, "a": 5}]', '[{"id": 2, "a": "five"}]'))
    assert warehouse.types() == {"id": "BIGINT", "a": "VARCHAR"}
    assert warehouse.query("SELECT a FROM current.things ORDER BY id") == [("5",), ('"five"',)]


def test_a_key_of_another_kind_is_set_aside(warehouse: Warehouse) -> None:
    sound = [json.dumps({"id": number}) for number in range(150)]
    warehouse.fold(warehouse.manifest(f"[{', '.join(sound)}]"))
    folded = warehouse.fold(warehouse.manifest(f'[{", ".join(sound)}, {{"id": "x"}}]'))
    assert (folded.rows, folded.quarantined) == (150, 1)
    assert warehouse.types()["id"] == "BIGINT"
    assert warehouse.query("SELECT reason FROM quarantine.things") == [
        ("id is of another kind, expected a number as before",)
    ]


def test_what_exceeds_the_limit_of_new_columns_is_kept_in_one(warehouse: Warehouse) -> None:
    many = {f"k{number}": number for number in range(MOST_NEW + 20)}
    record = json.dumps({**many, "o": {"x": 1}, "id": 1, "l": [{"n": 1}]})
    warehouse.fold(warehouse.manifest(f"[{record}]"))

    types = warehouse.types()
    assert len(types) == MOST_NEW
    assert list(types)[-1] == "id"
    [(rest,)] = warehouse.query("SELECT _rest FROM current.things")
    kept = json.loads(str(rest))
    assert kept.pop("o") == {"x": 1}
    assert kept.pop("l") == [{"n": 1}]
    assert {**kept, **{name: int(name[1:]) for name in types if name != "id"}} == many


def test_the_next_manifest_has_room_for_as_many_again() -> None:
    record = json.dumps({f"k{number}": number for number in range(MOST_NEW + 20)}).encode()
    with pytest.raises(Misfit) as misfit:
        Decoder(EMPTY).records([record])
    shape = misfit.value.shape.settle()
    assert (columns(shape), shape.rest) == (MOST_NEW, True)
    with pytest.raises(Misfit) as misfit:
        Decoder(shape).records([record])
    assert columns(misfit.value.shape) == MOST_NEW + 20


def test_where_there_is_no_room_what_is_known_stays_as_it_is() -> None:
    record: dict[str, Any] = {"id": 1, "later": None, "l": [], "o": {"x": 1}}
    known = EMPTY.grown(record).settle()
    rules = Rules(known, new=0, key="id")
    new = {"id": 2, "later": {"y": 1}, "l": [7], "o": {"x": 2, "y": [1]}, "z": 1}
    with pytest.raises(Misfit) as misfit:
        Decoder(known, "id", rules).records([json.dumps(new).encode()])
    assert columns(misfit.value.shape) == columns(known)
    landed = misfit.value.wider.records([json.dumps(each).encode() for each in (new, record)])
    assert landed.records.to_pylist()[0] == {
        "id": 2,
        "later": {"value": None, "misfit": '{"y":1}'},
        "l": {"value": None, "misfit": "[7]"},
        "o": {"x": 2},
        "_rest": '{"o":{"y":[1]},"z":1}',
    }


def test_a_value_that_got_lost_stops_the_stream() -> None:
    sent: dict[str, Any] = {"a": 1, "b": {"c": 2}, "l": [1, None, {"x": 1}]}
    with pytest.raises(Misfit) as misfit:
        Decoder(EMPTY).records([json.dumps(sent).encode()])
    shape = misfit.value.shape
    landed = misfit.value.wider.records([json.dumps(sent).encode()]).records
    loss.check([sent], landed, shape, Rules())
    lost: list[tuple[dict[str, Any], str]] = [
        ({"a": None}, "a"),
        ({"b": {"c": 2, "d": 3}}, "the rest"),
        ({"l": [1]}, "l"),
    ]
    for other, path in lost:
        with pytest.raises(LandingFailed, match=f"values were sent at {path}.*defect"):
            loss.check([sent | other], landed, shape, Rules())
    loss.check([{**sent, "unknown": 1}], landed, shape, Rules(rest=False))


def test_digits_that_a_type_would_hold_are_noticed_on_the_fast_path() -> None:
    narrow = Shape(Kind.OBJECT, fields={"a": Shape(Kind.NUMBER, 2, 0, settled=True)})
    with pytest.raises(Misfit) as misfit:
        Decoder(narrow).records([b'{"a": 123456}'])
    assert misfit.value.shape.fields["a"].whole == 6
