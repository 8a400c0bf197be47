"""Shapes: as narrow as the data allow, wide enough for all of them, and never narrower again."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.warehouse.schema import EMPTY, Kind, Shape, census, from_json, to_json

BILLION = 10**9
VALUES = [
    (None, Shape(Kind.NULL)),
    (True, Shape(Kind.BOOLEAN)),
    (0, Shape(Kind.NUMBER, 1, 0)),
    (-12, Shape(Kind.NUMBER, 2, 0)),
    (BILLION**2, Shape(Kind.NUMBER, 19, 0)),
    (Decimal("1.50"), Shape(Kind.NUMBER, 1, 2)),
    (Decimal("1.5e-3"), Shape(Kind.NUMBER, 0, 4)),
    (Decimal("1E+3"), Shape(Kind.NUMBER, 4, 0)),
    (Decimal("0.00"), Shape(Kind.NUMBER, 0, 2)),
    (Decimal("1E+38"), Shape(Kind.JSON)),
    (Decimal("1E-38"), Shape(Kind.NUMBER, 0, 38)),
    (Decimal("1E-39"), Shape(Kind.JSON)),
    ("12.50", Shape(Kind.DECIMAL_TEXT, 2, 2)),
    ("-0.1", Shape(Kind.DECIMAL_TEXT, 0, 1)),
    ("12", Shape(Kind.TEXT)),
    ("012.50", Shape(Kind.TEXT)),
    ("1.50\n", Shape(Kind.TEXT)),
    ("1e3", Shape(Kind.TEXT)),
    ("", Shape(Kind.TEXT)),
    ("2026-11-01T00:00:00Z", Shape(Kind.TIME)),
    ("2026-11-01T00:00:00.123456+05:30", Shape(Kind.TIME)),
    ("2026-11-01T00:00:00.1234567Z", Shape(Kind.TEXT)),
    ("2026-11-01T00:00:60Z", Shape(Kind.TEXT)),
    ("2026-02-30T00:00:00Z", Shape(Kind.TEXT)),
    ("2026-11-01T00:00:00", Shape(Kind.TEXT)),
    ("2026-11-01", Shape(Kind.TEXT)),
    ([], Shape(Kind.ARRAY)),
    ([1, None], Shape(Kind.ARRAY, item=Shape(Kind.NUMBER, 1, 0))),
    ({"a": 1}, Shape(Kind.OBJECT, fields={"a": Shape(Kind.NUMBER, 1, 0)})),
]
PAIRS = [
    (None, 5, Shape(Kind.NUMBER, 1, 0)),
    (5, None, Shape(Kind.NUMBER, 1, 0)),
    (100, Decimal("0.25"), Shape(Kind.NUMBER, 3, 2)),
    ("1.5", "20.25", Shape(Kind.DECIMAL_TEXT, 2, 2)),
    (5, "20.25", Shape(Kind.MONEY, 2, 2)),
    ("1.5", "x", Shape(Kind.TEXT)),
    ("1.5", "2026-11-01T00:00:00Z", Shape(Kind.TEXT)),
    (5, "x", Shape(Kind.JSON)),
    (True, 1, Shape(Kind.JSON)),
    ([1], {"a": 1}, Shape(Kind.JSON)),
    ([], [1], Shape(Kind.ARRAY, item=Shape(Kind.NUMBER, 1, 0))),
    (10**30, Decimal("1E-20"), Shape(Kind.JSON)),
]

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20)
    | st.sampled_from(["", "x", "1.5", "007", "2026-11-01T00:00:00Z", "2026-11-01"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=6,
)


@pytest.mark.parametrize(("value", "shape"), VALUES)
def test_the_census_of_a_value(value: Any, shape: Shape) -> None:
    assert census(value) == shape


@pytest.mark.parametrize(("one", "other", "shape"), PAIRS)
def test_the_narrowest_shape_of_two(one: Any, other: Any, shape: Shape) -> None:
    assert census(one).widened(census(other)) == shape


@given(json_values, json_values, json_values)
def test_widening_forgets_no_one_and_does_not_depend_on_the_order(
    one: Any, two: Any, three: Any
) -> None:
    shapes = [census(value) for value in (one, two, three)]
    forth = shapes[0].widened(shapes[1]).widened(shapes[2])
    back = shapes[2].widened(shapes[0].widened(shapes[1]))
    assert forth == back
    for shape in shapes:
        assert forth.widened(shape) == forth


@given(json_values)
def test_a_registered_shape_is_the_same_and_settled(value: Any) -> None:
    shape = EMPTY.widened(census({"field": value}))
    assert from_json(to_json(shape)) == shape.settle()
    assert list(from_json(to_json(shape)).fields) == list(shape.fields)
