"""What headers say of the rate limit, readable or not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.rate_limit.headers import (
    RateHeaders,
    is_of_actor,
    read_rate_headers,
    read_retry_after,
)

LIMIT, REMAINING, RESET = "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"
NOW = 1_790_000_000.0  # 2026-09-21 14:13:20 UTC
DATE = "Mon, 21 Sep 2026 14:13:20 GMT"

RATE = [
    ({LIMIT: "5", REMAINING: "3"}, RateHeaders(5, 3)),
    ({"x-ratelimit-limit": " 5 ", "X-RATELIMIT-REMAINING": "0"}, RateHeaders(5, 0)),
    ({LIMIT: "5"}, RateHeaders(5, None)),
    ({REMAINING: "3"}, RateHeaders()),
    ({LIMIT: "5", REMAINING: "6"}, RateHeaders(5, None)),
    ({LIMIT: "5", REMAINING: "-1"}, RateHeaders(5, None)),
    ({LIMIT: "5", REMAINING: "3.5"}, RateHeaders(5, None)),
    ({LIMIT: "0", REMAINING: "0"}, RateHeaders()),
    ({LIMIT: "-5"}, RateHeaders()),
    ({LIMIT: "five"}, RateHeaders()),
    ({LIMIT: "5, 5"}, RateHeaders()),
    ({LIMIT: "\uff15"}, RateHeaders()),
    ({LIMIT: "1000000", REMAINING: "3"}, RateHeaders(100, 3)),
    ({LIMIT: "9" * 5000}, RateHeaders()),
    ({}, RateHeaders()),
]


@pytest.mark.parametrize(("headers", "said"), RATE)
def test_unreadable_values_count_as_missing(headers: dict[str, str], said: RateHeaders) -> None:
    assert read_rate_headers(headers) == said


@pytest.mark.parametrize("reset", ["1790000001", "1790000001000", "1", "-7", DATE, "soon", ""])
def test_no_reset_changes_anything(reset: str) -> None:
    assert read_rate_headers({LIMIT: "5", REMAINING: "3", RESET: reset}) == RateHeaders(5, 3)


@given(st.text(), st.text(), st.text())
def test_nothing_in_headers_raises(limit: str, remaining: str, retry_after: str) -> None:
    headers = {LIMIT: limit, REMAINING: remaining, "Retry-After": retry_after}
    said = read_rate_headers(headers)
    assert said.limit is None or 1 <= said.limit <= 100
    seconds = read_retry_after(headers, NOW)
    assert seconds is None or seconds > 0


RETRY_AFTER = [
    ({"Retry-After": "7"}, 7.0),
    ({"retry-after": " 1.5 "}, 1.5),
    ({"Retry-After": "1000000000"}, 1e9),
    ({"Retry-After": "0"}, None),
    ({"Retry-After": "-3"}, None),
    ({"Retry-After": "nan"}, None),
    ({"Retry-After": "inf"}, None),
    ({"Retry-After": "a while"}, None),
    ({"Retry-After": "Mon, 21 Sep 2026 14:13:27 GMT"}, 7.0),
    ({"Retry-After": "Mon, 21 Sep 2026 14:13:27"}, 7.0),
    ({"Retry-After": "Mon, 21 Sep 2026 14:13:27 GMT", "Date": DATE}, 7.0),
    ({"Retry-After": DATE, "Date": "Mon, 21 Sep 2026 14:03:20 GMT"}, 600.0),  # their clock
    ({"Retry-After": "Mon, 21 Sep 2026 14:13:13 GMT"}, None),
    ({"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT"}, 253402300799.0 - NOW),
    ({"Retry-After": "Fri, 99 Dec 99999 23:59:59 GMT"}, None),
    ({}, None),
]


@pytest.mark.parametrize(("headers", "seconds"), RETRY_AFTER)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert read_retry_after(headers, NOW) == seconds


OF_ACTOR = [  # status, stated limit, known limit
    (200, 5, None, True),
    (204, 5, 7, True),
    (403, 5, None, True),
    (401, 1, 5, False),
    (404, 1, 5, False),
    (500, None, 5, False),
    (429, 5, 5, True),
    (429, 1, 5, False),
    (429, 1, None, False),
    (429, 1, 1, True),
    (429, None, None, True),
    (429, 5, None, True),
]


@pytest.mark.parametrize(("status", "stated", "known", "expected"), OF_ACTOR)
def test_which_answers_speak_of_the_actor(
    status: int, stated: int | None, known: int | None, *, expected: bool
) -> None:
    assert is_of_actor(status, RateHeaders(stated), known) is expected
