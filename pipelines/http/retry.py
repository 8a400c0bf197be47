"""When to ask again: policies composed once, waits after a 429, and a quota for the whole run."""

import random
from datetime import datetime
from typing import NoReturn

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    stop_after_attempt,
    wait_none,
    wait_random_exponential,
)
from tenacity.stop import stop_base

from pipelines.core.clock import Clock
from pipelines.core.errors import Postponed, RateLimited, Unavailable
from pipelines.http.problems import UNCHANGED
from pipelines.rate_limit.memory import LONGEST_BLOCK

MAX_TRIES = 5  # of a failure that may pass
MAX_RATE_LIMITED = 20  # answers 429 in a row to one request
LONGEST_WAIT_SECONDS = 300.0  # a run that would have to wait longer ends
LONGEST_GUESS_SECONDS = 30.0
JITTER_SECONDS = 0.1
FORGET_COMMAND = "partner-sync connections unblock"
MAX_RETRIES, SUCCESSES_PER_RETRY = 60, 5  # of a run
BACKOFF = wait_random_exponential(multiplier=1, max=30)  # at most 1, 2, 4, 8 s


class RetryQuota(stop_base):
    """The retries of one run. Successes earn some back; an outage uses them up and ends the run."""

    def __init__(self) -> None:
        self._credit = MAX_RETRIES * SUCCESSES_PER_RETRY

    def __call__(self, retry_state: RetryCallState) -> bool:
        """Return whether no retry is left."""
        del retry_state
        return self._credit < SUCCESSES_PER_RETRY

    def spend(self, _state: RetryCallState) -> None:
        """Count a retry."""
        self._credit -= SUCCESSES_PER_RETRY

    def earn(self) -> None:
        """Count a success."""
        self._credit = min(self._credit + 1, MAX_RETRIES * SUCCESSES_PER_RETRY)


def pause_seconds(asked: float | None, refused_in_a_row: int) -> float:
    """Return how long to send nothing after a 429: never less than asked.

    Where the answer asks for nothing, or for 0: 1, 2, 4 … 30 s.
    """
    guess = min(LONGEST_GUESS_SECONDS, 2.0 ** min(refused_in_a_row - 1, 10))
    pause = (asked or guess) + random.uniform(0, JITTER_SECONDS)  # noqa: S311 - not for secrecy
    return min(pause, LONGEST_BLOCK)


def postponed(path: str, until: datetime, connection: str) -> Postponed:
    """Return the error for a pause that is too long for a run."""
    moment = f"{until:%Y-%m-%d %H:%M} UTC"
    return Postponed(
        f"The service asks for a longer pause than a run may take (request to {path}). This run of "
        f"connection `{connection}` ends; nothing is requested before {moment}. {UNCHANGED}",
        until,
        f"Run `partner-sync sync` after {moment}; it resumes. To forget the pause, run "
        f"`{FORGET_COMMAND} {connection}`.",
    )


def rate_limited_policy() -> AsyncRetrying:
    """Ask again after a 429. The limiter does the waiting."""
    return AsyncRetrying(
        retry=retry_if_exception_type(RateLimited),
        stop=stop_after_attempt(MAX_RATE_LIMITED),
        wait=wait_none(),
        retry_error_callback=_always_refused,
    )


def transient_policy(clock: Clock, quota: RetryQuota) -> AsyncRetrying:
    """Ask again after a failure that may pass, at most five times in all."""
    return AsyncRetrying(
        retry=retry_if_exception_type(Unavailable),
        stop=stop_after_attempt(MAX_TRIES) | quota,
        wait=_wait,
        before_sleep=quota.spend,
        sleep=clock.sleep,
        retry_error_callback=_give_up,
    )


def _wait(state: RetryCallState) -> float:
    asked = _failure(state).retry_after_seconds
    return pause_seconds(asked, 1) if asked else BACKOFF(state)


def _failure(state: RetryCallState) -> Unavailable:
    error = state.outcome.exception() if state.outcome else None
    if not isinstance(error, Unavailable):
        raise TypeError("only failures that may pass are tried again")
    return error


def _give_up(state: RetryCallState) -> NoReturn:
    error, tries = _failure(state), state.attempt_number
    reason = "" if tries == MAX_TRIES else f" The run has used up its {MAX_RETRIES} retries."
    times = "once" if tries == 1 else f"{tries} times"
    raise Unavailable(
        f"{error} Tried {times}.{reason} {UNCHANGED}",
        error.remedy or "Run `partner-sync sync` later; it resumes where it stopped.",
        retry_after_seconds=error.retry_after_seconds,
    ) from None


def _always_refused(state: RetryCallState) -> NoReturn:
    error = state.outcome.exception() if state.outcome else None
    raise RateLimited(
        f"{error} This is the answer to {state.attempt_number} requests in a row. {UNCHANGED}",
        "Run `partner-sync sync` later. If others use the same credentials, set "
        "max_requests_per_window of the connection.",
    ) from None
