"""Tables: names that never meet, whatever a JSON object calls its keys."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.warehouse.schema import Kind, Shape
from pipelines.warehouse.tables import AT, RESERVED, Flattener, Names, snake

NAMES = [
    ("unitPrice", "unit_price"),
    ("partnerId", "partner_id"),
    ("URLValue", "url_value"),
    ("already_snake", "already_snake"),
    ("with space-and.dot", "with_space_and_dot"),
    ("größe", "größe"),
    ('a"b', "a_b"),
    ("", "_"),
]
TEXT = Shape(Kind.TEXT)
HOSTILE = st.text(max_size=80) | st.sampled_from(
    ["Id", "id", "ID", "idx", "a__b", "a", "select", "x" * 63, "x" * 64, *RESERVED]
)


LAST = ("_page", "_row", "_run", "_digest")


def columns(table: pa.Table) -> list[str]:
    """Return the columns that a table has once it is landed."""
    return [name for name in table.column_names if name != AT]


@pytest.mark.parametrize(("key", "name"), NAMES)
def test_a_key_becomes_a_column_name(key: str, name: str) -> None:
    assert snake(key) == name


def test_names_that_meet_get_a_stable_suffix() -> None:
    fields = {"id": TEXT, "Id": TEXT, "_row": TEXT}
    empty = Flattener("things", Shape(Kind.OBJECT, fields=fields), "id", Names()).empty()
    names = columns(empty["things"])
    assert names[:2] == ["_connection", "id"]
    assert names[2].startswith("id_")
    assert names[3].startswith("_row_")
    more = Shape(Kind.OBJECT, fields={**fields, "new": TEXT})
    assert Flattener("things", more, "id", Names()).empty()["things"].column_names[1:5] == names[:4]


@given(st.lists(HOSTILE, min_size=1, max_size=8, unique=True))
def test_every_field_has_a_column_of_its_own(keys: list[str]) -> None:
    shape = Shape(Kind.OBJECT, fields=dict.fromkeys(keys, TEXT))
    table = Flattener("things", shape, None, Names()).empty()["things"]
    names = table.column_names
    assert len({name.casefold() for name in names}) == len(names)
    assert len(names) == len(keys) + len(("_connection", "_key", *LAST)) + 1
    assert not RESERVED & set(names[3:-4])
    assert max(map(len, names)) <= 63


def test_children_carry_the_parents_key_and_their_place() -> None:
    item = Shape(Kind.OBJECT, fields={"id": TEXT, "parts": Shape(Kind.ARRAY, item=TEXT)})
    lines = Shape(Kind.ARRAY, item=item)
    tables = Flattener(
        "bills", Shape(Kind.OBJECT, fields={"id": TEXT, "lines": lines}), "id", Names()
    )
    found = {name: columns(table) for name, table in tables.empty().items()}
    assert list(found) == ["bills", "bills__lines", "bills__lines__parts"]
    assert found["bills"][1:3] == ["id", "lines__count"]
    assert found["bills__lines"][:3] == ["_connection", "id", "idx"]
    assert found["bills__lines"][3].startswith("id_")
    assert found["bills__lines__parts"] == ["_connection", "id", "idx", "idx_2", "value"]


def test_a_column_of_nothing_but_null_is_text() -> None:
    shape = Shape(Kind.OBJECT, fields={"later": Shape(Kind.NULL)})
    table = Flattener("things", shape, None, Names()).empty()["things"]
    assert table.schema.field("later").type == pa.string()
