"""Pages taken apart: one record that cannot be read costs that record, and not the page."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.api import items, page, record
from pipelines.api.items import NoPage

DOCUMENTS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**25), 10**25)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8") | st.sampled_from('[]{},:"\\\n')),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
LISTS = st.lists(DOCUMENTS, max_size=6)
DEEP = "[" * 5000 + "]" * 5000
# What stands in a record that no strict reader takes, and why that record cannot be landed.
POISON = {
    "NaN": "odd is NaN, expected a number",
    "-Infinity": "odd is -Infinity, expected a number",
    '"\\ud83d"': "odd is half of a surrogate pair, expected Unicode text",
    '"\\udc00x"': "odd is half of a surrogate pair, expected Unicode text",
    DEEP: "odd is nested more deeply, expected at most 64 levels",
}


def paged(texts: list[str], **others: Any) -> bytes:
    pagination = json.dumps({"limit": 9, "offset": 0, "has_more": False, "data": [1, [2]]})
    members = "".join(f", {json.dumps(name)}: {json.dumps(each)}" for name, each in others.items())
    return f'{{"data": [{", ".join(texts)}], "pagination": {pagination}{members}}}'.encode()


@given(LISTS, st.sampled_from([None, 1]), DOCUMENTS)
def test_any_documents_items_split_and_read_equal(
    documents: list[Any], indent: int | None, other: Any
) -> None:
    texts = [json.dumps(each, indent=indent, ensure_ascii=False) for each in documents]
    body = paged(texts, other=other)
    shell, found = items.split(body)
    assert [bytes(text).decode() for text in found] == texts
    assert json.loads(shell) == json.loads(body) | {"data": []}
    assert [bytes(text).strip() for text in page.records(body)] == [bytes(text) for text in found]


@given(LISTS, st.sampled_from(sorted(POISON)), st.integers(0, 6))
def test_poison_in_any_place_costs_that_record_alone(
    documents: list[Any], poison: str, place: int
) -> None:
    texts = [json.dumps({"value": each}) for each in documents]
    place = min(place, len(texts))
    poisoned = [*texts[:place], f'{{"id": "[,", "odd": {poison}}}', *texts[place:]]
    found = [bytes(text) for text in page.records(paged(poisoned))]
    flaws = [record.flaw(text) for text in found]
    assert [text.decode() for text in found] == poisoned
    assert str(flaws[place]) == POISON[poison]
    assert [flaw for number, flaw in enumerate(flaws) if number != place] == [None] * len(texts)


BROKEN = [
    b"",
    b"[]",
    b"{}",
    b'{"data": {"a": [NaN]}}',
    b'{"data": [NaN',
    b'{"data": [NaN]',
    b'{"data": [NaN}]',
    b'{"data": [NaN "a": 1]}',
    b'{"data": [NaN,]}',
    b'{"data": [,NaN]}',
    b'{"data": [{"a": 1}{"a": NaN}]}',
    b'{"data": ["\\x"]}',
    b'{"data": [01]}',
    b'{"data": ["a]}',
    b'{"data": ["\xff"]}',
    b'{"data": [NaN], "data": [1]}',
    b'{"data": [1], "data": [NaN]}',
    b'{"data": ' + b"[" * 2_000_000,
]


@pytest.mark.parametrize("body", BROKEN, ids=lambda value: repr(value)[:30])
def test_what_is_no_page_is_not_taken_apart(body: bytes) -> None:
    with pytest.raises(NoPage):
        items.split(body)


@pytest.mark.parametrize("total", [b"NaN", b'"\\ud800"', b"nul"])
def test_outside_its_records_a_page_is_strict_json(total: bytes) -> None:
    body = paged(["1", "NaN"]).replace(b"{", b'{"total": ' + total + b", ", 1)
    with pytest.raises(msgspec.DecodeError):
        page.records(body)


@given(st.binary(max_size=200))
def test_no_body_is_a_defect_of_ours(body: bytes) -> None:
    with pytest.raises(NoPage):
        items.split(body + b"]")
