"""Cutting pages into records: odd records, wrong envelopes, too many records."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.archive.envelope import Pagination
from pipelines.archive.records import ANY_LIMIT, MANY_COMMAS, parse_page
from pipelines.core.errors import UnexpectedAnswer
from tests.archive.scans import PAGINATION, VALUES, page

LIMITS = (ANY_LIMIT, 2)


@pytest.mark.parametrize("limit", LIMITS)
def test_records_are_the_bytes_received(limit: int) -> None:
    body = (
        b'{"pagination":{"limit":5,"offset":10,"has_more":true,"next_offset":15,"prev_offset":5},'
        b'"total":9,"data":[ {"a" : 1e2} , {"b":[1,{"c":"],"}]},7 ]}'
    )
    records = [b'{"a" : 1e2}', b'{"b":[1,{"c":"],"}]}', b"7"]
    page = parse_page(body, limit)
    assert page.records == records
    assert page.pagination == Pagination(limit=5, has_more=True, total=9)


ODD = [
    *(
        b'{"a":NaN,"data":[1,NaN]}',
        b'{"a":-Infinity,"b":"],["}',
        b'{"a":"\\ud83d"}',
        b'{"a":1e999}',
    ),
    *(b'{"a":"\xff\xfe"}', b'{"a":"\x00"}', b'{"a":1,"a":2}', b'{"a":"\xff","b":NaN}', b"null"),
    *(b'{"a":"' + 10**7 * b"x" + b'"}', b"[" * 100 + b"]" * 100, b"[" * 5000 + b"]" * 5000),
]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd[:16]))
@pytest.mark.parametrize("limit", LIMITS)
def test_an_odd_record_does_not_cost_the_page(odd: bytes, limit: int) -> None:
    assert parse_page(page(b"1", odd, b'{"z":"\\""}'), limit).records == [b"1", odd, b'{"z":"\\""}']


NO_PAGES = [
    *(b"", b"null", b"[]", b"<html>", b"{" + PAGINATION + b"}", b"[" * 200_000),
    *(b'{"data":%b,%b}' % (data, PAGINATION) for data in (b"{}", b'[NaN],"data":[NaN]')),
    *(page(b"1", b"NaN")[:-1], page(b"1", b"2")[:-9], page(b"1", b"NaN") + b"}"),
    *(page(b"NaN", each) for each in (b"-01", b"", b'"')),
]


@pytest.mark.parametrize("body", NO_PAGES, ids=lambda body: repr(body[:60]))
@pytest.mark.parametrize("limit", LIMITS)
def test_what_is_not_a_page_is_refused(body: bytes, limit: int) -> None:
    with pytest.raises(UnexpectedAnswer, match="not a page of a list"):
        parse_page(body, limit)


@pytest.mark.parametrize("record", [b"1", b"NaN"])
def test_far_more_records_than_requested_are_refused(record: bytes) -> None:
    assert len(parse_page(page(*104 * [record]), 2).records) == 104
    for count in (105, MANY_COMMAS):
        with pytest.raises(UnexpectedAnswer, match="more than 104 records"):
            parse_page(page(*count * [record]), 2)
    large = b"[" + MANY_COMMAS * b"1," + record + b"]"
    assert parse_page(page(large, record), 2).records == [large, record]


@given(values=st.lists(VALUES, max_size=6), odd=st.booleans())
@settings(max_examples=15)
def test_every_list_of_records_is_cut_where_it_was_joined(
    values: list[object],
    odd: bool,  # noqa: FBT001 - a drawn value
) -> None:
    records = [json.dumps(value).encode() for value in values] + odd * [b"NaN"]
    assert parse_page(page(*records), 2).records == records
    assert parse_page(page(*records)).records == records
