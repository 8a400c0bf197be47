"""The key of a stream's records: found only where it identifies every one of them."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.api import key
from pipelines.api.candidates import Candidates
from pipelines.api.key import Identity
from pipelines.api.page import Answer, Page
from tests.api.moving import ANSWER

CANDIDATES = ("id", "partnerId", "partner_id")
Record = dict[str, Any]
VALUES = st.one_of(
    st.integers(0, 5),
    st.integers(2**53, 2**53 + 3),
    st.sampled_from(["a", "b", "", "1"]),
    st.none(),
    st.booleans(),
    st.just([1]),
    st.just({"x": 1}),
)
UNIQUE = st.integers(0, 10**6)
RECORDS = st.lists(
    st.fixed_dictionaries({}, optional=dict.fromkeys((*CANDIDATES, "other"), VALUES | UNIQUE)),
    max_size=4,
)
# Many pages in which something holds, beside those in which anything goes.
SOUND = st.lists(
    st.fixed_dictionaries({"id": UNIQUE}), max_size=4, unique_by=lambda record: record["id"]
)
PAGES = st.lists(RECORDS | SOUND, max_size=4)


def body(records: list[Any]) -> bytes:
    paging = {"limit": 100, "offset": 0, "has_more": False}
    return json.dumps({"data": records, "pagination": paging}).encode()


def answer(records: list[Any]) -> Answer:
    return replace(ANSWER, body=body(records))


def settled(pages: list[list[Any]]) -> str | None:
    """Return the name that a scan of these pages settles on."""
    candidates = Candidates(CANDIDATES)
    place = 0
    for records in pages:
        candidates.learn(Page(place, 100, len(records), False, None, answer(records)))
        place += len(records)
    return candidates.best


def identifies(name: str, pages: list[list[Record]]) -> bool:
    """Say by the words of the rule whether a field identifies the records of so few pages."""
    for records in pages:
        values = [record.get(name) for record in records]
        if not all(isinstance(value, str | int | float) for value in values):
            return False
        if any(isinstance(value, bool) for value in values):
            return False
        different = {json.dumps(record, sort_keys=True) for record in records}
        if len(set(values)) < len(different):
            return False
    return True


@given(PAGES)
def test_the_first_candidate_that_identifies_every_record_of_every_page(
    pages: list[list[Record]],
) -> None:
    sound = [name for name in CANDIDATES if identifies(name, pages)]
    assert settled(pages) == (sound[0] if sound else None)


# Pages of a first scan, and the key that they settle.
SCANS: list[tuple[list[list[Any]], str | None]] = [
    ([[{"id": 1, "partnerId": "a"}]], "id"),
    ([[{"partnerId": "a", "partner_id": 1}]], "partnerId"),
    ([[{"partner_id": 1}]], "partner_id"),
    ([[{"id": 1}], [{"partnerId": 1}]], None),
    ([[{"id": 1, "partnerId": "a"}, {"id": 1, "partnerId": "b"}]], "partnerId"),
    # Twice in the list but not in a page: a record read again, not another one.
    ([[{"id": 1}, {"id": 2}], [{"id": 2}, {"id": 3}]], "id"),
    ([[{"id": None}]], None),
    ([[{"id": True}, {"id": False}]], None),
    ([[{"id": {"hex": "a"}}]], None),
    ([[{"id": 2**53}, {"id": 2**53 + 1}]], "id"),
    ([[{"id": "é"}, {"id": "e"}]], "id"),
    ([[{"ID": 1, "Id": 2}]], None),
    ([[{}]], None),
    # The same record twice in a page: it is repeated, and no other one has its key.
    ([[{"id": 1, "x": 1.5}, {"x": 1.50, "id": 1}]], "id"),
    ([[{"id": 1, "x": 1}, {"id": 1, "x": 2}]], None),
]


@pytest.mark.parametrize(("pages", "expected"), SCANS)
def test_what_a_scan_settles(pages: list[list[Any]], expected: str | None) -> None:
    assert settled(pages) == expected


def rows(number: int, lacking: int, conflicts: int) -> list[Record]:
    """Return so many records; so many lack their id, so many pairs have the same one."""
    records: list[Record] = [{"id": row, "partnerId": f"p{row}"} for row in range(number)]
    for row in range(lacking):
        del records[row]["id"]
    for row in range(conflicts):
        records[-1 - 2 * row]["id"] = records[-2 - 2 * row]["id"]
    return records


# So many lack the id of 1,000 rows, so many pairs conflict; the names that may be the key.
SHARES: list[tuple[int, int, tuple[str, ...], str | None]] = [
    (10, 0, ("id",), "id"),
    (11, 0, ("id",), None),
    (0, 20, ("id",), "id"),
    (0, 21, ("id",), None),
    (0, 1, CANDIDATES, "partnerId"),  # without conflicts: it is preferred
    (10, 0, CANDIDATES, "id"),
]


@pytest.mark.parametrize(("lacking", "conflicts", "names", "expected"), SHARES)
def test_a_key_may_lack_one_in_a_hundred_and_conflict_in_one_of_fifty(
    lacking: int, conflicts: int, names: tuple[str, ...], expected: str | None
) -> None:
    """It is decided over all pages: the first, where all of them are, would reject it."""
    candidates = Candidates(names)
    records = rows(1000, lacking, conflicts)[::-1] if conflicts else rows(1000, lacking, 0)
    for number in range(10):
        page = records[100 * number : 100 * number + 100]
        for _again in range(2):  # a page counts once, however often the scan begins again
            candidates.learn(Page(100 * number, 100, 100, True, None, answer(page)))
    assert candidates.best == expected


@pytest.mark.parametrize(("candidates", "name"), [(("invoice",), "invoice"), ((), None)])
def test_a_known_key_is_the_one(candidates: tuple[str, ...], name: str | None) -> None:
    assert Identity(candidates, known=True).known_name == name


# A field as it is written in JSON, and what it says as a key.
SPELLINGS: list[tuple[str, bytes | None]] = [
    ('"a"', b'"a"'),
    (r'"\u0061"', b'"a"'),
    (r'"\ud800"', None),
    ("7", b"7"),
    ("18446744073709551617", b"18446744073709551617"),
    ("18446744073709551618", b"18446744073709551618"),
    ("1.50", b"1.5"),
    ("1.5", b"1.5"),
    ("1E+400", b"1E+400"),
    ("true", None),
    ("null", None),
    ("[1]", None),
    ('{"a": 1}', None),
]


@pytest.mark.parametrize(("written", "says"), SPELLINGS)
def test_a_key_has_one_spelling(written: str, says: bytes | None) -> None:
    page = b'{"data": [{"x": {"id": 3}, "id": %b}], "pagination": %b}' % (
        written.encode(),
        b'{"limit": 1, "offset": 0, "has_more": false}',
    )
    assert key.keys(page, "id") == [says]


@pytest.mark.parametrize("record", [1, "text", None, True, [], [{"id": 1}], {}, {"ID": 1}])
def test_a_record_without_the_field_has_no_key(record: Any) -> None:
    assert key.keys(body([{"id": 1}, record, {"id": 2}]), "id") == [b"1", None, b"2"]
