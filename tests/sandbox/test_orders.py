"""Faults of lists: other orders at each request, rows that are there twice, pages without end.

Each with the truth that a scan tells. Not here: faults of single answers (test_faults).
"""

from collections import Counter
from typing import Any

import pytest

from sandbox.faults.catalogue import CATALOGUE
from tests.sandbox.running import Running, started

BILLING = "/v2/billing"
OF_LISTS = {name for name, kind in CATALOGUE.items() if kind.stage == "list"}


def answer(running: Running, offset: int = 0, limit: int = 100) -> Any:
    """Read one page of billing, which has 150 records."""
    with running.client(running.token()) as client:
        found = client.get(BILLING, params={"offset": offset, "limit": limit})
    return found.raise_for_status().json()


def rows(running: Running, offset: int = 0, limit: int = 100) -> list[Any]:
    data: list[Any] = answer(running, offset, limit)["data"]
    return data


def keys(running: Running, offset: int = 0, limit: int = 100) -> list[str]:
    return [row["billingId"] for row in rows(running, offset, limit)]


def whole(running: Running) -> list[str]:
    return [row["billingId"] for row in running.records(BILLING, 100)]


@pytest.mark.parametrize("size", [2, 7, 60, 10**6])
def test_each_tie_is_in_another_order_at_each_request(sandbox: Running, size: int) -> None:
    still = keys(sandbox)
    sandbox.fault("ties", BILLING, value=size)
    with sandbox.scan("billing") as truth:
        once, again = keys(sandbox), keys(sandbox)
    assert len({*map(tuple, (still, once, again))}) == 3
    for shown in (once, again) if size <= 60 else ():
        ties = range(0, 100 - size, size)
        assert all({*shown[at : at + size]} == {*still[at : at + size]} for at in ties)
    assert len(set(once)) == 100
    assert set(truth["lived"]) == set(still) | set(truth["lived"][100:])
    assert not any(truth[kind] for kind in ("insert", "delete", "move", "update", "repeated"))
    sandbox.told("DELETE", "/faults")
    assert keys(sandbox) == still


def test_the_same_requests_see_the_same_order(sandbox: Running) -> None:
    found = []
    for _ in range(2):
        sandbox.reset()
        sandbox.fault("ties", BILLING)
        sandbox.fault("last-change", BILLING)
        found.append([rows(sandbox), rows(sandbox, 50)])
    assert found[0] == found[1]


def test_a_record_that_came_later_is_in_the_tie_of_the_one_before_it(sandbox: Running) -> None:
    still = whole(sandbox)
    sandbox.fault("ties", BILLING, value=50)
    sandbox.change("billing", insert=1, where="ends")
    with sandbox.scan("billing") as truth:
        keys(sandbox)  # one is added at one end, which belongs to the beginning of the scan
        shown = whole(sandbox)
    assert len(truth["insert"]) == 2
    assert len(truth["lived"]) == 151
    assert len(set(shown) - set(still)) >= 2


@pytest.mark.parametrize(("name", "offset"), [("last-change", 148), ("last-change-first", 0)])
def test_records_that_change_move_to_an_end(sandbox: Running, name: str, offset: int) -> None:
    before = {row["billingId"]: row["revision"] for row in sandbox.records(BILLING, 100)}
    sandbox.fault(name, BILLING)
    with sandbox.scan("billing") as truth:
        keys(sandbox)
        keys(sandbox)
        shown = [*rows(sandbox), *rows(sandbox, 100)]  # the second page changes two more
    end = rows(sandbox, offset, 2)
    assert len(shown) == 150
    assert all(row["revision"] > before[row["billingId"]] for row in end)
    assert set(truth["update"]) == set(truth["move"])
    assert 4 <= len(truth["update"]) <= 6
    assert len(truth["lived"]) == 150


REPEATED = [
    ("repeated-rows", "repeated", range(70, 81)),
    ("repeated-rows-near", "repeated", range(1, 2)),
    ("conflicting-rows", "conflicting", range(70, 81)),
    ("conflicting-rows-near", "conflicting", range(1, 2)),
]


@pytest.mark.parametrize(("name", "kind", "distances"), REPEATED)
def test_rows_are_there_twice(sandbox: Running, name: str, kind: str, distances: range) -> None:
    still = sandbox.records(BILLING, 100)
    sandbox.fault(name, BILLING, value=2)
    with sandbox.scan("billing") as truth:
        shown = sandbox.records(BILLING, 100)
    shown_keys = [row["billingId"] for row in shown]
    places = [[at for at, key in enumerate(shown_keys) if key == one] for one in truth[kind]]
    assert len(shown) == 153
    assert [len(each) for each in places] == [2, 2, 2]
    for first, second in places:
        assert second - first in distances
        assert (shown[first] == shown[second]) == (kind == "repeated")
        assert any(row in still for row in (shown[first], shown[second]))
    assert sandbox.records(BILLING, 100) == shown  # the same at every request
    assert len(truth["lived"]) == 150


def test_a_repeated_record_that_is_removed_is_gone_twice(sandbox: Running) -> None:
    sandbox.fault("repeated-rows", BILLING, value=100)
    assert Counter(Counter(whole(sandbox)).values()) == {2: 150}
    sandbox.change("billing", delete=3)
    whole(sandbox)
    sandbox.told("DELETE", "/changes")
    left = Counter(whole(sandbox))
    assert len(left) < 150
    assert set(left.values()) == {2}


def test_a_row_moves_from_the_last_quarter_to_the_first_and_stays(sandbox: Running) -> None:
    still = whole(sandbox)
    sandbox.fault("moved-row", BILLING, times=1)
    with sandbox.scan("billing") as truth:
        shown = keys(sandbox)
    assert len(truth["move"]) <= 1
    (moved,) = set(shown[:30]) - set(still[:30])
    assert moved in still[112:]
    assert [key for key in whole(sandbox) if key != moved] == [key for key in still if key != moved]
    assert whole(sandbox)[:100] == shown


def test_some_places_hold_rows_that_no_page_shows(sandbox: Running) -> None:
    still = whole(sandbox)
    sandbox.fault("hidden-rows", BILLING, value=5)
    with sandbox.scan("billing") as truth:
        page = answer(sandbox)
    assert len(page["data"]) == 95
    assert page["pagination"]["next_offset"] == 100
    assert truth["hidden"] == still[75:80]
    assert truth["lived"] == still[:75] + still[80:]


def test_the_page_in_the_middle_is_short(sandbox: Running) -> None:
    still = whole(sandbox)
    sandbox.fault("short-page", BILLING)
    page = answer(sandbox, 45, 50)
    assert [row["billingId"] for row in page["data"]] == still[45:70]
    assert page["pagination"]["next_offset"] == 95
    assert keys(sandbox, 70, 50) == still[70:95]  # the middle is on this page too
    assert keys(sandbox, 100, 50) == still[100:]
    assert keys(sandbox, 70) == still[70:]  # not where nothing follows


def test_pages_never_end(sandbox: Running) -> None:
    still = whole(sandbox)
    sandbox.fault("never-ending", BILLING)
    page = answer(sandbox, 1000)
    assert page["pagination"]["next_offset"] == 1100
    assert [row["billingId"] for row in page["data"]] == still[100:] + still[:50]


def test_keys_never_come_back(sandbox: Running) -> None:
    still = whole(sandbox)
    sandbox.fault("new-keys", BILLING)
    with sandbox.scan("billing") as truth:
        once, again = keys(sandbox), keys(sandbox)
    assert len({*once, *again, *still}) == 350
    assert {len(key) for key in once} == {len(key) for key in still}
    assert truth["lived"] == []
    assert set(truth["renamed"]) == set(still)


def test_an_empty_list_stays_empty() -> None:
    faults = [f"--fault={name}:{BILLING}" for name in OF_LISTS]
    with started("--rate=0", "--partners=1", "--usage=0", "--billing=0", *faults) as running:
        assert answer(running)["data"] == []


def test_other_lists_are_as_they_were(sandbox: Running) -> None:
    before = sandbox.records("/v2/usage", 500)
    for name in OF_LISTS:
        sandbox.fault(name, BILLING)
    assert sandbox.records("/v2/usage", 500) == before
    assert rows(sandbox)
