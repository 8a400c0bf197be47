"""What the headers of an answer say of the rate limit. Unreadable values count as missing.

`X-RateLimit-Reset` is not used: the rows say when a slot is free. So a `Reset` in milliseconds, in
the past, or as a date delays nothing.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from http import HTTPStatus

SECONDS = re.compile(r"[0-9]+(\.[0-9]+)?")
HIGHEST_LIMIT = 100  # requests per window: each is a row that is looked at for each request
ADDRESS_LIMIT = 1  # of callers without valid credentials (interface, Limits)


@dataclass(frozen=True)
class RateHeaders:
    """The rate limit as one answer states it; None is missing or unreadable."""

    limit: int | None = None
    remaining: int | None = None


def read_rate_headers(headers: Mapping[str, str]) -> RateHeaders:
    """Return limit and remaining requests; a remainder above the limit is unreadable."""
    values = {name.lower(): value for name, value in headers.items()}
    limit = _whole_number(values.get("x-ratelimit-limit"))
    remaining = _whole_number(values.get("x-ratelimit-remaining"))
    if limit is None or limit < 1:
        return RateHeaders()
    return RateHeaders(
        min(limit, HIGHEST_LIMIT), None if remaining is None or remaining > limit else remaining
    )


def is_of_actor(status: int, said: RateHeaders, known_limit: int | None) -> bool:
    """Return whether an answer speaks of the actor's limit, not of the one of our address."""
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return said.limit == known_limit if known_limit else said.limit != ADDRESS_LIMIT
    return status // 100 == 2 or status == HTTPStatus.FORBIDDEN  # noqa: PLR2004 - 2xx


def read_retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds that `Retry-After` asks to wait; None if it says nothing usable.

    A date counts from the service's own `Date`, which is cut to the second, so that the wait is
    never too short. `now` is the Unix time, used where there is no `Date`.
    """
    values = {name.lower(): value for name, value in headers.items()}
    text = values.get("retry-after", "").strip()
    if SECONDS.fullmatch(text):
        seconds = float(text)
    elif (date := _date(text)) is not None:
        begin = _date(values.get("date", ""))
        seconds = date - (now if begin is None else begin)
    else:
        return None
    return seconds if seconds > 0 else None


def _date(text: str) -> float | None:
    try:
        date = parsedate_to_datetime(text)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _whole_number(text: str | None) -> int | None:
    text = (text or "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None  # noqa: PLR2004
