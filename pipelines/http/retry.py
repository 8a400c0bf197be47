"""Which failures are retried, how often, and how long to wait first.

An answer 429 is tried 20 times, what else may pass 5 times: no answer, a damaged one, a status of
TRANSIENT. The wait is 1, 2, 4 … 30 s and a random second. Where an answer asks for a longer one,
the rate limiter makes all requests of the actor wait.
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import NoReturn, TypeVar, cast

import msgspec
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    stop_after_attempt,
    wait_exponential_jitter,
)

from pipelines.core.clock import Clock
from pipelines.core.errors import Postponed, RateLimited, ServiceError, Unavailable
from pipelines.rate_limit.headers import read_retry_after
from pipelines.rate_limit.memory import LONGEST_BLOCK

T = TypeVar("T")

TRIES: dict[type[ServiceError], int] = {RateLimited: 20, Unavailable: 5}
# Also a success without a body, and all from 500 on, except those that say "never".
TRANSIENT = {*range(201, 300), 408, 409, 425, *range(500, 600)} - {501, 505, 511}
LONGEST_WAIT_SECONDS = 300.0  # a run that would have to wait longer ends
FORGET_COMMAND = "partner-sync connections unblock"
UNCHANGED = "Nothing more was read; analysts still see the last published version."
LATER = "Run `partner-sync sync` later; it resumes where it stopped."
# What msgspec raises for a body that is not the JSON that was expected.
UNREADABLE = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)


class _Pause(msgspec.Struct):
    retry_after_seconds: float = 0.0


def wait_seconds(headers: Mapping[str, str], body: bytes | None, now: float) -> float:
    """Return the seconds that header or body of an answer ask to wait: 0 to 7 days."""
    try:
        asked = msgspec.json.decode(body or b"", type=_Pause, strict=False).retry_after_seconds
    except UNREADABLE:
        asked = 0.0
    return min(max(0.0, read_retry_after(headers, now) or 0.0, asked), LONGEST_BLOCK)


async def ask_with_retries(ask: Callable[[], Awaitable[T]], clock: Clock) -> T:
    """Ask until there is an answer or no try is left. Raises ServiceError."""
    within_limit = _policy(RateLimited, clock)
    answer: T = await _policy(Unavailable, clock)(within_limit, ask)
    return answer


def service_error(kind: type[ServiceError], message: str, remedy: str) -> ServiceError:
    """Return an error that says what it means for the data, unless it is retried first."""
    return kind(message if kind in TRIES else f"{message} {UNCHANGED}", remedy)


def postponed(place: str, until: datetime, connection: str) -> Postponed:
    """Return the error for a pause that is too long for a run."""
    moment = f"{until:%Y-%m-%d %H:%M} UTC"
    return Postponed(
        f"The service asks for a longer pause than a run may take (request to {place}). This run "
        f"of connection `{connection}` ends; nothing is requested before {moment}. {UNCHANGED}",
        until,
        f"Run `partner-sync sync` after {moment}; it resumes. To forget the pause, run "
        f"`{FORGET_COMMAND} {connection}`.",
    )


def _policy(kind: type[ServiceError], clock: Clock) -> AsyncRetrying:
    return AsyncRetrying(
        retry=retry_if_exception_type(kind),
        stop=stop_after_attempt(TRIES[kind]),
        wait=wait_exponential_jitter(max=30),
        sleep=clock.sleep,
        retry_error_callback=_give_up,
    )


def _give_up(state: RetryCallState) -> NoReturn:
    error = cast("ServiceError", state.outcome and state.outcome.exception())
    message = f"{error} Tried {state.attempt_number} times. {UNCHANGED}"
    raise type(error)(message, error.remedy or LATER) from None
