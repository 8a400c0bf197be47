"""Connections that break, stall or crawl, as a client's library reports them; the server lives on.

Not here: answers that arrive whole (test_faults).
"""

import socket
import time
from typing import Any

import httpx
import pytest

from tests.sandbox.running import Running

BROKEN: list[tuple[str, type[Exception], str]] = [
    ("drop", httpx.RemoteProtocolError, "without sending complete message body"),
    ("reset", httpx.ReadError, "reset"),
    ("hang-up", httpx.RemoteProtocolError, "without sending a response"),
    ("cut-chunked", httpx.RemoteProtocolError, "incomplete chunked read"),
    ("stall", httpx.RemoteProtocolError, "without sending complete message body"),
    ("garbage", httpx.RemoteProtocolError, "."),
]


@pytest.mark.parametrize(("name", "error", "text"), BROKEN)
def test_the_connection_breaks_and_the_next_one_serves(
    sandbox: Running, name: str, error: type[Exception], text: str
) -> None:
    scope: dict[str, Any] = {"times": 1} | ({"value": 0.1} if name == "stall" else {})
    number = sandbox.fault(name, **scope)
    with sandbox.client(sandbox.token()) as client:
        with pytest.raises(error, match=text):
            client.get("/v2/usage")
        assert client.get("/v2/usage").status_code == 200
    assert sandbox.befallen(number) == 1


def test_a_body_without_length_looks_whole(sandbox: Running) -> None:
    with sandbox.client(sandbox.token()) as client:
        right = client.get("/v2/usage")
        sandbox.fault("cut-no-length", times=1)
        wrong = client.get("/v2/usage")
    assert wrong.status_code == 200
    assert not {"content-length", "transfer-encoding"} & set(wrong.headers)
    assert wrong.content == right.content[: len(right.content) // 2]


@pytest.mark.parametrize("name", ["dribble", "late"])
def test_a_slow_answer_is_right_in_the_end(sandbox: Running, name: str) -> None:
    with sandbox.client(sandbox.token()) as client:
        right = client.get("/v2/usage").content
        sandbox.fault(name, times=1, value=0.4)
        begun = time.monotonic()
        assert client.get("/v2/usage").content == right
        assert 0.35 < time.monotonic() - begun < 20  # a busy machine is slow


def test_a_stalled_answer_holds_up_nobody_else(sandbox: Running) -> None:
    sandbox.fault("stall", times=1, value=60)
    token = sandbox.token()
    with sandbox.client(token) as stalled, sandbox.client(token) as other:
        with pytest.raises(httpx.ReadTimeout):
            stalled.get("/v2/usage", timeout=0.2)
        begun = time.monotonic()
        assert other.get("/v2/usage").status_code == 200
        assert time.monotonic() - begun < 20  # not 60


def test_it_is_the_connection_that_ends_and_not_the_body(sandbox: Running) -> None:
    sandbox.fault("drop", "/v2/whoami", times=1)
    port = int(sandbox.url.rsplit(":", 1)[1])
    request = (
        f"GET /v2/whoami HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {sandbox.token()}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", port), timeout=5) as line:
        line.sendall(request.encode())
        received = b""
        while chunk := line.recv(65536):
            received += chunk
    head, _, body = received.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert len(body) == length // 2
