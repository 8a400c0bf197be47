"""Decoding: the fast path and the exact path give the same, and neither changes a digit."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipelines.errors import LandingFailed
from pipelines.warehouse.decode import Decoder, Misfit, lexemes
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
REFUSED = [
    ('[{"a": 1, "a": 2}]', "key 'a' twice"),
    ('[{"p": {"b": 1, "b": 1}}]', "key 'b' twice"),
    ('[{"a": NaN}]', "NaN is no JSON number"),
    ('[{"a": -Infinity}]', "-Infinity is no JSON number"),
    ('[{"a": "\\ud800"}]', "cannot be stored"),
    ("[5]", "item 0 is no object"),
    ('[{"a": ' + "[" * 3000 + "]" * 3000 + "}]", "nested too deeply"),
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


def page(rows: str) -> bytes:
    return (
        f'{{"data": {rows}, "pagination": {{"limit": 9, "offset": 0, "has_more": false}}}}'.encode()
    )


def written(value: Any) -> str:
    """Write JSON with numbers exactly as they are."""
    if isinstance(value, dict):
        members = (f"{json.dumps(key)}: {written(each)}" for key, each in value.items())
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)


def fitted(body: bytes) -> Decoder:
    """Return a decoder whose shape the page itself gave."""
    with pytest.raises(Misfit) as misfit:
        Decoder(EMPTY).records(body)
    return Decoder(misfit.value.shape)


@pytest.mark.parametrize(("lexeme", "value"), LEXEMES)
def test_a_number_keeps_every_digit(lexeme: str, value: str) -> None:
    body = page(f'[{{"a": {lexeme}}}]')
    assert fitted(body).records(body).to_pylist() == [{"a": Decimal(value)}]


@pytest.mark.parametrize(("rows", "words"), REFUSED)
def test_what_no_table_can_hold_is_refused_in_words(rows: str, words: str) -> None:
    with pytest.raises(LandingFailed, match=words):
        Decoder(Shape(Kind.OBJECT, fields={"a": Shape(Kind.TEXT)})).records(page(rows))


@pytest.mark.parametrize("text", ["007.5", "+7.5", "1e3", ".5", "7.", "7"])
def test_a_text_that_only_looks_like_a_decimal_is_no_number(text: str) -> None:
    shape = Shape(Kind.OBJECT, fields={"a": Shape(Kind.NUMBER, 5, 2)})
    with pytest.raises(Misfit) as misfit:
        Decoder(shape).records(page(f'[{{"a": "{text}"}}]'))
    assert misfit.value.shape.fields["a"].kind is Kind.JSON
    either = Shape(Kind.OBJECT, fields={"a": Shape(Kind.MONEY, 5, 2)})
    with pytest.raises(Misfit):
        Decoder(either).records(page(f'[{{"a": "{text}"}}]'))


def test_numbers_and_decimal_texts_of_one_column_are_one_decimal_column() -> None:
    body = page('[{"a": 1.5}, {"a": "20.25"}, {"a": null}, {}]')
    found = fitted(body).records(body).to_pylist()
    assert [row["a"] for row in found] == [Decimal("1.50"), Decimal("20.25"), None, None]


def test_what_shares_no_column_is_kept_as_json_text() -> None:
    body = page('[{"a": 1.50}, {"a": "x"}, {"a": {"b": [1, 2.50]}}, {"a": true}]')
    found = fitted(body).records(body).to_pylist()
    assert [row["a"] for row in found] == ["1.50", '"x"', '{"b":[1,2.50]}', "true"]


def test_an_unknown_key_is_a_misfit_that_names_it() -> None:
    with pytest.raises(Misfit) as misfit:
        Decoder(Shape(Kind.OBJECT, fields={"a": Shape(Kind.NUMBER, 1, 0)})).records(
            page('[{"a": 1, "new": true}]')
        )
    assert misfit.value.shape.fields["new"] == Shape(Kind.BOOLEAN)


@given(RECORDS)
@example([{"a": [None, None]}])
@example([{"a": [[]]}, {"a": [[None], []]}])
def test_the_fast_path_and_the_exact_path_agree(rows: list[dict[str, Any]]) -> None:
    body = page(written(rows))
    assert lexemes(body) == rows
    decoder = Decoder(EMPTY)
    try:
        decoder.records(body)
    except Misfit as misfit:
        decoder = Decoder(misfit.shape)
    either, exact = decoder.records(body), decoder._exact(body)
    assert either.equals(exact)
    assert len(either) == len(rows)
