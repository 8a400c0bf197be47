"""Every row of the failure table against a real service: the words, and how often it was asked."""

import asyncio
import gzip
import re
import socket
from collections.abc import AsyncIterator
from email.utils import formatdate
from time import time

import httpx
import pytest

from pipelines.api import body
from pipelines.api.client import Client
from pipelines.clock import SYSTEM
from pipelines.errors import AccessDenied, Postponed, RateLimited, ServiceError, Unavailable
from pipelines.settings import Settings
from pipelines.streams import STREAMS
from pipelines.streams.usage import USAGE
from tests.api.conftest import SECRET
from tests.api.desk import Desk
from tests.api.service import Reply, Service, page, problem, serving

MEBIBYTE = 1024 * 1024


def failing(*script: Reply) -> tuple[str, Service]:
    """Return what a user reads when usage is asked for, and the service that was asked."""
    with serving(*script) as service, pytest.raises(ServiceError) as caught:
        Desk(service.url).usage()
    return str(caught.value).replace(service.url, "URL"), service


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_never_followed(status: int) -> None:
    with serving(page([])) as elsewhere:
        words, service = failing(
            Reply(status, headers={"Location": elsewhere.url + "/x?session=1"})
        )
    assert words == f"127.0.0.1 redirects to {elsewhere.url}/x; set base_url"
    assert (len(service.asked), elsewhere.asked) == (1, [])


HTML = b"<html><body>Please sign in</body></html>"
AT = "/v2/usage at offset 0"
BUSY = "/v2/usage: service unavailable"
# What the service answers for ever; what the user reads; how often it was asked.
FAILURES: list[tuple[Reply, str, int]] = [
    (Reply(200, HTML), f"{AT}: answer is not whole JSON after 2 tries in 0 s: {HTML.decode()}", 2),
    (Reply(200, page([]).body[:-9]), f"{AT}: answer is not whole JSON after 3 tries in ", 3),
    (Reply(200, b"[]"), f"{AT}: no page of a list: ", 2),
    (Reply(200, b'{"data": []}'), f"{AT}: page has no pagination object after 2 tries in ", 2),
    (page([], offset=5), f"{AT}: the page says that it is at offset 5", 1),
    (problem(403, "scope missing"), "403 on /v2/usage: scope missing", 1),
    (problem(401, "bad"), "token rejected: check audience and client (401 on /v2/usage: ", 2),
    (problem(404, "no such path"), "/v2/usage does not exist at URL (404); set base_url", 1),
    (problem(422, "bad \x1b[31mlimit"), "422 on /v2/usage: Title: bad  [31mlimit", 1),
    (problem(409, "conflict"), f"{BUSY} (409) after 3 tries in ", 3),
    (problem(503, "down", **{"Retry-After": "8"}), f"{BUSY} (503) after 6 tries in ", 6),
    (Reply(502, HTML), f"{BUSY} (502) after 6 tries in ", 6),
    (Reply(204), f"{AT}: answer is not whole JSON after 3 tries in ", 3),
    (Reply(304), "304 on /v2/usage", 1),
    (
        Reply(200, b'{"data": [', length=10_810),
        "/v2/usage: answer broke off after 10 of 10,810 bytes (connection closed) after 6 tries",
        6,
    ),
    (
        Reply(200, b"no gzip", {"Content-Encoding": "gzip"}),
        "/v2/usage: answer cannot be decompressed after 6 tries in ",
        6,
    ),
    (
        Reply(200, HTML, {"Content-Encoding": "br"}),
        "/v2/usage: answer in an encoding that was not asked for",
        1,
    ),
    (
        problem(429, "slow down", **{"Retry-After": "3600"}),
        "429 on /v2/usage: server asks to wait 3,600 s; run ends resumable at ",
        1,
    ),
    (
        problem(503, "down", **{"Retry-After": "301"}),
        "503 on /v2/usage: server asks to wait 301 s; run ends",
        1,
    ),
]


@pytest.mark.parametrize(("reply", "words", "times"), FAILURES)
def test_what_a_user_reads_when_it_goes_on_failing(reply: Reply, words: str, times: int) -> None:
    read, service = failing(reply)
    # A wait is drawn anew each time, and told in whole seconds.
    assert re.sub(r" in [01] s", " in 0 s", read).startswith(words)
    assert len(service.asked) == times
    assert SECRET not in read


# Statuses, how often such a request is made in all, and how what the user reads begins.
STATUSES = [
    (
        (400, 405, 406, 410, 413, 414, 415, 422, 431, 501, 505, 511),
        1,
        "{} on /v2/usage: Title: why",
    ),
    ((408, 425, 500, 502, 503, 504), 6, "/v2/usage: service unavailable ({}) after 6 tries in "),
    ((409, 506, 507, 520, 599), 3, "/v2/usage: service unavailable ({}) after 3 tries in "),
    ((403,), 1, "403 on /v2/usage: why"),
    ((404,), 1, "/v2/usage does not exist at URL (404); set base_url"),
]


@pytest.mark.parametrize(
    ("status", "times", "words"),
    [(status, times, words) for group, times, words in STATUSES for status in group],
)
def test_every_status_has_its_tries_and_its_words(status: int, times: int, words: str) -> None:
    read, service = failing(problem(status, "why"))
    assert read.startswith(words.format(status))
    assert len(service.asked) == times


def test_65_kilobytes_of_gzip_do_not_fill_the_memory() -> None:
    bomb = gzip.compress(b"[" + b" " * (64 * MEBIBYTE))
    assert len(bomb) < 66 * 1024
    words, service = failing(Reply(200, bomb, {"Content-Encoding": "gzip"}))
    assert words == "/v2/usage: answer larger than 64 MiB refused"
    assert len(service.asked) == 1


def test_nobody_answers_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    desk = Desk(f"http://127.0.0.1:{port}")
    passed = desk.haste.clock.monotonic
    start = passed()
    with pytest.raises(
        Unavailable, match=rf"^no connection to 127.0.0.1:{port} after 6 tries in \d+ s$"
    ):
        desk.usage()
    assert [call.error for call in desk.calls] == ["ConnectError"] * 6
    # The provider is not asked more than once a second, not even by a retry.
    assert passed() - start >= 5


def test_twenty_429s_in_a_row_are_the_answer() -> None:
    with serving(problem(429, "slow down", **{"Retry-After": "60"})) as service:
        desk = Desk(service.url)
        with pytest.raises(RateLimited, match=r"^429 on /v2/usage: slow down \(20 times in a"):
            desk.usage()
    assert len(service.asked) == 20
    assert sum(desk.haste.waits) >= 19 * 60


def test_the_body_may_ask_for_more_than_the_header() -> None:
    refusal = Reply(429, b'{"retry_after_seconds": 90}', {"Retry-After": "30"})
    with serving(refusal, page([])) as service:
        desk = Desk(service.url)
        desk.usage()
    assert 90 <= sum(desk.haste.waits) < 90.3


# Retry-After of three 429s, and the least and the most that is waited for them together.
SAID = [
    ("7", 21, 21.7),
    ("0", 0, 0.7),
    ("soon", 1 + 2 + 4, 7.7),
    ("-1", 1 + 2 + 4, 7.7),
    (None, 1 + 2 + 4, 7.7),
]


@pytest.mark.parametrize(("said", "least", "most"), SAID)
@pytest.mark.parametrize("status", [429, 503])
def test_what_the_service_asks_for_is_waited(
    status: int, said: str | None, least: float, most: float
) -> None:
    headers = {} if said is None else {"Retry-After": said}
    with serving(*[problem(status, "slow down", **headers)] * 3, page([])) as service:
        desk = Desk(service.url)
        desk.usage()
    waited = sum(desk.haste.waits)
    if status == 429 or said in {"7", "0"}:
        assert least <= waited <= most
    assert len(service.asked) == 4


def test_a_date_counts_from_the_servers_own_clock() -> None:
    later = formatdate(time() + 7, usegmt=True)
    with serving(problem(429, "slow down", **{"Retry-After": later}), page([])) as service:
        desk = Desk(service.url)
        desk.usage()
    assert 5 < sum(desk.haste.waits) <= 7.2  # whole seconds on both sides


def test_access_that_ends_says_how_far_it_came() -> None:
    found = page([{"id": number} for number in range(3)], following=3)

    async def both(client: Client) -> None:
        await client.page(USAGE, 0)
        await client.page(USAGE, 3)

    with (
        serving(found, problem(401, "the token is invalid")) as service,
        pytest.raises(AccessDenied, match=r"^access ended after 3 rows \(401 on /v2/usage: the"),
    ):
        Desk(service.url).ask(both)
    assert len(service.asked) == 3


def test_who_shares_the_budget_is_not_kept_waiting_for_an_hour() -> None:
    async def all_streams(client: Client) -> list[object]:
        pages = [client.page(stream, 0) for stream in STREAMS]
        return list(await asyncio.gather(*pages, return_exceptions=True))

    with serving(problem(429, "tomorrow", **{"Retry-After": "3600"})) as service:
        desk = Desk(service.url, settings=Settings(rate=1))
        failures = desk.ask(all_streams)
    assert [type(failure) for failure in failures] == [Postponed] * 3
    assert all("run ends resumable at " in str(failure) for failure in failures)
    assert len(service.asked) == 1
    assert sum(desk.haste.waits) < 10


# What the headers say of the body's length, and what the user reads when it breaks off.
LENGTHS = [("10810", " of 10,810"), ("a lot", ""), (None, "")]


@pytest.mark.parametrize(("length", "words"), LENGTHS)
def test_silence_in_the_middle_of_a_body(length: str | None, words: str) -> None:
    async def silent() -> AsyncIterator[bytes]:
        yield b"x" * 2853
        raise httpx.ReadTimeout("")

    async def read() -> None:
        headers = {} if length is None else {"Content-Length": length}
        answer = httpx.Response(200, headers=headers, content=silent())
        async for _ in body.Guarded(answer, "/v2/usage", MEBIBYTE, SYSTEM):
            pass

    broke = rf"^/v2/usage: answer broke off after 2,853{words} bytes \(nothing more came\)$"
    with pytest.raises(Unavailable, match=broke):
        asyncio.run(read())
