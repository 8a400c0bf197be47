"""Connections that break, stall or crawl: the answer is written to the connection by hand.

Here: what reaches the other side, byte by byte. The connection is closed at the end of each.
Not here: answers that arrive whole (the other families).
"""

import asyncio
import socket
import struct
from http import HTTPStatus
from wsgiref.handlers import format_date_time

from starlette.types import Receive

from sandbox.faults.exchange import Exchange
from sandbox.faults.kind import Kind, Stage

PIECES = 20


class Line:
    """The connection of one request."""

    def __init__(self, transport: asyncio.Transport, receive: Receive) -> None:
        self._transport = transport
        self._receive = receive

    def head(self, exchange: Exchange, *framing: str) -> None:
        """Write status line and headers, and those that frame the body."""
        phrase = HTTPStatus(exchange.status).phrase
        date = f"date: {format_date_time(exchange.clock.time())}"
        lines = [f"HTTP/1.1 {exchange.status} {phrase}", date, *framing, "connection: close"]
        shown = (
            f"{name}: {value}"
            for name, value in exchange.headers.items()
            if name not in ("content-length", "connection", "date")
        )
        self.write("\r\n".join([*lines, *shown, "", ""]).encode("latin-1"))

    def write(self, data: bytes) -> None:
        """Write bytes as they are."""
        if not self._transport.is_closing():
            self._transport.write(data)

    async def pause(self, seconds: float) -> None:
        """Write nothing for so long, or until the other side has gone."""
        try:
            async with asyncio.timeout(seconds):
                await self._gone()
        except TimeoutError:
            return

    async def close(self) -> None:
        """Close the connection in order: what was written arrives."""
        self._transport.close()
        await self._gone()

    async def reset(self) -> None:
        """Close it with a reset: without lingering, the kernel sends RST."""
        if not self._transport.is_closing():  # else the other side was quicker
            connection = self._transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()
        await self._gone()

    async def _gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass


def _length(exchange: Exchange) -> str:
    return f"content-length: {len(exchange.body)}"


def _half(exchange: Exchange) -> bytes:
    return exchange.body[: len(exchange.body) // 2]


async def drop(line: Line, exchange: Exchange, _value: None) -> None:
    """Close the connection in the middle of a body of known length."""
    line.head(exchange, _length(exchange))
    line.write(_half(exchange))
    await line.close()


async def reset(line: Line, exchange: Exchange, _value: None) -> None:
    """Reset the connection in the middle of a body."""
    line.head(exchange, _length(exchange))
    line.write(_half(exchange))
    await line.pause(0.05)  # a reset discards what the other side has not read yet
    await line.reset()


async def hang_up(line: Line, _exchange: Exchange, _value: None) -> None:
    """Close the connection instead of answering."""
    await line.close()


async def without_length(line: Line, exchange: Exchange, _value: None) -> None:
    """Cut off a body whose end only the end of the connection would tell: it looks whole."""
    line.head(exchange)
    line.write(_half(exchange))
    await line.close()


async def chunked(line: Line, exchange: Exchange, _value: None) -> None:
    """Close the connection before the last chunk."""
    half = _half(exchange)
    line.head(exchange, "transfer-encoding: chunked")
    line.write(b"%x\r\n%b\r\n" % (len(half), half))
    await line.close()


async def dribble(line: Line, exchange: Exchange, value: float) -> None:
    """Send the whole body in pieces, over ``value`` seconds."""
    line.head(exchange, _length(exchange))
    size = len(exchange.body) // PIECES + 1
    for start in range(0, len(exchange.body), size):
        line.write(exchange.body[start : start + size])
        await line.pause(value / PIECES)
    await line.close()


async def stall(line: Line, exchange: Exchange, value: float) -> None:
    """Send half of the body, nothing for ``value`` seconds, then close."""
    line.head(exchange, _length(exchange))
    line.write(_half(exchange))
    await line.pause(value)
    await line.close()


async def late(line: Line, exchange: Exchange, value: float) -> None:
    """Send nothing for ``value`` seconds, then the right answer."""
    await line.pause(value)
    line.head(exchange, _length(exchange))
    line.write(exchange.body)
    await line.close()


async def garbage(line: Line, _exchange: Exchange, _value: None) -> None:
    """Answer in another protocol."""
    line.write(b"220 mail.example.invalid ESMTP\r\n")
    await line.close()


WIRE = Stage.WIRE
FAMILY = (
    Kind("drop", "closed half-way through a body of known length", WIRE, drop),
    Kind("reset", "reset half-way through a body", WIRE, reset),
    Kind("hang-up", "closed without an answer", WIRE, hang_up),
    Kind("cut-no-length", "half a body, no length, closed", WIRE, without_length),
    Kind("cut-chunked", "half a body in a chunk, closed", WIRE, chunked),
    Kind("dribble", "the body in 20 pieces over value seconds", WIRE, dribble, 2.0),
    Kind("stall", "half a body, value seconds of nothing, closed", WIRE, stall, 60.0),
    Kind("late", "nothing for value seconds, then the answer", WIRE, late, 1.0),
    Kind("garbage", "a line that is no HTTP, closed", WIRE, garbage),
)
