"""Waits: never shorter than the service asks, the same for everybody, never for ever."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tenacity import AsyncRetrying, RetryCallState

from pipelines.core.errors import Postponed, RateLimited, Unavailable
from pipelines.http.client import ServiceClient
from pipelines.http.problems import wait_seconds
from pipelines.http.retry import (
    FORGET_COMMAND,
    MAX_RATE_LIMITED,
    SUCCESSES_PER_RETRY,
    RetryQuota,
    pause_seconds,
)
from pipelines.rate_limit.limiter import Slot
from pipelines.rate_limit.memory import LONGEST_BLOCK
from tests.http.conftest import Inside
from tests.http.support import (
    EPOCH,
    HandClock,
    Reply,
    Script,
    Unlimited,
    http_date,
    page_reply,
    problem_reply,
)

NOW = EPOCH.timestamp()
FAR = LONGEST_BLOCK  # seven days

# Retry-After, other headers, retry_after_seconds of the body, and the seconds that this asks for.
ASKED: dict[str, tuple[str | None, dict[str, str], Any, float | None]] = {
    "seconds": ("7", {}, None, 7),
    "spaces": ("\t42 ", {}, None, 42),
    "fraction": ("1.5", {}, None, 1.5),
    "date": (http_date(30), {"date": http_date()}, None, 30),
    "date of a service whose clock is a day ahead": (
        http_date(86_430),
        {"date": http_date(86_400)},
        None,
        30,
    ),
    "date without Date": (http_date(30), {}, None, 30),
    "date, obsolete form": ("Tuesday, 24-Nov-26 12:00:30 GMT", {}, None, 30),
    "date, asctime": ("Tue Nov 24 12:00:30 2026", {}, None, 30),
    "date in the past": (http_date(-30), {}, None, None),
    "year 9999": ("Fri, 31 Dec 9999 23:59:59 GMT", {}, None, FAR),
    "1e9 seconds": ("1000000000", {}, None, FAR),
    "400 digits": ("9" * 400, {}, None, FAR),
    "0": ("0", {}, None, None),
    "negative": ("-5", {}, None, None),
    "missing": (None, {}, None, None),
    "words": ("a while", {}, None, None),
    "no ASCII digits": ("٤٢", {}, None, None),
    "exponent": ("1e3", {}, None, None),
    "impossible date": ("Sun, 99 Nov 1994 08:49:37 GMT", {}, None, None),
    "body only": (None, {}, 9, 9),
    "body, text": (None, {}, "9", 9),
    "body, fraction": (None, {}, 2.5, 2.5),
    "body, true": (None, {}, True, None),
    "body, negative": (None, {}, -9, None),
    "body longer than header": ("3", {}, 9, 9),
    "header longer than body": ("9", {}, 3, 9),
    "body beside words": ("soon", {}, 9, 9),
}


@pytest.mark.parametrize("case", ASKED.values(), ids=ASKED.keys())
def test_what_an_answer_asks_for(
    case: tuple[str | None, dict[str, str], Any, float | None],
) -> None:
    header, headers, member, expected = case
    headers = headers if header is None else {**headers, "retry-after": header}
    body = json.dumps({} if member is None else {"retry_after_seconds": member}).encode()
    assert wait_seconds(headers, body, NOW) == expected


@given(st.text(), st.binary())
def test_no_answer_is_a_failure_of_ours(text: str, body: bytes) -> None:
    seconds = wait_seconds({"retry-after": text, "date": text}, body, NOW)
    assert seconds is None or 0 <= seconds <= FAR


@given(st.none() | st.floats(0, 1e9), st.integers(1, 10_000))
def test_a_pause_is_never_shorter_than_asked(asked: float | None, in_a_row: int) -> None:
    pause = pause_seconds(asked, in_a_row)
    assert min(asked or 1, LONGEST_BLOCK) <= pause <= LONGEST_BLOCK


WAITED = {name: case for name, case in ASKED.items() if (case[3] or 0) < FAR}


@pytest.mark.parametrize("case", WAITED.values(), ids=WAITED.keys())
def test_a_429_is_not_asked_again_earlier(
    case: tuple[str | None, dict[str, str], Any, float | None],
) -> None:
    header, headers, member, expected = case
    given_headers = {**headers, **({} if header is None else {"retry-after": header})}
    body = {} if member is None else {"retry_after_seconds": member}
    encoded = {name: value.encode().decode("latin-1") for name, value in given_headers.items()}
    script = Script(Reply(429, json.dumps(body).encode(), encoded), page_reply())
    desk = script.desk()
    assert desk.page().status == 200
    (first, _), (second, _) = script.requests
    least = expected or 1  # 0 or nothing: back off
    assert least <= second - first <= least + 0.2
    assert desk.statuses == [429]


def test_refusals_without_any_header_back_off_and_are_counted() -> None:
    script = Script(*[Reply(429)] * 4, page_reply())
    desk = script.desk()
    desk.page()
    moments = [at for at, _ in script.requests]
    for wait, least in zip((b - a for a, b in pairwise(moments)), (1, 2, 4, 8), strict=True):
        assert least <= wait <= least + 0.2
    assert desk.statuses == [429] * 4


def test_refusals_for_ever_end() -> None:
    script = Script(problem_reply(429, "slow down", **{"Retry-After": "60"}))
    desk = script.desk()
    with pytest.raises(RateLimited, match=r"slow down.*20 requests in a row") as got:
        desk.page()
    assert "max_requests_per_window" in got.value.remedy
    assert len(script.requests) == len(desk.attempts) == MAX_RATE_LIMITED
    assert desk.clock.passed >= 60 * (MAX_RATE_LIMITED - 1)


FAULTS = ["storm-seconds", "storm-date", "storm-silent", "storm-garbled", "error-503"]


@pytest.mark.parametrize("fault", FAULTS)
def test_the_sandbox_counts_no_early_retry(inside: Inside, fault: str) -> None:
    inside.fault(fault, path="/v2/usage", times=3)
    desk = inside.desk()
    assert desk.page().status == 200
    assert len(desk.attempts) == 3
    assert inside.control("GET", "/statistics")["early_retries"] == 0


LONG = ["Fri, 31 Dec 9999 23:59:59 GMT", "1000000000", "9" * 400, "301", "3600"]


@pytest.mark.parametrize("header", LONG, ids=lambda header: header[:12])
@pytest.mark.parametrize("status", [429, 503])
def test_a_wait_too_long_for_a_run_ends_it(header: str, status: int) -> None:
    script = Script(problem_reply(status, "closed", **{"Retry-After": header}))
    desk = script.desk()
    with pytest.raises(Postponed, match="This run of connection `acme` ends") as got:
        desk.page()
    assert len(script.requests) == 1
    assert EPOCH < got.value.until <= EPOCH + timedelta(days=7)
    assert 0 < desk.limiter.blocks[-1] <= LONGEST_BLOCK
    assert "partner-sync sync" in got.value.remedy


class Closed(Unlimited):
    """A limiter whose database remembers a long pause."""

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[Slot]:
        if not self.slots:
            raise Postponed("The service asks client:0123456789abcdef to wait.", EPOCH)
        yield self.slots[0]


def test_a_pause_that_the_limiter_remembers_names_the_connection_and_the_command() -> None:
    script = Script(page_reply())
    desk = script.desk()
    desk.limiter = Closed(desk.clock)
    with pytest.raises(Postponed, match="This run of connection `acme` ends") as got:
        desk.page()
    assert got.value.until == EPOCH
    assert f"`{FORGET_COMMAND} acme`" in got.value.remedy
    assert (script.requests, desk.attempts) == ([], [])


class OneAtATime(Unlimited):
    """A limiter that gives the next slot when the previous one is given back."""

    def __init__(self, clock: HandClock) -> None:
        super().__init__(clock)
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[Slot]:
        async with self._turn, super().slot() as slot:
            yield slot


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    "reply",
    [problem_reply(200, **{"Retry-After": "60"}), Reply(body=b'{"retry_after_seconds": 60}')],
    ids=["header", "body"],
)
def test_nobody_sends_before_the_pause_is_known(reply: Reply, status: int) -> None:
    if status == 503:
        reply = problem_reply(200, **{"Retry-After": "60"})
    script = Script(Reply(status, reply.body, reply.headers), page_reply())
    desk = script.desk()
    desk.limiter = OneAtATime(desk.clock)

    async def ask(client: ServiceClient) -> None:
        await client.whoami()  # the token
        pages = [client.page("/v2/usage", 0, 10, desk.attempts.append) for _ in range(3)]
        await asyncio.gather(*pages)

    script.replies.insert(0, Reply(body=b"{}"))
    desk.run(ask)
    moments = [at for at, _ in script.requests]
    assert moments[1] == moments[0] == 0
    assert min(moments[2:]) >= 60


def test_failures_that_pass_back_off() -> None:
    script = Script(Reply(500))
    desk = script.desk()
    with pytest.raises(Unavailable, match=r"status 500.*Tried 5 times\. Nothing more was read"):
        desk.page()
    assert len(script.requests) == 5
    assert 0 < desk.clock.passed <= 15


def test_an_outage_uses_up_the_retries_of_a_run() -> None:
    script = Script(Reply(500))
    desk = script.desk()

    async def ask(client: ServiceClient) -> list[str]:
        said = []
        for _ in range(20):
            with pytest.raises(Unavailable) as got:
                await client.page("/v2/usage", 0, 10, desk.attempts.append)
            said.append(str(got.value))
        return said

    said = desk.run(ask)
    assert len(script.requests) == 60 + 20  # 60 retries, and the first try of each request
    assert "Tried once. The run has used up its 60 retries." in said[-1]


def test_successes_earn_retries_back() -> None:
    quota = RetryQuota()
    state = RetryCallState(AsyncRetrying(), None, (), {})
    for _ in range(1000):
        quota.spend(state)
        for _success in range(SUCCESSES_PER_RETRY):
            quota.earn()
        assert not quota(state)
