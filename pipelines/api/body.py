"""Bodies as they arrive: refused where they would fill the memory or never end.

Here: what is true of every answer, a token's and a refusal's included. Not here: what a body says.
"""

from collections.abc import AsyncIterator

import httpx

from pipelines.clock import Clock
from pipelines.errors import ContractBroken, Unavailable

MEBIBYTE = 1024 * 1024
WIRE_CAP, DECODED_CAP = 32 * MEBIBYTE, 64 * MEBIBYTE
# A token or a 401 is small, and httpx decodes it whole: gzip makes at most 1,032 bytes of one.
SMALL_CAP = MEBIBYTE // 4
# What we ask for. Of zstd and of gzip in gzip a single chunk may unfold to gigabytes.
ENCODINGS = ("gzip", "identity")
LONGEST_SECONDS = 120.0


class Guarded(httpx.AsyncByteStream):
    """A body on its way, with a cap in bytes on the wire."""

    def __init__(self, response: httpx.Response, path: str, cap: int, clock: Clock) -> None:
        if not isinstance(response.stream, httpx.AsyncByteStream):
            raise TypeError("an asynchronous transport answers with an asynchronous stream")
        self._stream = response.stream
        self._encoding = response.headers.get("content-encoding", "identity").strip().lower()
        self._length = response.headers.get("content-length", "")
        self._path = path
        self._cap = cap
        self._clock = clock

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the body as it comes; raise ContractBroken or Unavailable where it goes too far."""
        if self._encoding not in ENCODINGS:
            raise ContractBroken(f"{self._path}: answer in an encoding that was not asked for")
        begun, size = self._clock.monotonic(), 0
        try:
            async for chunk in self._stream:
                size += len(chunk)
                if size > self._cap:
                    raise _too_large(self._path, self._cap)
                if self._clock.monotonic() - begun > LONGEST_SECONDS:
                    raise self._broken_off(size, f"not whole in {LONGEST_SECONDS:.0f} s")
                yield chunk
        except httpx.TransportError as error:
            silent = isinstance(error, httpx.TimeoutException)
            raise self._broken_off(
                size, "nothing more came" if silent else "connection closed"
            ) from None

    def _broken_off(self, size: int, why: str) -> Unavailable:
        """Say how much of the answer came; its length in bytes where it was said before."""
        whole = f" of {int(self._length):,}" if self._length.isdecimal() else ""
        return Unavailable(f"{self._path}: answer broke off after {size:,}{whole} bytes ({why})")

    async def aclose(self) -> None:
        """Close the connection, or give it back where the body was read to its end."""
        await self._stream.aclose()


async def whole(response: httpx.Response) -> bytes:
    """Return a decoded body (65 KB of gzip can be 64 MiB); close the answer in any case."""
    chunks, size = [], 0
    try:
        async for chunk in response.aiter_bytes():
            size += len(chunk)
            if size > DECODED_CAP:
                raise _too_large(response.request.url.path, DECODED_CAP)
            chunks.append(chunk)
    finally:
        await response.aclose()
    return b"".join(chunks)


def _too_large(path: str, cap: int) -> ContractBroken:
    """Say that an answer is refused for its size."""
    return ContractBroken(f"{path}: answer larger than {cap / MEBIBYTE:g} MiB refused")
