"""The pagination envelope: its five rules, and what breaks them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.api import page
from pipelines.api.page import Answer, Page
from pipelines.errors import ContractBroken, Unavailable
from tests.virtual import EPOCH


def answer(body: bytes) -> Answer:
    return Answer(
        path="/v2/usage",
        body=body,
        status=200,
        request_id=None,
        rate_limit={},
        sent_at=EPOCH,
        answered_at=EPOCH,
    )


def envelope(data: list[Any], **pagination: Any) -> bytes:
    paging = {"limit": 3, "offset": 6, "has_more": False, "next_offset": None, "prev_offset": 3}
    return json.dumps({"data": data, "pagination": paging | pagination}).encode()


def read(body: bytes, offset: int = 6) -> Page:
    return page.read(answer(body), offset)


# Records, and what the envelope says: handed on as it is, for the chain to judge.
PAGES: list[tuple[list[Any], dict[str, Any]]] = [
    ([{}, {}, {}], {"has_more": True, "next_offset": 9}),
    ([{}, {}], {"has_more": False, "next_offset": None}),
    ([], {"has_more": False, "next_offset": None}),
    ([{}], {"has_more": False, "next_offset": 9}),
    ([{}, {}], {"has_more": True, "next_offset": None}),
    ([{}], {"limit": 1, "has_more": True, "next_offset": 7}),
    ([], {"has_more": True, "next_offset": 9}),
    ([], {"has_more": True, "next_offset": 6}),
    ([], {"has_more": True, "next_offset": -1}),
]


@pytest.mark.parametrize(("data", "paging"), PAGES)
def test_a_page_is_what_its_envelope_says(data: list[Any], paging: dict[str, Any]) -> None:
    body = envelope(data, **paging)
    limit = paging.get("limit", 3)
    expected = Page(6, limit, len(data), paging["has_more"], paging["next_offset"], answer(body))
    assert read(body) == expected


def test_unknown_members_and_a_total_are_no_fault() -> None:
    body = json.dumps(
        {
            "total": 10**30,
            "links": {"next": "x"},
            "data": [1, "two", None, {"id": 10**40}],
            "pagination": {"limit": 4, "offset": 0, "has_more": False, "cursor": "c"},
        }
    ).encode()
    assert read(body, 0).rows == 4


BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"offset": 0}, "at offset 6: the page says that it is at offset 0"),
    ({"offset": 7}, "at offset 6: the page says that it is at offset 7"),
]


@pytest.mark.parametrize(("paging", "words"), BROKEN)
def test_what_the_document_rules_out(paging: dict[str, Any], words: str) -> None:
    with pytest.raises(ContractBroken, match=f"/v2/usage {words}|/v2/usage at offset 6: .*{words}"):
        read(envelope([], **paging))


# Bodies that may be whole the next time, the tries they are worth, and what is said.
FAULTY = [
    (b'{"data": []}', 2, "^/v2/usage at offset 6: page has no pagination object$"),
    (b'{"data": [NaN]}', 2, "^/v2/usage at offset 6: page has no pagination object$"),
    (b'{"data": [], "pagination": null}', 2, "page has no pagination object"),
    (b'{"data": [], "pagination": []}', 2, "page has no pagination object"),
    (b'{"data": [], "pagination": {"limit": 1}}', 2, "no page of a list: .*`offset`"),
    (envelope([], has_more="yes"), 2, "no page of a list"),
    (envelope([], offset="6"), 2, "no page of a list"),
    (envelope([], next_offset=1.5), 2, "no page of a list"),
    (b'{"pagination": {"limit": 3, "offset": 6, "has_more": false}}', 2, "`data`"),
    (b'{"data": {}, "pagination": {}}', 2, "no page of a list"),
    (b"[]", 2, "no page of a list"),
    (b"null", 2, "no page of a list"),
    (b'{"data": [' + b"[" * 100_000, 3, "answer is not whole JSON"),
    (b'{"data": [' + b"[" * 99_999 + b"]" * 99_999 + b"]}", 2, "no pagination object"),
    (envelope([{}])[:-1], 3, 'answer is not whole JSON: {"data":'),
    (b"", 3, "answer is not whole JSON$"),
    (b"\n<html>\n<body>Sign in</body></html>", 2, "not whole JSON: <html> <body>Sign in</body>"),
    (b'\xef\xbb\xbf{"data": []}', 3, "answer is not whole JSON"),
    (envelope(["?"]).replace(b"?", b"\xff\xfe"), 3, "answer is not whole JSON"),
    (envelope([]) + b"x", 3, "answer is not whole JSON"),
]


@pytest.mark.parametrize(("body", "tries", "words"), FAULTY, ids=lambda value: repr(value)[:30])
def test_what_may_be_whole_the_next_time(body: bytes, tries: int, words: str) -> None:
    with pytest.raises(Unavailable, match=words) as caught:
        read(body)
    assert caught.value.tries == tries


def test_of_a_broken_answer_80_characters_are_shown() -> None:
    with pytest.raises(Unavailable) as caught:
        read(b"\x1b[2J" + b"x y " * 500)
    assert caught.value.said == ("[2J" + "x y " * 20)[:80]
    assert str(caught.value) == f"{caught.value.text}: {caught.value.said}"


@given(st.binary())
def test_no_body_is_a_defect_of_ours(body: bytes) -> None:
    with pytest.raises(Unavailable):
        read(body)


@given(st.integers(min_value=-(10**30), max_value=10**30), st.booleans(), st.integers(0, 3))
def test_any_offset_that_fits_is_handed_on(following: int, has_more: bool, rows: int) -> None:  # noqa: FBT001
    body = envelope([{}] * rows, has_more=has_more, next_offset=following)
    try:
        page = read(body)
    except Unavailable:
        assert not -(2**63) <= following < 2**63
    else:
        assert (page.has_more, page.next_offset, page.rows) == (has_more, following, rows)


def test_records_are_the_bytes_that_came() -> None:
    texts = [b'{"a": 1.50}', b'{"b":  10000000000000000000000}', b'"\xc3\xbc"', b"null"]
    data = b", ".join(texts)
    body = envelope([]).replace(b'"data": []', b'"data": [' + data + b"]")
    assert [bytes(record) for record in page.records(body)] == texts
