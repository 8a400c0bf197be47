"""Failed answers, honest and hostile: what is read of them, and what is not believed."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.api import problem
from pipelines.api.problem import Problem

NOW = datetime(1994, 11, 6, 8, 49, 30, tzinfo=UTC)


def read(body: bytes, status: int = 500, headers: dict[str, str] | None = None) -> Problem:
    request = httpx.Request("GET", "http://service/v2/usage?limit=500")
    return problem.read(httpx.Response(status, headers=headers, request=request), body, NOW)


DATE = {"Date": "Sun, 06 Nov 1994 08:49:37 GMT"}  # 7 s after our clock
# What X-RateLimit-Reset says, the other headers, and the seconds until then.
RESETS: list[tuple[str, dict[str, str], float | None]] = [
    ("784111778", {}, 8.0),
    ("784111778", DATE, 1.0),
    (" 784111778 ", {"Date": "yesterday"}, 8.0),
    ("784111777.25", DATE, 0.25),
    ("784111770", DATE, -7.0),
    ("1", DATE, 1 - 784111777.0),
    ("784111778000", DATE, 784111778000 - 784111777.0),  # milliseconds
    ("Sun, 06 Nov 1994 08:49:38 GMT", DATE, None),
    ("soon", DATE, None),
    ("", DATE, None),
    ("-1", DATE, None),
    ("1e9", DATE, None),
    ("inf", DATE, None),
    ("9" * 400, DATE, None),
]


@pytest.mark.parametrize(("value", "headers", "expected"), RESETS)
def test_a_reset_counts_from_the_servers_date(
    value: str, headers: dict[str, str], expected: float | None
) -> None:
    said = httpx.Headers({"X-RateLimit-Reset": value} | headers)
    assert problem.resets_in(said, NOW) == expected


def test_without_a_reset_there_is_none() -> None:
    assert problem.resets_in(httpx.Headers(DATE), NOW) is None


def test_the_document_s_429() -> None:
    body = {
        "type": "https://service/problems/too_many_requests",
        "title": "Too Many Requests",
        "status": 429,
        "detail": "Rate limit exceeded.",
        "instance": "/v2/usage",
        "retry_after_seconds": 3,
    }
    read_ = read(json.dumps(body).encode(), 429, {"Retry-After": "2"})
    assert read_ == Problem(429, "/v2/usage", "Too Many Requests", "Rate limit exceeded.", 3.0)
    assert str(read_) == "429 on /v2/usage: Rate limit exceeded."


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"title": "Gone", "detail": "Long gone"}, ": Long gone"),
        ({"title": "Gone"}, ": Gone"),
        ({"title": "Gone", "detail": ""}, ": Gone"),
        ({"title": None, "detail": None}, ""),
        ({"title": 7, "detail": ["a"]}, ""),
        ({"title": {"deep": 1}, "detail": False}, ""),
        ({"status": 200, "title": "OK"}, ": OK"),
        ({}, ""),
    ],
)
def test_what_is_said_of_a_failure(members: dict[str, Any], words: str) -> None:
    said = words or ": no reason given"
    assert str(read(json.dumps(members).encode(), 410)) == f"410 on /v2/usage{said}"


HOSTILE = [
    b"",
    b"null",
    b"[]",
    b'"text"',
    b"<html>502 Bad Gateway</html>",
    b'{"title": "half',
    b'{"title": "\xff\xfe"}',
    b'{"title": "\\ud800"}',
    b'{"title":' + b"[" * 100_000,
    b'{"x":' + b'{"x":' * 100_000,
    b'{"retry_after_seconds":' + b"9" * 5000 + b"}",
    b'{"title": NaN}',
]


@pytest.mark.parametrize("body", HOSTILE, ids=lambda body: repr(body[:20]))
def test_a_malformed_body_leaves_the_status_to_speak(body: bytes) -> None:
    assert read(body, 502) == Problem(502, "/v2/usage", "", "", None)


@given(st.binary() | st.recursive(st.none() | st.text(), st.lists).map(json.dumps).map(str.encode))
def test_no_body_raises(body: bytes) -> None:
    assert read(body).status == 500


@given(st.text(max_size=1000))
def test_foreign_text_is_one_printable_line_of_200(text: str) -> None:
    cleaned = problem.cleaned(text)
    assert len(cleaned) <= 200
    assert cleaned.isprintable()
    assert cleaned == cleaned.strip()


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("plain", "plain"),
        ("a\nb\tc\r\nd", "a b c  d"),
        ("\x1b[31mred\x1b[0m", "[31mred [0m"),
        ("\x9b31m c1", "31m c1"),
        ("left\u202eright", "left right"),
        ("Zürich 東京 😀", "Zürich 東京 😀"),
        ("x" * 300, "x" * 200),
        (" " * 300 + "far", "far"),
    ],
)
def test_control_characters_become_spaces(text: str, cleaned: str) -> None:
    assert problem.cleaned(text) == cleaned


def test_a_huge_detail_is_cut() -> None:
    body = json.dumps({"title": "t" * 10_000_000, "detail": "d" * 10_000_000}).encode()
    read_ = read(body)
    assert (read_.title, read_.detail) == ("t" * 200, "d" * 200)


VALID = {
    "0": 0,
    "1000": 1000,
    "\t42 ": 42,
    "007": 7,
    "Sun, 06 Nov 1994 08:49:37 GMT": 7,
    "Sunday, 06-Nov-94 08:49:37 GMT": 7,
    "Sun Nov  6 08:49:37 1994": 7,
    "Sun, 06 Nov 1994 08:49:30 GMT": 0,
    "Sun, 06 Nov 1994 08:00:00 GMT": 0,
    "Sun, 06 Nov 1994 09:49:37 +0100": 7,
    "9" * 400: 1e9,
    "9" * 5000: 1e9,
}
INVALID = ["-1", "+1", "1.0", "²", "", " ", "٤٢", "1e3", "0x10", "1, 5", "soon", "NaN", "1_000"]
INVALID += ["Mon, 01 Jan 99999999999999999999 00:00:00 GMT", "Sun, 99 Nov 1994 08:49:37 GMT"]


@pytest.mark.parametrize(("value", "seconds"), VALID.items(), ids=lambda value: str(value)[:30])
def test_a_readable_retry_after(value: str, seconds: float) -> None:
    assert problem.retry_after(httpx.Headers([("rEtry-aFter", value)]), NOW) == seconds


@pytest.mark.parametrize("value", INVALID)
def test_an_unreadable_retry_after(value: str) -> None:
    assert problem.retry_after({"retry-after": value}, NOW) is None


def test_no_retry_after() -> None:
    assert problem.retry_after({}, NOW) is None


@given(st.text())
def test_no_retry_after_raises(value: str) -> None:
    seconds = problem.retry_after({"retry-after": value, "date": value}, NOW)
    assert seconds is None or 0 <= seconds <= 1e9


def test_a_date_counts_from_the_servers_own() -> None:
    """Our clock is a day ahead of the server's: without its Date the wait would be none."""
    headers = {
        "date": "Sun, 06 Nov 1994 08:49:07 GMT",
        "retry-after": "Sun, 06 Nov 1994 08:49:37 GMT",
    }
    assert problem.retry_after(headers, NOW + timedelta(days=1)) == 30


# retry_after_seconds of the body beside the header, and what is to be waited: the longer.
BODIES: list[tuple[Any, str | None, float | None]] = [
    (5, "3", 5),
    (3, "5", 5),
    (0, None, 0),
    (7, "nonsense", 7),
    (None, "3", 3),
    (-1, "3", 3),
    (-1, None, None),
    (True, None, None),
    ("9", None, None),
    (2.5, None, None),
    (10**400, None, 1e9),
]


@pytest.mark.parametrize(("member", "header", "wait"), BODIES)
def test_the_longer_of_header_and_body_counts(
    member: Any, header: str | None, wait: float | None
) -> None:
    headers = {} if header is None else {"Retry-After": header}
    body = json.dumps({"retry_after_seconds": member}).encode()
    assert read(body, 429, headers).retry_after == wait


# The begin of a broken answer, and what of it may be shown.
BROKEN = [
    (
        b'{"data":[{"partnerId":"5f01","name":"Ann","n":-1.5e3},{"na',
        '{"data":[{"partnerId":…,"name":…,"n":…},{…',
    ),
    (
        b'{"access_token": "eyJhbGciOi.eyJz", "expires_in": 3600',
        '{"access_token": …, "expires_in": …',
    ),
    (b'["a\\"b", "c', "[…, …"),
    (b"<html><body>Please sign in</body></html>", "<html><body>Please sign in</body></html>"),
    (b"<a href='/x?session=abc&next=1'>", "<a href='/x?session=…&next=1'>"),
    (b"Authorization: Bearer abc.def", "Authorization: Bearer …"),
    (b"password=hunter2; api_key: k1", "password=…; api_key: …"),
    (b"x " + b"A1b2C3d4" * 30, "x …"),
    (b"\x1b[31mred\x00", "[31mred"),
    (b"", ""),
]


@pytest.mark.parametrize(("body", "shown"), BROKEN)
def test_of_a_broken_answer_no_secret_is_shown(body: bytes, shown: str) -> None:
    assert problem.redacted(body) == shown


@given(st.binary(max_size=3000), st.text("abcdefXYZ0123456789_-", min_size=20, max_size=99))
def test_no_long_opaque_text_is_ever_shown(around: bytes, secret: str) -> None:
    shown = problem.redacted(around[:1500] + b" " + secret.encode() + b" " + around[1500:])
    assert secret not in shown
    assert len(shown) <= 80


PLACES = [
    ("https://elsewhere.test/login?session=1#x", "https://elsewhere.test/login"),
    ("https://me:secret@elsewhere.test", "https://elsewhere.test"),
    ("/v3/usage?offset=1", "/v3/usage"),
    ("http://host:port/", "an address that is none"),
]


@pytest.mark.parametrize(("location", "place"), PLACES)
def test_where_a_redirection_leads(location: str, place: str) -> None:
    assert problem.place(location) == place
