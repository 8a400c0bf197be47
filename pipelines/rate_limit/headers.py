"""What the headers of an answer say of the rate limit. Unreadable values count as missing.

Names of headers are in lower case. `x-ratelimit-reset` is not used: the slots say when one is free.
So a `Reset` in milliseconds, in the past, or as a date delays nothing.
"""

import math
import re
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import NamedTuple

SECONDS = re.compile(
    r"\+?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,3})?"  # a number, perhaps with its unit
    r"\s*(s|secs?|seconds?|m|mins?|minutes?|h|hours?)?"
)
UNITS = {"m": 60.0, "h": 3600.0}  # by their first letter; others are seconds
WHOLE_NUMBER = re.compile(r"[0-9]{1,9}")
HIGHEST_LIMIT = 100  # requests per window: each is a row that is looked at for each request
ADDRESS_LIMIT = 1  # of callers without valid credentials (interface, Limits)
OF_ACTOR = {*range(200, 300), HTTPStatus.FORBIDDEN}


class RateHeaders(NamedTuple):
    """What one answer states of the actor's rate limit; None is missing or unreadable."""

    limit: int | None
    remaining: int | None


def read_rate_headers(
    status: int | None, headers: Mapping[str, str], known_limit: int | None
) -> RateHeaders | None:
    """Return limit, at most HIGHEST_LIMIT, and remaining requests, which may be more.

    None if the answer speaks of our address's limit. `known_limit` is the actor's, if it is known.
    """
    limit = _read_whole_number(headers.get("x-ratelimit-limit", ""))
    remaining = _read_whole_number(headers.get("x-ratelimit-remaining", ""))
    if not limit:
        limit = None
        remaining = None
    elif remaining is not None and remaining > limit:
        remaining = None
    if limit is not None:
        limit = min(limit, HIGHEST_LIMIT)
    if not _is_of_actor(status, limit, known_limit):
        return None
    return RateHeaders(limit, remaining)


def _is_of_actor(status: int | None, limit: int | None, known_limit: int | None) -> bool:
    """Return whether an answer speaks of the actor's limit, not of that of our address."""
    if status != HTTPStatus.TOO_MANY_REQUESTS:
        return status in OF_ACTOR
    # A 429 may be of either. Only the limit that it states tells them apart.
    if known_limit:
        return limit == known_limit
    return limit != ADDRESS_LIMIT


def _read_whole_number(text: str) -> int | None:
    digits = text.strip()
    return int(digits) if WHOLE_NUMBER.fullmatch(digits) else None


def read_retry_after(headers: Mapping[str, str], now: float) -> float:
    """Return the seconds that `Retry-After` asks to wait; 0 if it says nothing usable.

    A proxy may have added a header of its own: of several numbers the greatest counts. A date
    counts from the service's own `Date`, which is cut to the second, so that the wait is never too
    short. `now` is the Unix time, used where there is no `Date`.
    """
    text = headers.get("retry-after", "")
    until = read_date(text, -math.inf)
    if math.isfinite(until):
        return max(0.0, until - read_date(headers.get("date", ""), now))
    return max(map(read_seconds, text.split(",")))


def read_seconds(text: str) -> float:
    """Return a number of seconds from text, such as `7`, `1.5`, `25e-1` or `2 minutes`; else 0."""
    with suppress(UnicodeError):
        text = text.encode("latin-1").decode()  # a header in UTF-8
    # A digit of any script counts as one.
    plain = "".join(str(unicodedata.decimal(letter, letter)) for letter in text.strip().lower())
    match = SECONDS.fullmatch(plain)
    if not match:
        return 0.0
    number, exponent, unit = match.groups(default="")
    return float(number + exponent) * UNITS.get(unit[:1], 1.0)


def read_date(text: str, default: float) -> float:
    """Return the Unix time of an HTTP date; the default if it cannot be read."""
    try:
        date = parsedate_to_datetime(text)
        if date.tzinfo is None:
            date = date.replace(tzinfo=UTC)
        return date.timestamp()
    except (ValueError, OverflowError):
        return default
