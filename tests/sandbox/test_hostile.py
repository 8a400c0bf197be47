"""Hostile input over raw sockets: a 4xx or a closed connection, no traceback, no stall for others.

Not here: bodies that are merely wrong (test_merchant_writes, test_token).
"""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

import httpx
import pytest

from tests.sandbox.running import API_KEY, Running, started

TOKEN, WRITE = b"/oauth/token", b"/v2/payment-method-requests"
KEY = b"x-api-key: " + API_KEY.encode() + b"\r\n"
JSON = b"Content-Type: application/json\r\n"
NESTED = b'{"kinds":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
MILLION = b'{"message":"' + b"x" * 1_000_000 + b'"}'


class Input(NamedTuple):
    """A request as bytes, and the statuses it may be answered with; 0: closed without one."""

    name: str
    sent: bytes
    statuses: set[int]


def get(path: bytes, headers: bytes = b"") -> bytes:
    return b"GET %b HTTP/1.1\r\nHost: x\r\n%b\r\n" % (path, headers)


def post(path: bytes, body: bytes, headers: bytes = KEY + JSON) -> bytes:
    length = b"Content-Length: %d\r\n" % len(body)
    return b"POST %b HTTP/1.1\r\nHost: x\r\n%b%b\r\n%b" % (path, headers, length, body)


def inputs() -> Iterator[Input]:
    long = b"a" * 16 * 1024
    yield Input("long header", get(b"/v2/gateways", KEY + b"X: " + long + b"\r\n"), {431})
    yield Input("long key", get(b"/v2/gateways", b"x-api-key: " + long + b"\r\n"), {431})
    bearer = b"Authorization: Bearer " + long + b"\r\n"
    yield Input("long token", get(b"/v2/usage", bearer), {431})
    yield Input("many headers", get(b"/v2/gateways", KEY + 6000 * b"X-A: b\r\n"), {431})
    yield Input("long path", get(b"/v2/customers/" + 2 * long, KEY), {404})
    yield Input("bad UTF-8 in a path", get(b"/v2/customers/%ff%c3", KEY), {404})
    yield Input("raw bytes in a path", get(b"/v2/customers/\xff\xc3", KEY), {0, 400, 404})
    yield Input("NUL in a path", get(b"/v2/customers/%00", KEY), {404})
    yield Input("bad UTF-8 in a query", get(b"/v2/customers?limit=%ff", KEY), {400})
    yield Input("bad UTF-8 in a key", get(b"/v2/gateways", b"x-api-key: \xff\xfe\r\n"), {401})
    basic = b"Authorization: Bearer \xff.\xfe.\xfd\r\n"
    yield Input("bad UTF-8 in a token", get(b"/v2/usage", basic), {401})
    for path, refused in ((TOKEN, 400), (WRITE, 413)):
        yield Input(f"1 MB to {path!r}", post(path, MILLION), {0, refused})
        yield Input(f"brackets to {path!r}", post(path, NESTED), {0, refused})
    for name, body in (
        ("brackets that fit", b"[" * 60_000),
        ("objects that fit", b'{"a":' * 10_000),
        ("bad UTF-8", b'{"message": "\xff\xc3"}'),
        ("half a surrogate", b'{"message": "\\ud800"}'),
        ("UTF-16", '{"message": "a"}'.encode("utf-16")),
        ("endless number", b'{"expiresInDays": 1' + b"0" * 60_000 + b"}"),
        ("endless exponent", b'{"expiresInDays": 1e999999999}'),
        ("not a number", b'{"expiresInDays": NaN}'),
        ("nothing", b""),
    ):
        yield Input(f"{name} to {TOKEN!r}", post(TOKEN, body), {400})
        yield Input(f"{name} to {WRITE!r}", post(WRITE, body), {400})
    length = b"Content-Length: 5\r\n"
    yield Input("two lengths", post(WRITE, b"12345", KEY + JSON + length + length), {0, 400})
    negative = KEY + JSON + b"Content-Length: -5\r\n\r\n"
    yield Input("negative length", b"POST /v2/x HTTP/1.1\r\nHost: x\r\n" + negative, {0, 400})
    chunked = KEY + JSON + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n"
    yield Input("bad chunk", b"POST %b HTTP/1.1\r\nHost: x\r\n%b" % (WRITE, chunked), {0, 400})
    yield Input("no HTTP", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", {0, 400})
    yield Input("no method", b"\r\n\r\n\r\n: \r\n\r\n", {0, 400})


INPUTS = list(inputs())


@pytest.fixture(scope="module")
def hostile() -> Iterator[Running]:
    with started("--rate", "0", "--usage", "1") as running:
        yield running


def connected(running: Running) -> socket.socket:
    url = httpx.URL(running.url)
    return socket.create_connection((url.host, url.port or 80), timeout=5)


def status_of(running: Running, sent: bytes) -> int:
    """Send bytes and give the status answered, 0 where the connection is closed without one."""
    with connected(running) as connection:
        try:
            connection.sendall(sent)
            first = connection.recv(65_536)
        except (BrokenPipeError, ConnectionResetError):
            return 0
    return int(first.split(b" ", 2)[1]) if first else 0


def assert_others_are_served(running: Running) -> None:
    asked = time.monotonic()
    with running.client(key=API_KEY) as client:
        assert client.get("/v2/gateways").status_code == 200
    assert time.monotonic() - asked < 20


@pytest.mark.parametrize("one", INPUTS, ids=[one.name for one in INPUTS])
def test_hostile_input_is_refused(
    hostile: Running, capfd: pytest.CaptureFixture[str], one: Input
) -> None:
    assert status_of(hostile, one.sent) in one.statuses
    assert_others_are_served(hostile)
    assert "Traceback" not in capfd.readouterr().err


def test_requests_that_never_end_stall_nobody(hostile: Running) -> None:
    whole = post(WRITE, b"{}")
    with ExitStack() as open_ones:
        for number in range(60):
            connection = open_ones.enter_context(connected(hostile))
            connection.sendall(whole[: len(whole) * (number % 10) // 10])
        assert_others_are_served(hostile)
    assert_others_are_served(hostile)
