"""Lists that change while they are read, and the truth about what lived through a scan.

Not here: pages of lists that stay as they are (test_paging).
"""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.sandbox.running import Running, started

KEYS = {
    "partners": "partnerId",
    "organizations": "organizationId",
    "usage": "usageId",
    "billing": "billingId",
}
# changes of billing (150 records, 10 pages of 15) -> records afterwards
RATES = [
    ({"insert": 1}, 160),
    ({"delete": 1}, 140),
    ({"insert": 0.5}, 155),
    ({"duplicate": 2}, 170),
    ({"move": 3}, 150),
    ({"update": 3}, 150),
    ({"insert": 2, "delete": 1}, 160),
]


def page(client: httpx.Client, name: str, offset: int, limit: int = 15) -> Any:
    answer = client.get(f"/v2/{name}", params={"limit": limit, "offset": offset})
    return answer.raise_for_status().json()


def pages(running: Running, name: str = "billing", count: int = 10) -> list[list[str]]:
    """Read pages of 15 one after the other; give the keys on each."""
    with running.client(running.token()) as client:
        found = [page(client, name, 15 * number)["data"] for number in range(count)]
    return [[one[KEYS[name]] for one in rows] for rows in found]


def size(running: Running, name: str = "billing") -> int:
    return int(running.told("GET", "/changes")[name]["count"])


@pytest.mark.parametrize(("rates", "records"), RATES)
def test_changes_happen_at_their_rate_a_page(
    sandbox: Running, rates: dict[str, float], records: int
) -> None:
    sandbox.change("billing", **rates)
    pages(sandbox)
    assert size(sandbox) == records
    assert size(sandbox, "usage") == 1500
    sandbox.told("DELETE", "/changes")
    assert pages(sandbox) == pages(sandbox)  # stopped: what has changed stays so
    assert size(sandbox) == records
    sandbox.reset()
    assert size(sandbox) == 150


@pytest.mark.parametrize("name", KEYS)
def test_every_growing_list_grows_by_records_like_its_others(sandbox: Running, name: str) -> None:
    before = set(sandbox.records(f"/v2/{name}", 100)[0])
    sandbox.change(name, insert=1, where="head")
    with sandbox.client(sandbox.token()) as client:
        first = page(client, name, 0)["data"][0]
        second = page(client, name, 0)["data"]
    assert before & set(first) >= {KEYS[name]}
    assert second[1] == first != second[0]


Keys = list[str]
PLACES: list[tuple[str, str, Callable[[Keys, Keys], bool]]] = [
    ("insert", "head", lambda was, now: now[1:] == was and now[0] not in was),
    ("insert", "tail", lambda was, now: now[:-1] == was and now[-1] not in was),
    ("delete", "head", lambda was, now: now == was[1:]),
    ("delete", "tail", lambda was, now: now == was[:-1]),
    ("move", "head", lambda was, now: now != was and now[1:] == [x for x in was if x != now[0]]),
    ("duplicate", "tail", lambda was, now: now[:-1] == was and now[-1] in was),
    ("insert", "anywhere", lambda was, now: [x for x in now if x in was] == was != now),
]


@pytest.mark.parametrize(("kind", "where", "expected"), PLACES)
def test_the_head_and_the_tail_are_what_they_say(
    sandbox: Running, kind: str, where: str, expected: Callable[[Keys, Keys], bool]
) -> None:
    with sandbox.client(sandbox.token()) as client:
        was = [one["partnerId"] for one in page(client, "partners", 0, 100)["data"]]
        sandbox.change("partners", **{kind: 1, "where": where})
        now = [one["partnerId"] for one in page(client, "partners", 0, 100)["data"]]
    assert expected(was, now), (was, now)


def test_updates_show_a_higher_revision(sandbox: Running) -> None:
    before = {one["billingId"]: one["revision"] for one in sandbox.records("/v2/billing", 100)}
    sandbox.change("billing", update=10)
    with sandbox.client(sandbox.token()) as client, sandbox.scan("billing") as truth:
        shown = [record for _ in range(2) for record in page(client, "billing", 0)["data"]]
    served = [json.loads(record) for record in truth["served"]]
    assert len(served) > len({one["billingId"] for one in served})  # both versions of a record
    assert all(one in shown for one in served)
    assert all(one in served for one in shown)
    after = {one["billingId"]: one["revision"] for one in sandbox.records("/v2/billing", 100)}
    assert set(truth["update"]) <= {key for key in before if after[key] > before[key]}
    assert 5 <= len(truth["update"]) <= 10


def test_the_truth_of_a_scan_is_exact(sandbox: Running) -> None:
    """What lived is what no change of the scan took away or brought."""
    before = {one["billingId"] for one in sandbox.records("/v2/billing", 100)}
    sandbox.change("billing", insert=1, delete=1, move=1, duplicate=0.5)
    with sandbox.scan("billing") as truth:
        seen = pages(sandbox)
    lived, gone, came = set(truth["lived"]), set(truth["delete"]), set(truth["insert"])
    assert not lived & (gone | came)
    assert len(came) == 9  # the changes before the first page belong to the scan's beginning
    assert truth["move"]
    assert truth["duplicate"]
    assert before - gone - lived <= before - set(seen[0])
    assert len(before - gone - lived) <= 1  # deleted just before the first page
    assert len(lived - before) <= 1  # the record that came just before the first page
    assert {key for keys in seen for key in keys} <= lived | gone | came
    assert set(seen[0]) <= lived | gone


def test_a_naive_reader_misses_records_that_lived(sandbox: Running) -> None:
    """That is what the truth is for: it names them."""
    sandbox.change("billing", delete=1, where="head")
    with sandbox.scan("billing") as truth:
        seen = pages(sandbox)
    missed = set(truth["lived"]) - {key for keys in seen for key in keys}
    assert len(missed) == 9  # one a delete after the first page


def test_a_quiet_list_lived_whole(sandbox: Running) -> None:
    with sandbox.scan("usage") as truth:
        pages(sandbox, "usage", 2)
    assert truth["lived"] == [one["usageId"] for one in sandbox.records("/v2/usage", 500)]
    assert not any(truth[kind] for kind in ("insert", "delete", "move", "duplicate", "update"))


def test_orders(sandbox: Running) -> None:
    still = [one["billingId"] for one in sandbox.records("/v2/billing", 100)]
    sandbox.change("billing", order="newest-first")
    assert [one["billingId"] for one in sandbox.records("/v2/billing", 100)] == still[::-1]
    sandbox.change("billing", order="shuffled")
    once, again = pages(sandbox, count=1), pages(sandbox, count=1)
    assert once != again
    assert {*once[0], *again[0]} <= set(still)


def test_the_same_seed_changes_the_same_way() -> None:
    options = ("--rate=0", "--partners=5", "--usage=200", "--billing=100", "--seed=3")
    changes = ("--change=billing:insert=0.7@head", "--change=delete=0.5", "--change=move=1@tail")
    found = []
    for _ in range(2):
        with started(*options, *changes) as running:
            found.append(pages(running, count=6))
            configured = running.told("GET", "/changes")
    assert found[0] == found[1]
    assert configured["billing"]["insert"] == 0.7
    assert configured["usage"] | {"insert": 0.0, "delete": 0.5, "move": 1.0} == configured["usage"]
    assert configured["plans"]["delete"] == 0.0
