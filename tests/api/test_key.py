"""The key of a stream's records: found only where it identifies every one of them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.api import key
from pipelines.api.key import Identity

CANDIDATES = ("id", "partnerId", "partner_id")
FIRST = Identity(CANDIDATES)
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


def settled(pages: list[list[Any]], identity: Identity = FIRST) -> str | None:
    """Return the first name that fits every page, as a scan tries one after the other."""
    for name in identity.names:
        if name is None or all(identity.fits(key.keys(body(page), name)) for page in pages):
            return name
    raise AssertionError("the whole record is the last to be tried")


def identifies(name: str, pages: list[list[Record]]) -> bool:
    """Say by the words of the rule whether a field identifies the records of every page."""
    for records in pages:
        values = [record.get(name) for record in records]
        if not all(isinstance(value, str | int | float) for value in values):
            return False
        if any(isinstance(value, bool) for value in values) or len(set(values)) < len(values):
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
]


@pytest.mark.parametrize(("pages", "expected"), SCANS)
def test_what_a_scan_settles(pages: list[list[Any]], expected: str | None) -> None:
    assert settled(pages) == expected


@pytest.mark.parametrize("candidates", [("invoice",), ()])
def test_a_known_key_is_not_doubted(candidates: tuple[str, ...]) -> None:
    identity = Identity(candidates, known=True)
    assert settled([[{"invoice": None}, {}, 7]], identity) == (
        candidates[0] if candidates else None
    )
    assert len(identity.names) == 1


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
