"""What goes wrong between the service and us, on real connections."""

import asyncio
import contextlib
import gzip
import ssl
from collections.abc import Awaitable, Callable, Iterable
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

from pipelines.core.errors import ConfigurationError, Unavailable
from pipelines.http.client import Attempt
from pipelines.http.retry import TRIES
from sandbox.tls import certificates
from tests.http.support import API_KEY, Harness, merchant, page_reply

Write = Callable[[bytes], Awaitable[None]]
Wire = Callable[[Write], Awaitable[None]]

PAGE = page_reply().body
GZIP = b"Content-Encoding: gzip"


def answer(body: bytes, *headers: bytes) -> bytes:
    lines = [b"HTTP/1.1 200 OK", b"Content-Length: %d" % len(body), *headers, b"", body]
    return b"\r\n".join(lines)


def ask_raw(
    wire: Wire, harness: Harness, context: ssl.SSLContext | None = None, **fields: Any
) -> Attempt:
    """Ask a service for one page that answers each request by the bytes of a wire."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def write(data: bytes) -> None:
            writer.write(data)
            await writer.drain()

        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            try:
                await reader.readuntil(b"\r\n\r\n")
                await wire(write)
            finally:
                writer.close()

    async def main() -> Attempt:
        server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context)
        scheme, port = "https" if context else "http", server.sockets[0].getsockname()[1]
        url = f"{scheme}://127.0.0.1:{port}"
        harness.connection = merchant(url).model_copy(update=fields)
        async with server, harness.client() as client:
            return await client.page("/v2/usage", 0, 10, harness.attempts.append)

    return asyncio.run(main())


def sending(*answers: bytes) -> Wire:
    """Return a wire that sends one answer after the other, the last one for ever."""
    left = list(answers)

    async def wire(write: Write) -> None:
        await write(left.pop(0) if len(left) > 1 else left[0])

    return wire


def dripping(pieces: Iterable[bytes]) -> Wire:
    """Return a wire that sends a hundred pieces a second."""

    async def wire(write: Write) -> None:
        for piece in pieces:
            await write(piece)
            await asyncio.sleep(0.01)

    return wire


HEAD, _, BODY = answer(PAGE).partition(b"\r\n\r\n")
SLOW = {
    "headers a byte at a time": dripping([bytes([byte]) for byte in HEAD + BODY]),
    "endless 1xx answers": dripping(repeat(b"HTTP/1.1 103 Early Hints\r\n\r\n")),
    "slow body": dripping([HEAD + b"\r\n\r\n", *(bytes([byte]) for byte in BODY)]),
    "no answer": dripping(repeat(b"")),
}


@pytest.mark.parametrize("wire", SLOW.values(), ids=SLOW)
def test_every_request_has_a_total_deadline(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TRIES, Unavailable, 2)
    harness = Harness(merchant(), timeout_seconds=0.15)
    with pytest.raises(Unavailable, match=r"whole within 0\.15 s\. Tried 2 times\."):
        ask_raw(wire, harness)
    assert ["within 0.15 s" in str(attempt.error) for attempt in harness.attempts] == [True] * 2


TWICE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: %d\r\n\r\n%b" % (len(PAGE), PAGE)
BROKEN = {
    "Content-Length twice": (TWICE, "conflicting Content-Length"),
    "no HTTP": (b"220 mail.example ESMTP\r\n", "broke off"),
    "closed without an answer": (b"", "broke off"),
    "closed within the headers": (b"HTTP/1.1 200 OK\r\nContent-Le", "broke off"),
    "closed within the body": (answer(PAGE)[:-9], "broke off (/v2/usage): peer closed"),
    "chunks cut": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{", "broke off"),
    "body cut, length agrees": (answer(PAGE[:-9]), "not a page of a list"),
    "body cut, no length": (b"HTTP/1.1 200 OK\r\n\r\n" + PAGE[:-9], "not a page of a list"),
    "gzip cut": (answer(gzip.compress(PAGE)[:-20], GZIP), "not a page of a list"),
    "gzip bomb": (answer(gzip.compress(b" " * (65 * 2**20)), GZIP), "is larger than 64 MiB"),
    "another encoding": (answer(PAGE, b"Content-Encoding: zstd"), "cannot be decompressed"),
    "gzip twice": (answer(PAGE, b"Content-Encoding: gzip, gzip"), "cannot be decompressed"),
    "credential in a broken header": (b"HTTP/1.1 200 OK\r\n%b\r\n\r\n" % API_KEY.encode(), "broke"),
}


@pytest.mark.parametrize(("data", "words"), BROKEN.values(), ids=BROKEN)
def test_a_broken_answer_is_asked_for_again(data: bytes, words: str) -> None:
    harness = Harness(merchant())
    whole = answer(gzip.compress(PAGE), b"X-Request-Id: r1", GZIP, b"Set-Cookie: session=1")
    found = ask_raw(sending(data, whole), harness)
    assert (found.status, found.body, found.request_id) == (200, PAGE, "r1")
    assert "set-cookie" not in found.headers
    (attempt,) = harness.attempts
    assert words in str(attempt.error)
    assert API_KEY not in repr(attempt)


def test_the_slot_ends_with_the_headers_and_not_with_the_body() -> None:
    async def wire(write: Write) -> None:
        await write(HEAD + b"\r\n\r\n")
        await asyncio.sleep(0.05)  # the client notes the headers meanwhile
        harness.clock.passed += 7
        await write(BODY)

    harness = Harness(merchant())
    found = ask_raw(wire, harness)
    (slot,) = harness.limiter.slots
    assert slot.sent_at == slot.answered_at == found.received_at - 7
    assert (slot.status, slot.headers) == (200, {})


def test_nobody_listens() -> None:
    harness = Harness(merchant("http://127.0.0.1:9"))
    with pytest.raises(Unavailable, match=r"^No connection to 127\.0\.0\.1:9\. Tried 5 times\."):
        harness.page()


@pytest.mark.parametrize("use_proxy", [False, True])
def test_proxy_variables_count_only_if_a_setting_says_so(
    monkeypatch: pytest.MonkeyPatch, *, use_proxy: bool
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")
    harness = Harness(merchant(), use_proxy=use_proxy)
    if use_proxy:
        with pytest.raises(Unavailable, match="No connection"):
            ask_raw(sending(answer(PAGE)), harness)
    else:
        assert ask_raw(sending(answer(PAGE)), harness).status == 200


@pytest.mark.parametrize("proxy", ["ftp://127.0.0.1:9", "127.0.0.1:port", "http://[::1"])
def test_a_proxy_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    monkeypatch.setenv("http_proxy", proxy)
    with pytest.raises(ConfigurationError, match="proxy that the environment names"):
        Harness(merchant(), use_proxy=True).client()


def test_a_certificate() -> None:
    harness, wire = Harness(merchant()), sending(answer(PAGE))
    with certificates() as made:
        assert ask_raw(wire, harness, made.context, ca_file=made.authority).status == 200
        with pytest.raises(ConfigurationError, match=r"is not trusted.*Nothing was sent") as got:
            ask_raw(wire, harness, made.context)
    assert "ca_file" in got.value.remedy


def test_a_ca_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").touch()
    for file in (tmp_path / "missing.pem", tmp_path / "empty.pem"):
        connection = merchant().model_copy(update={"ca_file": file})
        with pytest.raises(ConfigurationError, match="Cannot read ca_file"):
            Harness(connection).client()
