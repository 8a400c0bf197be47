"""Faults, one by one over HTTP: what a client sees of each, when it befalls, how it ends.

Not here: connections that break (test_wires), lists whose order changes (test_orders), the routes
that switch faults on (test_control).
"""

import gzip
import json
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
import pytest

from sandbox.faults.catalogue import CATALOGUE
from tests.sandbox.running import Running, started

USAGE = "/v2/usage?limit=100&offset=200"
PROBLEM = "application/problem+json"
Seen = Callable[[httpx.Response], bool]


def status(code: int, media_type: str = PROBLEM) -> Seen:
    return lambda answer: (
        answer.status_code == code and media_type in answer.headers["content-type"]
    )


def waits(text: str | None) -> Seen:
    return lambda answer: answer.status_code == 429 and answer.headers.get("retry-after") == text


def dated(answer: httpx.Response) -> bool:
    if answer.status_code != 429:
        return False
    at = parsedate_to_datetime(answer.headers["retry-after"]).timestamp()
    return 0 <= at - time.time() <= 3


def no_json(answer: httpx.Response) -> bool:
    try:
        json.loads(answer.content)
    except (ValueError, RecursionError):
        return answer.status_code == 200
    return False


def paging(**members: Any) -> Seen:
    return lambda answer: members.items() <= answer.json()["pagination"].items()


def rows(test: Callable[[list[Any]], Any]) -> Seen:
    return lambda answer: answer.status_code == 200 and bool(test(answer.json()["data"]))


def middle(text: bytes) -> Seen:
    """Some record, but not every one, was written with this in it."""
    return lambda answer: answer.status_code == 200 and answer.content.count(text) == 1


def other_host(answer: httpx.Response) -> bool:
    return answer.headers["location"] == "https://elsewhere.invalid/v2/usage"


def lies(answer: httpx.Response) -> bool:
    return bool(answer.status_code == 500 and answer.json()["status"] == 200)


def key_twice(data: list[Any]) -> bool:
    twice = [one for one in data if one["usageId"] == data[50]["usageId"]]
    return len(twice) == 2 and twice[0] != twice[1] and len(data) == 101


SEEN: list[tuple[str, Seen]] = [
    ("error-500", status(500)),
    ("error-502", status(502)),
    ("error-503", lambda answer: status(503)(answer) and answer.headers["retry-after"] == "1"),
    ("error-503-silent", lambda a: status(503)(a) and "retry-after" not in a.headers),
    ("error-504", status(504)),
    ("html-502", status(502, "text/html")),
    ("storm-seconds", waits("1")),
    ("storm-date", dated),
    ("storm-silent", waits(None)),
    ("storm-garbled", waits("a while")),
    ("redirect", lambda answer: status(307, "text")(answer) and other_host(answer)),
    ("problem-cut", lambda answer: status(500)(answer) and not answer.content.endswith(b"}")),
    ("problem-lies", lies),
    ("html-200", status(200, "text/html")),
    ("truncated", no_json),
    ("empty-body", no_json),
    ("no-object", lambda answer: bool(answer.json() == [])),
    ("no-utf8", no_json),
    ("nested", lambda answer: answer.status_code == 200 and answer.content.count(b"[") == 100_000),
    ("wrong-offset", paging(offset=201)),
    ("no-next-offset", paging(has_more=True, next_offset=None)),
    ("endless", paging(has_more=True, next_offset=300)),
    ("false-end", paging(has_more=False, next_offset=None)),
    ("empty-page", lambda a: paging(has_more=True, next_offset=300)(a) and a.json()["data"] == []),
    ("standstill", paging(next_offset=200)),
    ("jump", paging(next_offset=307)),
    ("no-pagination", lambda answer: set(answer.json()) == {"data"}),
    ("pagination-texts", paging(limit="100", offset="200", next_offset="300")),
    ("column-appears", rows(lambda data: all(one.get("appearedLater") == "new" for one in data))),
    ("column-disappears", rows(lambda data: not any("revision" in one for one in data))),
    ("number-text", rows(lambda data: all(isinstance(one["quantity"], str) for one in data))),
    ("text-object", rows(lambda data: all(any("value" in v for v in _dicts(o)) for o in data))),
    ("key-twice", rows(key_twice)),
    ("no-key", rows(lambda data: sum("usageId" not in one for one in data) == 1)),
    ("null-key", middle(b'"usageId":null')),
    ("no-record", middle(b'"not an object"')),
    ("name-twice", middle(b',"revision":"second"')),
    ("nan", middle(b"NaN")),
    ("infinity", middle(b"-Infinity")),
    ("huge", middle(b"1e999")),
    ("surrogate", middle(b'"\\ud83d"')),
    ("deep", middle(100 * b"[" + 100 * b"]")),
    ("half-limit", paging(limit=50, next_offset=250)),
    ("clamp-limit", paging(limit=100)),
    ("refuse-limit", lambda a: status(400)(a) and a.json()["errors"][0]["field"] == "limit"),
    ("scope-revoked", status(403)),
    ("token-refused", status(401)),
]
OF_TOKENS = {"token-denied", "token-endless"}
OF_COMPRESSION = {"gzip-bomb", "gzip-lie"}
OF_WIRES = {name for name, kind in CATALOGUE.items() if kind.stage == "wire"}
OF_LISTS = {name for name, kind in CATALOGUE.items() if kind.stage == "list"}


def _dicts(record: Any) -> list[Any]:
    return [value for value in record.values() if isinstance(value, dict)]


def test_every_kind_is_tried_somewhere() -> None:
    tried = {name for name, _ in SEEN} | OF_TOKENS | OF_COMPRESSION | OF_WIRES | OF_LISTS
    assert tried == set(CATALOGUE)
    assert len(CATALOGUE) == len(SEEN) + 4 + len(OF_WIRES) + len(OF_LISTS)


@pytest.mark.parametrize(("name", "seen"), SEEN)
def test_a_fault_befalls_once_and_the_next_answer_is_right(
    sandbox: Running, name: str, seen: Seen
) -> None:
    with sandbox.client(sandbox.token()) as client:
        right = client.get(USAGE)
        number = sandbox.fault(name, times=1)
        wrong = client.get(USAGE)
        assert seen(wrong), (wrong.status_code, wrong.headers, wrong.content[-300:])
        assert not seen(right) or name in {"clamp-limit", "endless"}
        if name == "token-refused":
            assert client.get(USAGE).status_code == 401  # for good: another token is needed
            client.headers["Authorization"] = f"Bearer {sandbox.token()}"
        assert client.get(USAGE).content == right.content
    assert sandbox.befallen(number) == 1


def test_limits_over_the_maximum_are_clamped(sandbox: Running) -> None:
    with sandbox.client(sandbox.token()) as client:
        assert client.get("/v2/usage?limit=501").status_code == 400
        sandbox.fault("clamp-limit", value=500)
        page = client.get("/v2/usage?limit=9999").json()
    assert page["pagination"]["limit"] == len(page["data"]) == 500


@pytest.mark.parametrize("name", ["column-appears", "column-disappears", "number-text"])
def test_drift_begins_at_an_offset(sandbox: Running, name: str) -> None:
    with sandbox.client(sandbox.token()) as client:
        before = [client.get(f"/v2/usage?offset={offset}").content for offset in (0, 100, 200)]
        sandbox.fault(name, value=200)
        after = [client.get(f"/v2/usage?offset={offset}").content for offset in (0, 100, 200)]
    assert [a == b for a, b in zip(before, after, strict=True)] == [True, True, False]


def test_the_last_page_stays_the_last_where_a_fault_needs_more(sandbox: Running) -> None:
    last = "/v2/usage?limit=500&offset=1000"
    with sandbox.client(sandbox.token()) as client:
        right = client.get(last).json()
        for name in ("no-next-offset", "empty-page", "standstill", "jump"):
            sandbox.fault(name)
        assert client.get(last).json() == right
        sandbox.fault("endless")
        assert client.get(last).json()["pagination"]["next_offset"] == 1500


def test_a_bomb_is_small_until_it_is_read(sandbox: Running) -> None:
    sandbox.fault("gzip-bomb", value=70)
    with (
        sandbox.client(sandbox.token()) as client,
        client.stream("GET", "/v2/usage", headers={"Accept-Encoding": "gzip"}) as answer,
    ):
        raw = b"".join(answer.iter_raw())
    assert len(raw) < 100_000
    assert len(gzip.decompress(raw)) == 70 * 2**20


def test_a_plain_body_may_say_that_it_is_compressed(sandbox: Running) -> None:
    sandbox.fault("gzip-lie")
    with sandbox.client(sandbox.token()) as client, pytest.raises(httpx.DecodingError):
        client.get("/v2/usage")


@pytest.mark.parametrize(
    ("name", "code"), [("token-denied", 401), ("error-500", 500), ("html-200", 200)]
)
def test_the_token_route_fails_too(sandbox: Running, name: str, code: int) -> None:
    sandbox.fault(name, "/oauth/token", times=1)
    answer = sandbox.token_answer()
    assert answer.status_code == code
    assert "access_token" not in answer.text
    assert sandbox.token()


def test_a_token_may_come_without_its_lifetime(sandbox: Running) -> None:
    sandbox.fault("token-endless", times=1)
    assert set(sandbox.token_answer().json()) == {"access_token", "token_type"}


# every, after, times -> which of eight requests are befallen
SCHEDULES = [
    ({}, [1, 2, 3, 4, 5, 6, 7, 8]),
    ({"times": 2}, [1, 2]),
    ({"every": 3}, [3, 6]),
    ({"after": 5}, [6, 7, 8]),
    ({"after": 2, "every": 2, "times": 2}, [4, 6]),
]


@pytest.mark.parametrize(("scope", "expected"), SCHEDULES)
def test_the_scope_of_a_fault(sandbox: Running, scope: dict[str, int], expected: list[int]) -> None:
    sandbox.fault("error-500", "/v2/billing", **scope)
    with sandbox.client(sandbox.token()) as client:
        assert client.get("/v2/usage").status_code == 200  # another path is another scope
        client.get("/v2/billing?limit=0")  # what fails anyway is not counted
        statuses = [client.get("/v2/billing").status_code for _ in range(8)]
    assert [n for n, status in enumerate(statuses, 1) if status == 500] == expected


def test_a_token_is_refused_every_so_many_requests(sandbox: Running) -> None:
    sandbox.fault("token-refused", every=4)
    with sandbox.client(sandbox.token()) as client:
        assert [client.get("/v2/whoami").status_code for _ in range(5)] == [200, 200, 200, 401, 401]
        client.headers["Authorization"] = f"Bearer {sandbox.token()}"
        assert client.get("/v2/whoami").status_code == 200


def test_a_befallen_request_counts_and_shows_the_limit() -> None:
    options = ("--window", "3600", "--usage", "1", "--fault", "error-503:/v2/usage:2")
    with started(*options, "--fault", "storm-silent:/v2/whoami") as running:
        with running.client(running.token()) as client:
            answers = [client.get("/v2/usage") for _ in range(4)]
            storm = client.get("/v2/whoami")
        counted = running.statistics()
    assert [answer.status_code for answer in answers] == [200, 503, 200, 503]
    assert [answer.headers["x-ratelimit-remaining"] for answer in answers] == ["4", "3", "2", "1"]
    assert storm.status_code == 429
    assert storm.headers["x-ratelimit-remaining"] == "0"  # "Limits", rule 4
    assert counted["admitted"] == 5
    assert counted["requests"]["/v2/usage"] == {"200": 2, "503": 2}
