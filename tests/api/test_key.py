"""The key of a stream's records: found only where it identifies every one of them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.api.key import KeySearch
from pipelines.errors import ContractBroken

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


def searched(pages: list[list[Any]], search: KeySearch | None = None) -> KeySearch:
    search = search or KeySearch(CANDIDATES)
    for records in pages:
        search.look(json.dumps({"data": records, "pagination": {}}).encode())
    return search


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
    search = searched(pages)
    sound = [name for name in CANDIDATES if identifies(name, pages)]
    assert search.key == (sound[0] if sound else None)
    assert search.found is any(pages)


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


@pytest.mark.parametrize(("pages", "key"), SCANS)
def test_what_a_scan_settles(pages: list[list[Any]], key: str | None) -> None:
    search = searched(pages)
    assert (search.key, search.found) == (key, True)


def test_an_empty_list_settles_nothing() -> None:
    search = searched([[], []])
    assert not search.found


def test_a_known_key_is_not_doubted() -> None:
    search = searched([[{"id": None}, {}, 7]], KeySearch(["invoice"], known=True))
    assert (search.key, search.found) == ("invoice", False)


def test_a_known_absence_of_a_key_is_not_doubted_either() -> None:
    search = searched([[{"id": 1}]], KeySearch([], known=True))
    assert (search.key, search.found) == (None, False)


@pytest.mark.parametrize("record", [1, "text", None, True, [], [{"id": 1}]])
def test_a_record_that_is_no_object_breaks_the_contract(record: Any) -> None:
    search = KeySearch(CANDIDATES)
    with pytest.raises(ContractBroken, match=r"a record is no object: .*data\[1\]"):
        searched([[{"id": 1}, record]], search)
    assert not search.found
