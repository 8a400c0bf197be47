"""What goes wrong between the service and us, on real connections."""

import asyncio
import contextlib
import gzip
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pipelines.core.errors import ConfigurationError, Unavailable
from pipelines.http.client import Attempt
from sandbox.tls import Certificates, certificates
from tests.http.support import EPOCH, Desk, page_reply, partner
from tests.sandbox.running import ENVIRONMENT, Running

Write = Callable[[bytes], Awaitable[None]]
Wire = Callable[[Write], Awaitable[None]]

TOKEN = b'{"access_token": "token-1", "expires_in": 3600}'
PAGE = page_reply().body


def answer(body: bytes, *headers: bytes) -> bytes:
    lines = [b"HTTP/1.1 200 OK", b"Content-Length: %d" % len(body), *headers, b"", body]
    return b"\r\n".join(lines)


class RawService:
    """A service that answers tokens as it should, and everything else by the bytes of a wire."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.heads: list[bytes] = []
        self._tasks: set[asyncio.Task[Any]] = set()

    @asynccontextmanager
    async def listening(self, context: ssl.SSLContext | None = None) -> AsyncIterator[str]:
        """Serve for the block; yield the address."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=context)
        scheme = "https" if context else "http"
        try:
            yield f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.add(asyncio.create_task(self._answer(reader, writer)))

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def write(data: bytes) -> None:
            writer.write(data)
            await writer.drain()

        with contextlib.suppress(ConnectionError):
            try:
                head = await reader.readuntil(b"\r\n\r\n")
                self.heads.append(head)
                if b"/oauth/token" in head:
                    await write(answer(TOKEN, b"Connection: close"))
                else:
                    await self._wire(write)
            finally:
                writer.close()
                await writer.wait_closed()


def asking(
    wire: Wire, timeout_seconds: float = 5.0, *, is_proxy: bool = False
) -> tuple[RawService, Desk, Callable[[], Attempt]]:
    """Return a raw service, a client of it, and a function that asks for one page."""
    raw = RawService(wire)
    desk = Desk(partner(), timeout_seconds=timeout_seconds, use_proxy=is_proxy)

    def ask() -> Attempt:
        async def main() -> Attempt:
            async with raw.listening() as url:
                desk.connection = partner(url)
                async with desk.client() as client:
                    return await client.page("/v2/usage", 0, 10, desk.attempts.append)

        return asyncio.run(main())

    return raw, desk, ask


async def slow_headers(write: Write) -> None:
    for byte in answer(PAGE, b"X-Filler: " + b"x" * 10_000):
        await write(bytes([byte]))
        await asyncio.sleep(0.01)


async def endless_informational(write: Write) -> None:
    while True:
        await write(b"HTTP/1.1 103 Early Hints\r\n\r\n")
        await asyncio.sleep(0.01)


async def slow_body(write: Write) -> None:
    head, _, body = answer(PAGE).partition(b"\r\n\r\n")
    await write(head + b"\r\n\r\n")
    for byte in body:
        await write(bytes([byte]))
        await asyncio.sleep(0.01)


async def silent(write: Write) -> None:
    await write(b"")
    await asyncio.sleep(60)


SLOW = {
    "headers a byte at a time": slow_headers,
    "endless 1xx answers": endless_informational,
    "slow body": slow_body,
    "no answer": silent,
}


@pytest.mark.parametrize("wire", SLOW.values(), ids=SLOW.keys())
def test_every_request_has_a_total_deadline(wire: Wire) -> None:
    _, desk, ask = asking(wire, timeout_seconds=0.25)
    with pytest.raises(Unavailable, match=r"within 0\.25 s\. Tried 5 times\.") as got:
        ask()
    assert "partner-sync sync" in got.value.remedy
    assert desk.attempts  # a busy machine may be late with a token, too
    assert all("within 0.25 s" in str(attempt.error) for attempt in desk.attempts)


def sending(data: bytes) -> Wire:
    async def wire(write: Write) -> None:
        await write(data)

    return wire


TWICE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: %d\r\n\r\n%b" % (len(PAGE), PAGE)
HALF_GZIP = answer(gzip.compress(PAGE)[:-9], b"Content-Encoding: gzip")
BROKEN = {
    "Content-Length twice": (TWICE, "conflicting Content-Length"),
    "no HTTP": (b"220 mail.example ESMTP\r\n", "broke off"),
    "closed without an answer": (b"", "broke off"),
    "closed within the headers": (b"HTTP/1.1 200 OK\r\nContent-Le", "broke off"),
    "body cut": (answer(PAGE)[:-9], f"broke off after {len(PAGE) - 9} of {len(PAGE)} bytes"),
    "chunks cut": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{", "broke off"),
    "body cut, length agrees": (answer(PAGE[:-9]), "is not a page of a list"),
    "body cut, no length": (b"HTTP/1.1 200 OK\r\n\r\n" + PAGE[:-9], "is not a page of a list"),
    "gzip cut": (HALF_GZIP, "cannot be decompressed: it is not whole"),
    "two gzip members": (
        answer(gzip.compress(PAGE) + gzip.compress(b"x"), b"Content-Encoding: gzip"),
        "not whole",
    ),
    "another encoding": (answer(PAGE, b"Content-Encoding: zstd"), "not asked for"),
    "length of 5,000 digits": (
        b"HTTP/1.1 200 OK\r\nContent-Length: %b\r\n\r\n" % (b"9" * 5000),
        "broke off",
    ),
}


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_answer_is_asked_for_five_times(case: tuple[bytes, str]) -> None:
    data, words = case
    raw, desk, ask = asking(sending(data))
    with pytest.raises(Unavailable, match=r"Tried 5 times\. Nothing more was read") as got:
        ask()
    assert words in str(got.value)
    assert [head.split()[1].partition(b"?")[0] for head in raw.heads[1:]] == [b"/v2/usage"] * 5
    assert all(attempt.body is None or b'"data"' in attempt.body for attempt in desk.attempts)


def test_a_broken_answer_that_passes() -> None:
    answers = iter(
        [
            answer(PAGE)[:-9],
            b"",
            answer(b" " * (33 * 2**20)),
            TWICE,
            answer(
                gzip.compress(PAGE),
                b"X-Request-Id: r1",
                b"Content-Encoding: gzip",
                b"Set-Cookie: session=1",
            ),
        ]
    )

    async def wire(write: Write) -> None:
        await write(next(answers))

    _, desk, ask = asking(wire)
    found = ask()
    assert (found.status, found.body, found.request_id) == (200, PAGE, "r1")
    assert "set-cookie" not in found.headers
    assert desk.statuses == [200, None, 200, None]
    assert desk.attempts[2].error == "The answer to /v2/usage is larger than 32 MiB."


def test_the_slot_ends_with_the_headers_and_not_with_the_body() -> None:
    async def wire(write: Write) -> None:
        head, _, body = answer(PAGE).partition(b"\r\n\r\n")
        await write(head + b"\r\n\r\n")
        for _ in range(50):  # the client notes the headers meanwhile
            await asyncio.sleep(0.001)
        desk.clock.passed += 7
        await write(body)

    _, desk, ask = asking(wire)
    found = ask()
    (slot,) = desk.limiter.slots
    assert slot.sent_at == slot.answered_at == found.received_at - 7
    assert slot.status == 200
    assert slot.headers == {}


def test_nobody_listens() -> None:
    desk = Desk(partner("http://127.0.0.1:9"))
    with pytest.raises(Unavailable, match=r"^No connection to 127\.0\.0\.1:9\. Tried 5 times\."):
        desk.page()


@pytest.mark.parametrize("is_proxy", [False, True])
def test_proxy_variables_count_only_if_a_setting_says_so(
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_proxy: bool,
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")
    _, _, ask = asking(sending(answer(PAGE)), is_proxy=is_proxy)
    if is_proxy:
        with pytest.raises(Unavailable, match="No connection"):
            ask()
    else:
        assert ask().status == 200


@pytest.mark.parametrize("proxy", ["ftp://127.0.0.1:9", "127.0.0.1:port", "http://[::1"])
def test_a_proxy_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    monkeypatch.setenv("http_proxy", proxy)
    monkeypatch.setenv("no_proxy", "")
    with pytest.raises(ConfigurationError, match="proxy that the environment names"):
        Desk(partner(), use_proxy=True).client()


@pytest.mark.parametrize("is_trusted", [False, True])
def test_a_certificate(*, is_trusted: bool) -> None:
    raw = RawService(sending(answer(PAGE)))
    desk = Desk(partner())

    async def ask(made: Certificates) -> Attempt:
        async with raw.listening(made.context) as url:
            desk.connection = partner(url, ca_file=made.authority if is_trusted else None)
            async with desk.client() as client:
                return await client.page("/v2/usage", 0, 10, desk.attempts.append)

    with certificates() as made:
        if is_trusted:
            assert asyncio.run(ask(made)).status == 200
            return
        with pytest.raises(ConfigurationError, match=r"is not trusted.*Nothing was sent") as got:
            asyncio.run(ask(made))
    assert "ca_file" in got.value.remedy


def test_a_ca_file_that_cannot_be_read(tmp_path: Path) -> None:
    for file in (tmp_path / "missing.pem", tmp_path / "empty.pem"):
        (tmp_path / "empty.pem").touch()
        with pytest.raises(ConfigurationError, match="Cannot read ca_file"):
            Desk(partner(ca_file=file)).client()


FAULTS = ["drop", "reset", "hang-up", "cut-no-length", "cut-chunked", "garbage"]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_sandbox_on_the_wire(
    sandbox: Running, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    sandbox.fault(fault, path="/v2/usage", times=2)
    desk = Desk(partner(**sandbox.connection))
    desk.clock.passed = time.time() - EPOCH.timestamp()
    assert desk.page().status == 200
    assert len(desk.attempts) == 2
