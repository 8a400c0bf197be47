"""What goes wrong between the service and us, on real connections."""

import asyncio
import gzip
import ssl
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

from pipelines.core.errors import ConfigurationError, Unavailable
from pipelines.http.client import Attempt
from pipelines.http.retry import TRIES
from sandbox.tls import certificates
from tests.http.support import API_KEY, Harness, merchant, page_reply

PAGE = page_reply().body
GZIP = b"Content-Encoding: gzip"


def answer(body: bytes, *headers: bytes) -> bytes:
    lines = [b"HTTP/1.1 200 OK", b"Content-Length: %d" % len(body), *headers, b"", body]
    return b"\r\n".join(lines)


class Wire(Harness):
    """A client of a server that sends one list of pieces for each request, the last for ever."""

    def __init__(self, *answers: Iterable[bytes], seconds: float = 0.0, **settings: Any) -> None:
        super().__init__(merchant(), **settings)
        self.answers = list(answers)
        self.seconds = seconds  # between pieces

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.CancelledError), closing(writer):
            await reader.readuntil(b"\r\n\r\n")
            for piece in self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(self.seconds)

    def page(
        self, context: ssl.SSLContext | None = None, ca_file: Path | None = None, **fields: Any
    ) -> Attempt:
        async def main() -> Attempt:
            server = await asyncio.start_server(self.accept, "127.0.0.1", 0, ssl=context)
            scheme, port = "https" if context else "http", server.sockets[0].getsockname()[1]
            self.connection = merchant(f"{scheme}://127.0.0.1:{port}", ca_file=ca_file, **fields)
            client = self.client()
            async with server, client.http:
                return await self.ask_page(client)

        return asyncio.run(main())


HEAD, _, BODY = answer(PAGE).partition(b"\r\n\r\n")
SLOW = {
    "headers a byte at a time": [bytes([byte]) for byte in HEAD + BODY],
    "endless 1xx answers": repeat(b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "slow body": [HEAD + b"\r\n\r\n", *(bytes([byte]) for byte in BODY)],
    "no answer": repeat(b""),
}


@pytest.mark.parametrize("pieces", SLOW.values(), ids=SLOW)
def test_every_request_has_a_total_deadline(
    pieces: Iterable[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TRIES, Unavailable, 2)
    wire = Wire(pieces, seconds=0.01, request_timeout_seconds=0.15)
    with pytest.raises(Unavailable, match=r"whole within 0\.15 s\. Tried 2 times\."):
        wire.page()
    assert ["within 0.15 s" in str(attempt.error) for attempt in wire.attempts] == [True] * 2


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
    whole = answer(gzip.compress(PAGE), b"X-Request-Id: r1", GZIP, b"Set-Cookie: session=1")
    wire = Wire([data], [whole])
    found = wire.page()
    assert (found.status, found.body, found.request_id) == (200, PAGE, "r1")
    assert "set-cookie" not in found.headers
    (attempt,) = wire.attempts
    assert words in str(attempt.error)
    assert API_KEY not in repr((attempt, attempt.failure))


def test_the_slot_ends_with_the_headers_and_not_with_the_body() -> None:
    def late() -> Iterator[bytes]:
        yield HEAD + b"\r\n\r\n"
        wire.clock.passed += 7
        yield BODY

    wire = Wire(late(), seconds=0.05)  # in which the client notes the headers
    found = wire.page()
    (slot,) = wire.limiter.slots
    assert slot.sent_at == slot.answered_at == found.received_at - 7
    assert (slot.status, slot.headers, slot.ended_at) == (200, {}, 0)


def test_nobody_listens() -> None:
    with pytest.raises(Unavailable, match=r"^No connection to 127\.0\.0\.1:9\. Tried 5 times\."):
        Harness(merchant("http://127.0.0.1:9")).page()


def test_proxy_variables_count_only_if_a_setting_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")
    assert Wire([answer(PAGE)]).page().status == 200
    with pytest.raises(Unavailable, match="No connection"):
        Wire([answer(PAGE)], use_proxy=True).page()
    for proxy in ("ftp://127.0.0.1:9", "127.0.0.1:port", "http://[::1"):
        monkeypatch.setenv("http_proxy", proxy)
        with pytest.raises(ConfigurationError, match="proxy of the environment variable http_prox"):
            _ = Harness(use_proxy=True).client().http


def test_certificates(tmp_path: Path) -> None:
    with certificates() as made:
        assert Wire([answer(PAGE)]).page(made.context, made.authority).status == 200
        with pytest.raises(ConfigurationError, match=r"is not trusted.*Nothing was sent") as got:
            Wire([answer(PAGE)]).page(made.context)
    assert "ca_file" in got.value.remedy
    (tmp_path / "empty.pem").touch()
    (tmp_path / "no.pem").write_text("no certificate", encoding="utf-8")
    for file in (tmp_path / "missing.pem", tmp_path / "empty.pem", tmp_path / "no.pem"):
        with pytest.raises(ConfigurationError, match="Cannot read ca_file"):
            _ = Harness(merchant(ca_file=file)).client().http
