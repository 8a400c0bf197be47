"""Bodies that are not what their status and headers say.

Not here: pages that are JSON and lie (envelopes, contents), connections that break (wires).
"""

import gzip
from functools import lru_cache
from http import HTTPStatus

from sandbox.faults.exchange import Exchange
from sandbox.faults.kind import Kind, Stage

LOGIN_PAGE = b"<html><body><h1>Welcome to the hotel's network</h1></body></html>\n"
MEBIBYTE = 2**20
DEEP = 100_000


def html(exchange: Exchange, _value: None) -> None:
    """Answer as a captive portal."""
    exchange.become(HTTPStatus.OK, LOGIN_PAGE, "text/html")


def truncated(exchange: Exchange, _value: None) -> None:
    """End in the middle; Content-Length agrees, so that only the JSON tells."""
    exchange.body = exchange.body[: len(exchange.body) // 2]


def empty(exchange: Exchange, _value: None) -> None:
    """Answer nothing."""
    exchange.body = b""


def no_object(exchange: Exchange, _value: None) -> None:
    """Answer JSON of another kind."""
    exchange.body = b"[]"


def no_utf8(exchange: Exchange, _value: None) -> None:
    """Write a text in another encoding than JSON's."""
    exchange.body = exchange.body.replace(b'":"', b'":"\xe9\xff', 1)


def nested(exchange: Exchange, _value: None) -> None:
    """Answer brackets within brackets."""
    exchange.body = b'{"data":' + DEEP * b"[" + DEEP * b"]" + b"}"


@lru_cache(maxsize=1)
def _bomb(size: int) -> bytes:
    return gzip.compress(b" " * size, compresslevel=9)


def bomb(exchange: Exchange, value: float) -> None:
    """Answer little on the wire that becomes very much."""
    exchange.body = _bomb(round(value * MEBIBYTE))
    exchange.headers["content-encoding"] = "gzip"


def no_gzip(exchange: Exchange, _value: None) -> None:
    """Say gzip of a body that is none."""
    exchange.headers["content-encoding"] = "gzip"


ANSWER = Stage.ANSWER
FAMILY = (
    Kind("html-200", "a proxy's page of HTML with 200", ANSWER, html),
    Kind("truncated", "half of the JSON, Content-Length agrees", ANSWER, truncated),
    Kind("empty-body", "200 without a body", ANSWER, empty),
    Kind("no-object", "200 with an empty array", ANSWER, no_object),
    Kind("no-utf8", "a text that is no UTF-8", ANSWER, no_utf8),
    Kind("nested", "100,000 brackets within brackets", ANSWER, nested),
    Kind("gzip-bomb", "value MiB, gzipped to a thousandth", ANSWER, bomb, 80.0),
    Kind("gzip-lie", "Content-Encoding gzip of a plain body", ANSWER, no_gzip),
)
