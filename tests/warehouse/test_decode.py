"""Decoding: the fast path and the exact path give the same, and neither changes a digit."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipelines.api import page, record
from pipelines.warehouse.decode import Decoder, Misfit
from pipelines.warehouse.schema import EMPTY, Kind, Shape

LEXEMES = [
    ("12345678901234567.89", "12345678901234567.89"),
    ("1.5e-3", "0.0015"),
    ("1E3", "1000"),
    ("-0", "0"),
    ("9007199254740993", "9007199254740993"),
    ("18446744073709551617", "18446744073709551617"),
    ("-99999999999999999999999999999999999999", "-99999999999999999999999999999999999999"),
    ("0.00000000000000000000000000000000000001", "1E-38"),
]
# Items that stand between two sound ones, and why each is set aside.
FLAWED = [
    ('{"id": 2, "a": 1, "a": 2}', "a is there twice, expected one value"),
    ('{"id": 2, "a": NaN}', "a is NaN, expected a number"),
    ('{"id": 2, "a": -Infinity}', "a is -Infinity, expected a number"),
    ('{"id": 2, "a": 1e999}', "a is 1e999, expected a number that can be stored"),
    ('{"id": 2, "a": "\\ud800"}', "a is half of a surrogate pair, expected Unicode text"),
    ('{"id": 2, "a": ' + "[" * 80 + "]" * 80 + "}", "a is nested more deeply, expected at most 64"),
    ('{"id": 2, "a": ' + "[" * 3000 + "]" * 3000 + "}", "a is nested more deeply"),
    ("5", "the item is a number, expected an object"),
    ("null", "the item is null, expected an object"),
    ("[]", "the item is a list, expected an object"),
    ('{"a": "x"}', "id is missing, expected what identifies the record"),
    ('{"id": null, "a": "x"}', "id is null, expected what identifies the record"),
    ('{"id": {"x": 1}}', "id is an object, expected what identifies the record"),
]
SHORT = st.text(st.characters(codec="utf-8"), max_size=4)
NUMBERS = st.integers(-(10**20), 10**20) | st.decimals(
    allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9, places=4
)
SCALARS = (
    st.none()
    | st.booleans()
    | NUMBERS
    | SHORT
    | st.sampled_from(["1.5", "-20.25", "007.5", "2026-11-01T00:00:00Z", "2026-02-30T00:00:00Z"])
)
RECORDS = st.lists(
    st.dictionaries(
        st.sampled_from(["a", "b", "Id", "é"]),
        SCALARS
        | st.lists(SCALARS, max_size=2)
        | st.lists(st.dictionaries(st.sampled_from("xy"), SCALARS, max_size=2), max_size=2)
        | st.dictionaries(st.sampled_from("xy"), SCALARS, max_size=2),
        max_size=4,
    ),
    max_size=5,
)


def texts(rows: str) -> list[bytes]:
    body = f'{{"data": {rows}, "pagination": {{"limit": 9, "offset": 0, "has_more": false}}}}'
    return [bytes(text) for text in page.records(body.encode())]


def values(decoder: Decoder, rows: list[bytes]) -> list[Any]:
    decoded = decoder.records(rows)
    assert not decoded.flaws
    assert list(decoded.rows) == list(range(len(rows)))
    return list(decoded.records.to_pylist())


def written(value: Any) -> str:
    """Write JSON with numbers exactly as they are."""
    if isinstance(value, dict):
        members = (f"{json.dumps(key)}: {written(each)}" for key, each in value.items())
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)


def fitted(rows: list[bytes]) -> Decoder:
    """Return a decoder whose shape the page itself gave."""
    with pytest.raises(Misfit) as misfit:
        Decoder(EMPTY).records(rows)
    return Decoder(misfit.value.shape)


@pytest.mark.parametrize(("lexeme", "value"), LEXEMES)
def test_a_number_keeps_every_digit(lexeme: str, value: str) -> None:
    rows = texts(f'[{{"a": {lexeme}}}]')
    assert values(fitted(rows), rows) == [{"a": Decimal(value)}]


@pytest.mark.parametrize(("item", "words"), FLAWED, ids=lambda value: value[:30])
@pytest.mark.parametrize("kind", [Kind.TEXT, Kind.NUMBER])
def test_what_no_table_can_hold_is_set_aside_alone(item: str, words: str, kind: Kind) -> None:
    number = Shape(Kind.NUMBER, 9, 0)
    shape = Shape(Kind.OBJECT, fields={"id": number, "a": Shape(kind, 9, 2)})
    rows = texts(f'[{{"id": 1}}, {item}, {{"id": 3}}]')
    decoded = Decoder(shape, "id").records(rows)
    assert [row["id"] for row in decoded.records.to_pylist()] == [1, 3]
    assert list(decoded.rows) == [0, 2]
    assert [str(flaw)[: len(words)] for flaw in decoded.flaws.values()] == [words]
    assert list(decoded.flaws) == [1]


@pytest.mark.parametrize("text", ["007.5", "+7.5", "1e3", ".5", "7.", "7"])
def test_a_text_that_only_looks_like_a_decimal_is_no_number(text: str) -> None:
    shape = Shape(Kind.OBJECT, fields={"a": Shape(Kind.NUMBER, 5, 2)})
    with pytest.raises(Misfit) as misfit:
        Decoder(shape).records(texts(f'[{{"a": "{text}"}}]'))
    assert misfit.value.shape.fields["a"].kind is Kind.JSON
    either = Shape(Kind.OBJECT, fields={"a": Shape(Kind.MONEY, 5, 2)})
    with pytest.raises(Misfit):
        Decoder(either).records(texts(f'[{{"a": "{text}"}}]'))


def test_numbers_and_decimal_texts_of_one_column_are_one_decimal_column() -> None:
    rows = texts('[{"a": 1.5}, {"a": "20.25"}, {"a": null}, {}]')
    found = values(fitted(rows), rows)
    assert [row["a"] for row in found] == [Decimal("1.50"), Decimal("20.25"), None, None]


def test_what_shares_no_column_is_kept_as_json_text() -> None:
    rows = texts('[{"a": 1.50}, {"a": "x"}, {"a": {"b": [1, 2.50]}}, {"a": true}]')
    found = values(fitted(rows), rows)
    assert [row["a"] for row in found] == ["1.50", '"x"', '{"b":[1,2.50]}', "true"]


def test_an_unknown_key_is_a_misfit_that_names_it() -> None:
    with pytest.raises(Misfit) as misfit:
        Decoder(Shape(Kind.OBJECT, fields={"a": Shape(Kind.NUMBER, 1, 0)})).records(
            texts('[{"a": 1, "new": true}]')
        )
    assert misfit.value.shape.fields["new"] == Shape(Kind.BOOLEAN)


@given(RECORDS)
@example([{"a": [None, None]}])
@example([{"a": [[]]}, {"a": [[None], []]}])
def test_the_fast_path_and_the_exact_path_agree(rows: list[dict[str, Any]]) -> None:
    sent = texts(written(rows))
    assert [record.read(text) for text in sent] == rows
    decoder = Decoder(EMPTY)
    try:
        decoder.records(sent)
    except Misfit as misfit:
        decoder = Decoder(misfit.shape)
    either, exact = decoder.records(sent), decoder._exact(sent)
    assert either.records.equals(exact.records)
    assert list(either.rows) == list(exact.rows) == list(range(len(rows)))
