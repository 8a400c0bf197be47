"""Failed answers: what problem+json and Retry-After say, and what they mean for the user."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import NamedTuple

import httpx
import msgspec

from pipelines.config.connections import Connection
from pipelines.core.errors import (
    AccessDenied,
    Forbidden,
    RateLimited,
    ServiceError,
    Unavailable,
    UnexpectedAnswer,
)
from pipelines.core.text import Redactor, printable
from pipelines.rate_limit.headers import read_retry_after
from pipelines.rate_limit.memory import LONGEST_BLOCK

UNCHANGED = "Nothing more was read; analysts still see the last published version."
LONGEST_QUOTE = 200  # characters of the service's own text
# Statuses that may pass; so do all from 500 on, except those that say "never".
PASSING = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_EARLY}
LASTING = {
    HTTPStatus.NOT_IMPLEMENTED,
    HTTPStatus.HTTP_VERSION_NOT_SUPPORTED,
    HTTPStatus.NETWORK_AUTHENTICATION_REQUIRED,
}
# What msgspec raises for a body that is not the JSON that was expected.
UNREADABLE = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?")


@dataclass(frozen=True)
class Problem:
    """A failed answer. `status` is that of HTTP; texts are redacted and printable.

    `kind` is the last part of the problem's type, such as `unauthorized`. `wait_seconds` is the
    longest wait that header or body asks for; None if neither does.
    """

    status: int
    path: str
    kind: str
    title: str
    detail: str
    wait_seconds: float | None

    @property
    def quote(self) -> str:
        """The service's own words, as a sentence to append; empty if there are none."""
        words = self.detail or self.title
        return f' The service says: "{words}"' if words else ""


class _Body(msgspec.Struct):
    type: object = ""
    title: object = ""
    detail: object = ""
    retry_after_seconds: object = None


def read_problem(response: httpx.Response, redactor: Redactor, now: float) -> Problem:
    """Read a failed answer whose body has been received; `now` is our Unix time.

    A body that is not problem+json leaves only the status.
    """
    members = _members(response.content)

    def words(member: object) -> str:
        # Once more: an escape such as \u0073 can hide a credential from the redactor until here.
        text = redactor.clean(member) if isinstance(member, str) else ""
        return printable(text.strip(), LONGEST_QUOTE)

    return Problem(
        status=response.status_code,
        path=response.request.url.path,
        kind=words(members.type).rpartition("/")[2],
        title=words(members.title),
        detail=words(members.detail),
        wait_seconds=wait_seconds(response.headers, response.content, now),
    )


def _members(body: bytes) -> _Body:
    try:
        return msgspec.json.decode(body, type=_Body)
    except UNREADABLE:
        return _Body()


def wait_seconds(headers: Mapping[str, str], body: bytes, now: float) -> float | None:
    """Return the seconds that an answer asks to wait: the longer of header and body.

    At most 7 days; None if neither asks for more than 0. `now` is our Unix time.
    """
    header = read_retry_after(headers, now)
    member = _members(body).retry_after_seconds
    text = "" if isinstance(member, bool) else str(member)
    seconds = float(text) if NUMBER.fullmatch(text) else 0.0
    return min(max(header or 0.0, seconds), LONGEST_BLOCK) or None


class _Refusal(NamedTuple):
    """One reason for a 401 or 403; `pattern` finds it in the words of the problem."""

    pattern: str
    message: str
    remedy: str


DISABLED = _Refusal(
    r"(not active|inactive|disabled).*organi[sz]ation|organi[sz]ation.*(not active|inactive|disab)",
    "the organization of connection `{name}` is disabled",
    "Ask the service to activate API access for the organization, then run `partner-sync check`.",
)
_FORBIDDEN = (
    _Refusal(
        r"\btrial\b",
        "the free trial of connection `{name}` has ended and billing is not enabled",
        "Enable billing in the merchant application, then run `partner-sync check`.",
    ),
    _Refusal(
        r"\bmappings?\b|companyadmin|manageprofiles",
        "the login that owns the API key of connection `{name}` lacks a mapping for this route",
        "Give the login the mapping (usually companyAdmin), or add the stream to `skip` of "
        "connection `{name}` in connections.toml.",
    ),
    _Refusal(
        r"\bscopes?\b",
        "the token of connection `{name}` lacks the OAuth scope for this route",
        "Ask the identity provider's administrator to grant the scope to the client, or add the "
        "stream to `skip` of connection `{name}` in connections.toml.",
    ),
    _Refusal(
        r"\bactors?\b",
        "the actor type of connection `{name}` may not use this route",
        "Use a client of another actor type, or add the stream to `skip` of connection `{name}` "
        "in connections.toml.",
    ),
    _Refusal(
        r"",
        "the credentials of connection `{name}` do not open this route",
        "Check the rights of the credentials, or add the stream to `skip` of connection `{name}` "
        "in connections.toml.",
    ),
)
_REJECTED = {
    "partner": _Refusal(
        r"",
        "the token of connection `{name}` is not accepted",
        "Check client_id, secret and audience of connection `{name}` in connections.toml, then run "
        "`partner-sync check`.",
    ),
    "merchant": _Refusal(
        r"",
        "the API key of connection `{name}` is not accepted",
        "Check that the API key of connection `{name}` is complete and not revoked, then run "
        "`partner-sync check`.",
    ),
}


def organization_disabled(problem: Problem) -> bool:
    """Return whether a 401 says that the organization is disabled: a new token does not help."""
    return bool(re.search(DISABLED.pattern, _text(problem)))


def failure(problem: Problem, connection: Connection) -> ServiceError:
    """Return the error for a failed answer. A wait that is too long for a run is not judged."""
    status = problem.status
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return RateLimited(f"{_start(problem)} rate limit exceeded.{problem.quote}")
    if status == HTTPStatus.UNAUTHORIZED:
        reason = DISABLED if organization_disabled(problem) else _REJECTED[connection.surface]
        return AccessDenied(*_refused(problem, connection, reason))
    if status == HTTPStatus.FORBIDDEN:
        reason = next(each for each in _FORBIDDEN if re.search(each.pattern, _text(problem)))
        return Forbidden(*_refused(problem, connection, reason))
    if _may_pass(status):
        return Unavailable(
            f"The service failed to answer {problem.path} (status {status}).{problem.quote}",
            retry_after_seconds=problem.wait_seconds,
        )
    return _unexpected(problem, connection)


def _may_pass(status: int) -> bool:
    """Return whether to ask again: a success without a body to read counts as a failure, too."""
    if status in PASSING or HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return True
    return status >= HTTPStatus.INTERNAL_SERVER_ERROR and status not in LASTING


def _text(problem: Problem) -> str:
    return f"{problem.kind} {problem.title} {problem.detail}".lower().replace("_", " ")


def _start(problem: Problem) -> str:
    return f"The service refused {problem.path} ({problem.status}):"


def _refused(problem: Problem, connection: Connection, reason: _Refusal) -> tuple[str, str]:
    message = reason.message.format(name=connection.name)
    return (
        f"{_start(problem)} {message}.{problem.quote} {UNCHANGED}",
        reason.remedy.format(name=connection.name),
    )


def _unexpected(problem: Problem, connection: Connection) -> UnexpectedAnswer:
    if problem.status == HTTPStatus.NOT_FOUND:
        return UnexpectedAnswer(
            f"{problem.path} does not exist at {connection.base_url} (404).{problem.quote} "
            f"{UNCHANGED}",
            f"Correct base_url of connection `{connection.name}` in connections.toml, or the path "
            "of the stream in settings.toml.",
        )
    return UnexpectedAnswer(
        f"{_start(problem)} the interface document does not know this answer.{problem.quote} "
        f"{UNCHANGED}",
        f"Run `partner-sync check`. If it fails too, check base_url of `{connection.name}`.",
    )


def redirected(path: str, location: str, connection: Connection) -> UnexpectedAnswer:
    """Return the error for a redirect, which is never followed."""
    return UnexpectedAnswer(
        f"The service redirects {path} to {_place(location)}. The redirect was not followed, so "
        f"no credentials went there. {UNCHANGED}",
        f"Set base_url of connection `{connection.name}` to the address of the service itself.",
    )


def _place(location: str) -> str:
    """Return an address without what may be secret: user, query and fragment."""
    try:
        url = httpx.URL(location)
        return printable(url.copy_with(username=None, password=None, query=None, fragment=None))
    except (httpx.InvalidURL, ValueError):
        return "an address that is not valid"
