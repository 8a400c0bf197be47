"""Bodies of answers: received with a cap, decompressed with a cap."""

import re
import zlib
from collections.abc import AsyncIterator

import httpx

from pipelines.core.errors import Unavailable

MEBIBYTE = 1024 * 1024
MAX_RECEIVED, MAX_DECODED = 32 * MEBIBYTE, 64 * MEBIBYTE  # 500 records of 128 KiB
MAX_SMALL = MEBIBYTE // 4  # of a token
LENGTH = re.compile(r"[0-9]{1,18}")
GZIP = 16 + zlib.MAX_WBITS  # zlib's way to say: a gzip header


async def receive_body(response: httpx.Response, path: str, cap: int) -> bytes:
    """Return the bytes of a body as sent, at most `cap`. Raises Unavailable."""
    pieces, size = [], 0
    try:
        async for piece in _pieces(response):
            size += len(piece)
            if size > cap:
                raise _too_large(path, cap)
            pieces.append(piece)
    except httpx.TransportError:
        length = response.headers.get("content-length", "")
        whole = f" of {int(length):,}" if LENGTH.fullmatch(length) else ""
        raise Unavailable(f"The answer to {path} broke off after {size:,}{whole} bytes.") from None
    finally:
        await response.aclose()
    return b"".join(pieces)


def _pieces(response: httpx.Response) -> AsyncIterator[bytes]:
    if not isinstance(response.stream, httpx.AsyncByteStream):
        raise TypeError("an asynchronous transport answers with an asynchronous stream")
    return aiter(response.stream)


def decompress(response: httpx.Response, path: str, body: bytes) -> bytes:
    """Return a body without its Content-Encoding, gzip or none. Raises Unavailable.

    64 KiB of gzip can be 64 MiB, so zlib gets the cap.
    """
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding in {"", "identity"} or not body:
        return body
    if encoding != "gzip":
        raise Unavailable(f"The answer to {path} has an encoding that was not asked for.")
    unzip = zlib.decompressobj(GZIP)
    try:
        decoded = unzip.decompress(body, MAX_DECODED + 1)
    except zlib.error:
        raise Unavailable(f"The answer to {path} cannot be decompressed.") from None
    if len(decoded) > MAX_DECODED:
        raise _too_large(path, MAX_DECODED)
    if not unzip.eof or unzip.unused_data:
        raise Unavailable(f"The answer to {path} cannot be decompressed: it is not whole.")
    return decoded


def _too_large(path: str, cap: int) -> Unavailable:
    return Unavailable(f"The answer to {path} is larger than {cap / MEBIBYTE:g} MiB.")
