"""Records: read to the last digit, or the field that is to blame is named."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.api import record
from pipelines.api.record import Flaw

RIGHT: list[tuple[str, dict[str, Any]]] = [
    ("{}", {}),
    ('{"a": 1, "A": 2}', {"a": 1, "A": 2}),
    ('{"a": 1.50, "b": 1e3}', {"a": Decimal("1.50"), "b": Decimal("1e3")}),
    ('{"a": 123456789012345678901}', {"a": Decimal(123456789012345678901)}),
    ('{"a": 1e308, "b": 1e-400}', {"a": Decimal("1e308"), "b": Decimal("1e-400")}),
    ('{"a": "\\ud83d\\ude00"}', {"a": "😀"}),
    ('{"a": "NaN", "b": "\\\\ud83d"}', {"a": "NaN", "b": "\\ud83d"}),
    ('{"a": {"b": 1}, "c": {"b": 2}}', {"a": {"b": 1}, "c": {"b": 2}}),
    ('{"a": "' + "[" * 99 + '"}', {"a": "[" * 99}),
]


@pytest.mark.parametrize(("text", "value"), RIGHT)
def test_a_record_is_read_to_the_last_digit(text: str, value: dict[str, Any]) -> None:
    read = record.read(text.encode())
    assert read == value
    assert str(read) == str(value)  # 1.50 is not 1.5


FLAWED = [
    ('{"a": 1, "a": 2}', "a", "there twice"),
    ('{"p": [{"b": 1}, {"b": 1, "c": 2, "b": 1}]}', "p[1].b", "there twice"),
    ('{"a": NaN}', "a", "NaN"),
    ('{"a": [1, [-Infinity]]}', "a[1][0]", "-Infinity"),
    ('{"a": 1e999}', "a", "1e999"),
    ('{"a": -1e99999999999999999999}', "a", "-1e99999999999999999999"),
    ('{"a": 1e-99999999999999999999}', "a", "1e-99999999999999999999"),
    ('{"a": 1' + "0" * 5000 + "}", "a", "1" + "0" * 199),
    ('{"a": {"b": "x\\ud800"}}', "a.b", "half of a surrogate pair"),
    ('{"a": 1, "b\\udfff": 2}', "b?", "half of a surrogate pair"),
    ('{"a": 1, "b": ' + "[" * 64 + "]" * 64 + "}", "b", "nested more deeply"),
    ('{"a": ' + '{"a":' * 64 + "1" + "}" * 65, "a", "nested more deeply"),
    ("[" * 65 + "]" * 65, "", "nested more deeply"),
    ('"text"', "", "a text"),
    ("null", "", "null"),
    ("5", "", "a number"),
    ("NaN", "", "NaN"),
    ("true", "", "true or false"),
    ("[1]", "", "a list"),
    ('{"\\u001b[2Ja": NaN}', "[2Ja", "NaN"),
    ('{"' + "k" * 500 + '": NaN}', "k" * 200, "NaN"),
    ('{"a": 1', "", "no JSON (Expecting ',' delimiter: line 1 column 8 (char 7))"),
]


@pytest.mark.parametrize(("text", "path", "got"), FLAWED, ids=lambda value: str(value)[:20])
def test_what_no_table_can_hold_is_named_with_its_path(text: str, path: str, got: str) -> None:
    flaw = record.flaw(text.encode())
    assert flaw is not None
    assert (flaw.path, flaw.got) == (path, got)
    assert str(flaw).startswith(f"{path or 'the item'} is {got}, expected ")


def test_sixty_four_levels_are_no_flaw() -> None:
    assert record.flaw(b'{"a": ' + b"[" * 63 + b"]" * 63 + b"}") is None
    assert record.flaw(b'{"a": [' + b"[]," * 500 + b"[]]}") is None


KEYS = [
    ('{"id": 1}', None),
    ('{"id": ""}', None),
    ('{"id": false}', Flaw("id", "what identifies the record", "true or false")),
    ('{"Id": 1}', Flaw("id", "what identifies the record", "missing")),
    ('{"id": null}', Flaw("id", "what identifies the record", "null")),
    ('{"id": {"a": 1}}', Flaw("id", "what identifies the record", "an object")),
    ('{"id": [1]}', Flaw("id", "what identifies the record", "a list")),
    ('{"id": 1, "x": NaN}', Flaw("x", "a number", "NaN")),
]


@pytest.mark.parametrize(("text", "flaw"), KEYS)
def test_a_record_needs_its_key(text: str, flaw: Flaw | None) -> None:
    assert record.flaw(text.encode(), "id") == flaw
    assert record.flaw(text.encode()) == (flaw if flaw and flaw.path != "id" else None)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab"), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), VALUES))
def test_a_sound_record_has_no_flaw(value: dict[str, Any]) -> None:
    assert record.read(json.dumps(value).encode()) == value
    assert record.read(json.dumps(value, ensure_ascii=False).encode()) == value


@given(st.binary())
def test_no_text_is_a_defect_of_ours(text: bytes) -> None:
    assert isinstance(record.read(text), (Flaw, dict))
