"""Answers of another status: failures of the service, of a proxy before it, and storms of 429.

Not here: answers that say 200 and lie (bodies, envelopes).
"""

import json
from email.utils import formatdate
from http import HTTPStatus

from sandbox.faults.exchange import Exchange
from sandbox.faults.kind import TOKENS, Kind, Stage

PROXY_PAGE = b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>\n"


def internal_error(exchange: Exchange, _value: None) -> None:
    """Fail as a service does."""
    exchange.fail(HTTPStatus.INTERNAL_SERVER_ERROR, "The service failed to answer.")


def bad_gateway(exchange: Exchange, _value: None) -> None:
    """Fail as a gateway that speaks the service's language."""
    exchange.fail(HTTPStatus.BAD_GATEWAY, "The service behind this address gave no answer.")


def unavailable(exchange: Exchange, value: float) -> None:
    """Be unavailable, and say for how long."""
    exchange.fail(HTTPStatus.SERVICE_UNAVAILABLE, "The service is being maintained.")
    exchange.headers["retry-after"] = f"{value:.0f}"


def unavailable_for_ever(exchange: Exchange, _value: None) -> None:
    """Be unavailable, and say nothing about when to come back."""
    exchange.fail(HTTPStatus.SERVICE_UNAVAILABLE, "The service is being maintained.")


def gateway_timeout(exchange: Exchange, _value: None) -> None:
    """Time out as a gateway."""
    exchange.fail(HTTPStatus.GATEWAY_TIMEOUT, "The service behind this address took too long.")


def proxy_page(exchange: Exchange, _value: None) -> None:
    """Answer as a proxy that knows HTML alone."""
    exchange.become(HTTPStatus.BAD_GATEWAY, PROXY_PAGE, "text/html")


def _too_many(exchange: Exchange, retry_after: str | None, **members: int) -> None:
    exchange.fail(HTTPStatus.TOO_MANY_REQUESTS, "The rate limit is exceeded.", **members)
    if retry_after is not None:
        exchange.headers["retry-after"] = retry_after


def storm_seconds(exchange: Exchange, value: float) -> None:
    """Refuse, to be asked again after so many seconds ("Limits", rule 4)."""
    _too_many(exchange, f"{value:.0f}", retry_after_seconds=round(value))


def storm_date(exchange: Exchange, value: float) -> None:
    """Refuse, to be asked again at an HTTP-date (RFC 9110, section 10.2.3)."""
    _too_many(exchange, formatdate(exchange.clock.time() + value, usegmt=True))


def storm_silent(exchange: Exchange, _value: None) -> None:
    """Refuse, and say nothing about when to ask again."""
    _too_many(exchange, None)


def storm_garbled(exchange: Exchange, value: str) -> None:
    """Refuse, and say something that nobody can read."""
    _too_many(exchange, value)


def redirect(exchange: Exchange, value: str) -> None:
    """Send the caller, and its credentials if it is careless, to another host."""
    exchange.become(HTTPStatus.TEMPORARY_REDIRECT, b"", "text/plain")
    exchange.headers["location"] = f"{value}{exchange.path}"


def problem_cut(exchange: Exchange, _value: None) -> None:
    """Fail, with a problem that is not whole JSON."""
    internal_error(exchange, None)
    exchange.body = exchange.body[: len(exchange.body) // 2]


def problem_lies(exchange: Exchange, _value: None) -> None:
    """Fail, with a problem of another status, control characters and a very long detail."""
    internal_error(exchange, None)
    lie = {"status": 200, "title": None, "detail": "\x1b[2J\x00" + 20_000 * "long "}
    exchange.body = json.dumps(lie).encode()


def token_refused(exchange: Exchange, _value: None) -> None:
    """Refuse right credentials (RFC 6749, section 5.2)."""
    body = b'{"error":"invalid_client","error_description":"the client is not known"}'
    exchange.become(HTTPStatus.UNAUTHORIZED, body, "application/json")


def token_without_lifetime(exchange: Exchange, _value: None) -> None:
    """Grant a token and do not say how long it lives."""
    start, _, _ = exchange.body.rpartition(b',"expires_in"')
    exchange.body = start + b"}"


ANSWER = Stage.ANSWER
FAMILY = (
    Kind("error-500", "internal server error", ANSWER, internal_error),
    Kind("error-502", "bad gateway, as a problem", ANSWER, bad_gateway),
    Kind("error-503", "unavailable; Retry-After of value seconds", ANSWER, unavailable, 1.0),
    Kind("error-503-silent", "unavailable, no Retry-After", ANSWER, unavailable_for_ever),
    Kind("error-504", "gateway timeout", ANSWER, gateway_timeout),
    Kind("html-502", "a proxy's page of HTML with 502", ANSWER, proxy_page),
    Kind("storm-seconds", "429, Retry-After of value seconds", ANSWER, storm_seconds, 1.0),
    Kind("storm-date", "429, Retry-After a date in value seconds", ANSWER, storm_date, 2.0),
    Kind("storm-silent", "429 without Retry-After", ANSWER, storm_silent),
    Kind("storm-garbled", "429, Retry-After the text value", ANSWER, storm_garbled, "a while"),
    Kind("redirect", "307 to the host value", ANSWER, redirect, "https://elsewhere.invalid"),
    Kind("problem-cut", "500 whose problem is not whole JSON", ANSWER, problem_cut),
    Kind("problem-lies", "500 whose problem says 200, at length", ANSWER, problem_lies),
    Kind("token-denied", "right credentials refused with 401", ANSWER, token_refused, None, TOKENS),
    Kind(
        "token-endless", "a token without expires_in", ANSWER, token_without_lifetime, None, TOKENS
    ),
)
