"""What an answer means: the error that a user reads, how long to wait, how often to try again."""

import json
import logging
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec
import tenacity

from pipelines.config.connections import Connection
from pipelines.core import errors
from pipelines.core.clock import Clock
from pipelines.core.text import Redactor, printable
from pipelines.rate_limit.actor_state import LONGEST_PAUSE
from pipelines.rate_limit.headers import read_retry_after, read_seconds
from pipelines.rate_limit.limiter import Slot

logger = logging.getLogger(__name__)


class TokenRefused(errors.ServiceError):
    """The service does not accept a token. The next try has a new one."""


# Also a success without a body, and all from 500 on, except those that say "never".
TRANSIENT = {*range(201, 300), 408, 409, 425, *range(500, 600)} - {501, 505, 511}
MAY_PAUSE = {429, *TRANSIENT}
TRIES: dict[type[BaseException], int] = {
    errors.RateLimited: 20,
    errors.Unavailable: 5,
    TokenRefused: 2,
}
LONGEST_QUOTE = 200  # characters of the service's own text
UNCHANGED = "Nothing more was read; analysts still see the last published version."
# What msgspec raises for a body that is not the JSON that was expected.
UNREADABLE = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
KINDS: dict[int | None, type[errors.ServiceError]] = {
    401: errors.ServiceError,
    403: errors.Forbidden,
    429: errors.RateLimited,
    **dict.fromkeys(TRANSIENT, errors.Unavailable),
}
OR_SKIP = "{or_skip}."
SCOPE = r"403 .*\bscopes?\b"
ACTOR = r"403 .*\bactors?\b"
ANY_OTHER = "403 "
# Status and words of an answer in lower case -> message and remedy. The first that fits counts.
MEANINGS = {
    r"401 (?=.*organi[sz]ation).*(not active|inactive|disabled)": (
        "the organization of connection `{name}` is disabled",
        "Ask the service to activate the organization's API access, then run `partner-sync check`.",
    ),
    "401 ": (
        "the credentials of connection `{name}` are not accepted",
        "Correct the client_id, secret and audience, or the API key, of connection `{name}`.",
    ),
    r"403 .*\btrial\b": (
        "the free trial of connection `{name}` has ended and billing is not enabled",
        "Enable billing in the merchant application, then run `partner-sync check`.",
    ),
    r"403 .*(\bmappings?\b|companyadmin|manageprofiles)": (
        "the login that owns the API key of connection `{name}` lacks a mapping for this route",
        "Give the login the mapping (usually companyAdmin)" + OR_SKIP,
    ),
    SCOPE: (
        "the token of connection `{name}` lacks the OAuth scope for this route",
        "Ask the identity provider's administrator to grant the scope to the client" + OR_SKIP,
    ),
    ACTOR: (
        "the actor type of connection `{name}` may not use this route",
        "Use a client of another actor type" + OR_SKIP,
    ),
    ANY_OTHER: (
        "the credentials of connection `{name}` may not use this route",
        "Check the rights of the credentials" + OR_SKIP,
    ),
    "404 ": (
        "this path does not exist at {url}",
        "Correct base_url of connection `{name}`, or the path of the stream in settings.toml.",
    ),
    "429 ": (
        "rate limit exceeded",
        "Run `partner-sync sync` later. Set max_requests_per_window if others use `{name}`.",
    ),
    "30[12378] ": (
        "a redirect to {location}. It was not followed, so no credentials went there",
        "Set base_url of connection `{name}` to the address of the service itself.",
    ),
    "|".join(f"{status} " for status in TRANSIENT): ("it may pass", ""),
    "": (
        "the interface document does not know this status",
        "Run `partner-sync check`. If it fails too, check base_url of connection `{name}`.",
    ),
}


@dataclass(repr=False)
class Attempt(Slot):
    """One request on the wire: what a scan file records of it, whether it was answered or not.

    Times are Unix seconds. `headers` are those of an allowlist. `failure` is why there is no usable
    answer, `content` what a usable one says. Once it has left the client, nothing in it holds a
    credential. What is asked for may be `is_optional`: nothing waits because of it.
    """

    limit: int = 0  # records that a page was asked for
    is_optional: bool = False
    received_at: float = 0.0
    request_id: str | None = None
    body: bytes = b""
    content: Any = None
    failure: BaseException | None = None

    @property
    def may_pause(self) -> bool:
        """Whether the answer may ask all requests of the actor to wait."""
        return self.status in MAY_PAUSE and not self.is_optional

    @property
    def error(self) -> str | None:
        """Why there is no usable answer, as text."""
        if self.failure is None:
            return None
        return str(self.failure) or "Cancelled."  # only a cancellation has no text


def read_problem(body: bytes) -> dict[str, Any]:
    """Return the members of the problem+json in a body; none if the body is anything else."""
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except UNREADABLE:
        return {}


def wait_seconds(answer: Attempt, now: float) -> float:
    """Return the seconds that header or body of an answer ask to wait: 0 to 7 days."""
    in_body = 0.0
    given = read_problem(answer.body).get("retry_after_seconds")
    if isinstance(given, str):
        in_body = read_seconds(given)
    with suppress(msgspec.ValidationError):
        in_body = max(in_body, msgspec.convert(given, float))
    return min(max(read_retry_after(answer.headers, now), in_body), LONGEST_PAUSE)


def error_of_status(
    answer: Attempt, path: str, connection: Connection, redactor: Redactor, stream: str
) -> errors.ServiceError:
    """Return the error that an answer other than 200 means. `stream` is the list at the path."""
    problem = read_problem(answer.body)
    kind = str(problem.get("type") or "")
    title = str(problem.get("title") or "")
    detail = str(problem.get("detail") or "")
    slug = kind.rpartition("/")[2]
    words = f"{answer.status} {slug} {title} {detail}".lower().replace("_", " ")
    pattern = next(pattern for pattern in MEANINGS if re.match(pattern, words, re.DOTALL))
    message, remedy = MEANINGS[pattern]
    error_class = KINDS.get(answer.status, errors.UnexpectedAnswer)
    if _is_not_permitted(pattern, connection, title + detail):
        error_class = errors.NotPermitted
    message = message.format(
        name=connection.name,
        url=connection.base_url,
        location=answer.headers.get("location", "no address"),
    )
    return error_class(
        f"The service answered {path} with status {answer.status}: {message}."
        f"{_quoted(detail or title, redactor)}",
        remedy.format(name=connection.name, or_skip=_or_skip(connection, stream)),
    )


def _is_not_permitted(pattern: str, connection: Connection, text: str) -> bool:
    """Return whether the account may not read one list; it may read others."""
    if pattern in {SCOPE, ACTOR}:
        return True
    # On the partner surface only actor and scopes decide. What says nothing may be of a proxy.
    return pattern == ANY_OTHER and connection.surface == "partner" and text != ""


def _quoted(text: str, redactor: Redactor) -> str:
    """Return a sentence with the service's own text; empty without one."""
    # Once more: an escape such as \u0073 can hide a credential until the body is decoded.
    quote = redactor.clean(text).strip()
    return f' The service says: "{printable(quote, LONGEST_QUOTE)}"' if quote else ""


def _or_skip(connection: Connection, stream: str) -> str:
    """Return how the connection leaves a list out; nothing for what is no list."""
    if not stream:
        return ""
    table = f"[{connection.name}] in connections.toml to leave the list out"
    if connection.skip:
        return f", or set skip = {json.dumps([*connection.skip, stream])} in {table}"
    return f', or add skip = ["{stream}"] to {table}'


async def ask_with_retries(
    ask: Callable[[], Awaitable[Attempt]], clock: Clock, connection: str
) -> Attempt:
    """Ask until there is an answer or no try is left, after 1, 2, 4 … 30 s and a random second.

    Where an answer asks for a longer wait, the rate limiter makes all requests of the actor wait.
    Raises ServiceError, which says what it means for the data.
    """
    failures = Counter[type[BaseException]]()

    def may_repeat(error: BaseException) -> bool:
        kind = type(error)
        failures[kind] += 1
        return failures[kind] < TRIES.get(kind, 0)

    def note(state: tenacity.RetryCallState) -> None:
        error = state.outcome and state.outcome.exception()
        if isinstance(error, errors.Unavailable):  # the column `429s` counts the others
            # A pause that the answer asks for may be longer.
            seconds = state.upcoming_sleep
            logger.info("%s: %s Trying again in %.0f s or later.", connection, error, seconds)

    retrying = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception(may_repeat),
        wait=tenacity.wait_exponential_jitter(max=30),
        sleep=clock.sleep,
        before_sleep=note,
        reraise=True,
    )
    try:
        return await retrying(ask)
    except errors.ServiceError as error:
        tried = ""
        if type(error) in TRIES:
            tried = f" Tried {TRIES[type(error)]} times."
        remedy = error.remedy or "Run `partner-sync sync` later to resume."
        if isinstance(error, errors.Postponed):
            tried = f" This run of connection `{connection}` ends."
            remedy += f" To ignore the pause, run `partner-sync connections unblock {connection}`."
        raise type(error)(f"{error}{tried} {UNCHANGED}", remedy) from None
