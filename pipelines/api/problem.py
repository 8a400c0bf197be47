"""What a failed answer says: problem+json (RFC 7807) and Retry-After, read with suspicion."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx
import msgspec

LONGEST_TEXT = 200
LONGEST_WAIT = 1e9  # seconds; 30 years are for ever
UNSAID = "no reason given"
# Of a broken answer: what is looked at, and what is shown of it.
QUOTED, SHOWN = 2000, 80
# A text, which may have lost its end, or a number; what a colon follows is a name.
_JSON_VALUE = re.compile(r'"(?:[^"\\]|\\.)*+"?(\s*:)?|-?\d[\d.eE+-]*')
_OPAQUE = re.compile(r"[\w+/=~.-]{20,}")
_NAMED_SECRET = re.compile(
    r"(?i)((?:secret|token|passw(?:or)?d|api[_-]?key|session|cookie|bearer|basic)"
    r"[\w-]*[\"'\s:=>]*)[^\s\"'<>&;,}]+"
)
# What msgspec raises for a body that is not the JSON we want.
UNREADABLE = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)


@dataclass(frozen=True)
class Problem:
    """A failure in the service's own words; `status` is HTTP's, whatever the body says."""

    status: int
    path: str
    title: str
    detail: str
    retry_after: float | None

    def __str__(self) -> str:
        return _joined(f"{self.status} on {self.path}", self.detail or self.title or UNSAID)

    def whole(self) -> str:
        """Return title and detail both: for what nobody expected."""
        words = [self.title, self.detail] if self.title or self.detail else [UNSAID]
        return _joined(f"{self.status} on {self.path}", *words)


def _joined(*words: str) -> str:
    return ": ".join(filter(None, words))


class _Body(msgspec.Struct):
    title: object = ""
    detail: object = ""
    retry_after_seconds: object = None


def cleaned(text: object) -> str:
    """Return a foreign text fit for a terminal and a log: one line, no control characters."""
    begin = str(text).strip()[:LONGEST_TEXT]
    return "".join(letter if letter.isprintable() else " " for letter in begin).strip()


def place(location: str) -> str:
    """Return where a redirection leads, without what may be a secret: query, user, fragment."""
    try:
        url = httpx.URL(location)
    except httpx.InvalidURL:
        return "an address that is none"
    return cleaned(url.copy_with(username=None, password=None, query=None, fragment=None))


def redacted(body: bytes) -> str:
    """Return the first 80 characters of a broken answer, without what could be a secret.

    Of JSON only the names are left, of all else no long opaque strings and nothing that a word
    such as token or password goes before. What follows the cut may be the end of a secret.
    """
    begin = body[:QUOTED].decode(errors="replace").strip()
    if begin.startswith(("{", "[")):
        begin = _JSON_VALUE.sub(lambda found: found[0] if found[1] else "…", begin)
    return cleaned(_OPAQUE.sub("…", _NAMED_SECRET.sub(r"\1…", begin)))[:SHOWN]


def read(response: httpx.Response, body: bytes, now: datetime) -> Problem:
    """Read a failed answer; a malformed body leaves the HTTP status to speak."""
    try:
        members = msgspec.json.decode(body, type=_Body)
    except UNREADABLE:
        members = _Body()
    waits = [
        seconds
        for seconds in (retry_after(response.headers, now), _seconds(members.retry_after_seconds))
        if seconds is not None
    ]
    return Problem(
        status=response.status_code,
        path=response.request.url.path,
        title=_words(members.title),
        detail=_words(members.detail),
        retry_after=max(waits, default=None),
    )


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds that Retry-After asks for, None where it is missing or unreadable.

    A date counts from the server's own Date, so that our clock need not agree with its; `now` is
    ours, for an answer without one.
    """
    value = headers.get("retry-after", "").strip(" \t")
    if re.fullmatch(r"[0-9]+", value):
        return min(float(value), LONGEST_WAIT)
    until = _date(value)
    if until is None:
        return None
    return max(0.0, (until - (_date(headers.get("date", "")) or now)).total_seconds())


def resets_in(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds until X-RateLimit-Reset (Unix time), None where it is not a number.

    They count from the server's own Date, so that our clock need not agree with its; `now` is ours,
    for an answer without one. Both are whole seconds: the result is up to two seconds too long.
    """
    value = headers.get("x-ratelimit-reset", "").strip(" \t")
    if not re.fullmatch(r"[0-9]{1,18}(\.[0-9]{1,9})?", value):
        return None
    return float(value) - (_date(headers.get("date", "")) or now).timestamp()


def _words(member: object) -> str:
    return cleaned(member) if isinstance(member, str) else ""


def _seconds(value: object) -> float | None:
    if type(value) is not int or value < 0:  # not isinstance: True is an int
        return None
    return float(min(value, LONGEST_WAIT))


def _date(value: str) -> datetime | None:
    """Read the three date forms of HTTP; asctime names no zone and means UTC."""
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
