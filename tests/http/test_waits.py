"""Waits: never shorter than the service asks, the same for everybody, never for ever."""

import asyncio
import json
import logging
from collections.abc import Awaitable
from contextlib import closing
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.core.errors import Postponed, ServiceError
from pipelines.http.client import Attempt, ServiceClient
from pipelines.http.retry import wait_seconds
from pipelines.metadata.engine import Metadata
from pipelines.rate_limit.actor_state import LONGEST_PAUSE
from pipelines.rate_limit.limiter import RateLimiter
from tests.http.support import EPOCH, Reply, Script, http_date, page_reply

AHEAD = {"Retry-After": http_date(86_430), "Date": http_date(86_400)}
# Headers and retry_after_seconds of an answer, and the seconds that this asks for; 0: back off.
ASKED: dict[str, tuple[dict[str, str], Any, float]] = {
    "seconds": ({"Retry-After": "7"}, None, 7),
    "date": ({"Retry-After": http_date(30), "Date": http_date()}, None, 30),
    "date of a clock a day ahead": (AHEAD, None, 30),
    "year 9999": ({"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT"}, None, LONGEST_PAUSE),
    "fraction": ({"Retry-After": " 1.5 "}, None, 1.5),
    "date, no time zone": ({"Retry-After": http_date(7).removesuffix(" GMT")}, None, 7),
    "exponent": ({"Retry-After": "2814e-3"}, 1, 2.814),
    "unit": ({"Retry-After": "2 seconds"}, 1, 2),
    "minutes": ({"Retry-After": "2 minutes"}, 1, 120),
    "digits of another script": ({"Retry-After": "\u0663".encode().decode("latin-1")}, 1, 3),
    "no number but a body": ({"Retry-After": "Infinity"}, 1, 1),
    "one of two is no number": ({"Retry-After": "4, soon"}, None, 4),
    "body, text with a unit": ({}, "9 s", 9),
    "two headers": ({"Retry-After": "3, 9 ,1"}, None, 9),
    "date that has passed": ({"Retry-After": http_date(-7)}, None, 0),
    "no day of a month": ({"Retry-After": "Fri, 99 Dec 99999 23:59:59 GMT"}, None, 0),
    "no number": ({"Retry-After": "nan"}, None, 0),
    "no date": ({"Retry-After": "a while", "Date": http_date(-80_000)}, None, 0),
    "0": ({"Retry-After": "0"}, None, 0),
    "missing": ({}, None, 0),
    "body only": ({}, 9, 9),
    "body, text": ({}, "9", 9),
    "body, fraction": ({}, 2.5, 2.5),
    "body, true": ({}, True, 0),
    "body, negative": ({}, -9, 0),
    "body longer than header": ({"Retry-After": "3"}, 9, 9),
    "header longer than body": ({"Retry-After": "9"}, 3, 9),
}


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(("headers", "member", "expected"), ASKED.values(), ids=ASKED)
def test_nobody_asks_again_earlier_than_told(
    headers: dict[str, str], member: Any, expected: float, status: int
) -> None:
    body = b"" if member is None else json.dumps({"retry_after_seconds": member}).encode()
    replies = (Reply(body=b"{}"), Reply(status, body, headers), page_reply())
    script = Script(*replies, expires_in=10**9)

    async def ask(client: ServiceClient) -> list[int | None]:
        await client.read_object("/v2/whoami")
        return await script.pages(client, 3)

    assert script.run(ask) == [200] * 3
    moments = [at for at, _ in script.requests]
    assert moments[:2] == [0, 0]
    assert min(moments[2:]) >= expected  # the other requests wait as long
    assert max(expected, 1) <= script.clock.passed <= max(expected, 2)
    assert script.statuses == [status]


@pytest.mark.long
@given(st.text(), st.binary())
@settings(max_examples=30)
def test_whatever_an_answer_says_is_a_wait(text: str, body: bytes) -> None:
    answer = Attempt(headers={"retry-after": text, "date": text}, body=body)
    assert 0 <= wait_seconds(answer, EPOCH.timestamp()) <= LONGEST_PAUSE


def test_failures_without_any_header_back_off_and_are_counted_or_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "pipelines")
    script = Script(*[Reply(429)] * 4, *[Reply(503)] * 2, page_reply())
    script.page()
    moments = [at for at, _ in script.requests]
    for number, (before, after) in enumerate(pairwise(moments)):
        assert min(2**number, 30) - 0.001 <= after - before <= min(2**number, 29) + 1.001
    assert script.statuses == [429] * 4 + [503] * 2
    first, second = caplog.messages
    assert first.startswith("acme: The service answered /v2/usage with status 503: it may pass.")
    assert second.endswith(" s or later.")
    assert " Trying again in " in second


def test_a_body_that_breaks_does_not_hide_the_pause() -> None:
    headers = {"Retry-After": "60", "Content-Encoding": "gzip"}
    script = Script(Reply(503, b"no gzip", headers), page_reply())
    assert script.page().status == 200
    assert "decompressed" in str(script.attempts[0].error)
    assert script.requests[1][0] >= 60


@pytest.mark.parametrize("status", [429, 503])
def test_a_pause_of_the_description_is_about_nothing_else(status: int, tmp_path: Path) -> None:
    """No limit counts it, and lists can be read without it: each sync ended for an hour."""
    script = Script(Reply(status, headers={"Retry-After": "3600"}), page_reply())

    async def ask(client: ServiceClient) -> list[int | None]:
        with pytest.raises(ServiceError):
            await client.read_document("/docs/openapi.json")
        return await script.pages(client, 3)

    with closing(Metadata.open(tmp_path / "metadata.db")) as metadata:
        script.limiter = RateLimiter(metadata, "acme's actor", script.clock)
        assert script.run(ask) == [200] * 3
    assert script.clock.passed < 3


@pytest.mark.parametrize("header", ["Fri, 31 Dec 9999 23:59:59 GMT", "1000000000", "330"])
@pytest.mark.parametrize("status", [429, 503])
def test_too_long_a_wait_ends_a_run_and_is_kept(header: str, status: int, tmp_path: Path) -> None:
    script = Script(Reply(status, headers={"Retry-After": header}))
    metadata = Metadata.open(tmp_path / "metadata.db")

    def ask(client: ServiceClient) -> Awaitable[list[Any]]:
        return asyncio.gather(*(script.ask_page(client) for _ in range(3)), return_exceptions=True)

    for _ in range(2):
        script.limiter = RateLimiter(metadata, "acme's actor", script.clock)
        for error in script.run(ask):
            assert isinstance(error, Postponed)
            assert "This run of connection `acme` ends" in str(error)
            until = datetime.fromisoformat(error.remedy.partition("after ")[2][:16] + "Z")
            assert EPOCH < until <= EPOCH + timedelta(days=7, minutes=1)
            assert f"No request is sent before {until:%Y-%m-%d %H:%M} UTC" in str(error)
            assert "`partner-sync connections unblock acme`" in error.remedy
    assert len(script.requests) <= 3  # those under way when the pause became known
    metadata.close()
