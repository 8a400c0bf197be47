"""Which failures are worth another try, and when: one table and one policy.

Waiting for the rate limit is the budget's; the policies here only decide whether to ask again.
"""

import random
from datetime import datetime, timedelta
from typing import NoReturn

import httpx
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    stop_after_attempt,
    wait_none,
    wait_random_exponential,
)

from pipelines.api.problem import Problem
from pipelines.clock import Clock
from pipelines.errors import (
    AccessDenied,
    ContractBroken,
    Forbidden,
    Postponed,
    RateLimited,
    ServiceError,
    Unavailable,
)

TOO_MANY_REQUESTS = 429
RATE_LIMITED_IN_A_ROW = 20
# Tries in all, by status; other 5xx have three, what is not here has one.
TRIES = {408: 6, 409: 3, 425: 6, 500: 6, 501: 1, 502: 6, 503: 6, 504: 6, 505: 1, 511: 1}
OTHER_5XX = 3
LONGEST_GUESS = 30.0
LONGEST_WAIT = 300.0  # seconds; for longer no run waits
# Of a whole run; an outage of one stream after the other would else take an hour.
MOST_RETRIES, SUCCESSES_A_RETRY = 60, 5
# Full jitter, up to 0.5 s x 2^n.
BACK_OFF = wait_random_exponential(multiplier=0.5, max=30)


def pause(retry_after: float | None, attempt: int) -> float:
    """Return the seconds to send nothing after a 429: as asked, plus up to 0.1 s of jitter.

    Where the answer does not say: 1, 2, 4 … s for attempts 1, 2, 3 ….
    """
    guess = min(LONGEST_GUESS, 2.0 ** (attempt - 1))
    return (guess if retry_after is None else retry_after) + random.uniform(0, 0.1)  # noqa: S311


def locked_out(problem: Problem, rows: int | None, rejected: str) -> AccessDenied:
    """Return what a 401 means: `rows` were read of the list before, None if nothing ever was.

    `rejected` is what to say of the credentials. A 401 for which they are not to blame
    (Authentication failures) speaks for itself.
    """
    if "organization" in problem.detail:
        return AccessDenied(str(problem))
    if rows is None:
        return AccessDenied(f"{rejected} ({problem})")
    return AccessDenied(f"access ended after {rows:,} rows ({problem})")


def failure(problem: Problem, now: datetime) -> ServiceError:
    """Return what a failed answer means for the caller."""
    status, asked = problem.status, problem.retry_after
    if asked is not None and asked > LONGEST_WAIT:
        return postponed(f"{status} on {problem.path}: ", asked, now)
    if status == TOO_MANY_REQUESTS:
        return RateLimited(str(problem))
    if status == httpx.codes.FORBIDDEN:
        return Forbidden(str(problem))
    if status == httpx.codes.UNAUTHORIZED:
        return AccessDenied(str(problem))
    tries = TRIES.get(status, OTHER_5XX if status >= httpx.codes.INTERNAL_SERVER_ERROR else 1)
    if tries > 1:
        return Unavailable(
            f"{problem.path}: service unavailable ({status})",
            tries=tries,
            wait=problem.retry_after,
            said=problem.detail or problem.title,
        )
    return ContractBroken(problem.whole())


def postponed(where: str, asked: float, now: datetime) -> Postponed:
    """Return what ends a run for now: a wait in seconds that is longer than a run's."""
    until = now + timedelta(seconds=asked)
    clock = "%H:%M" if until.date() == now.date() else "%H:%M on %d %B %Y"
    words = f"server asks to wait {asked:,.0f} s; run ends resumable at {until:{clock}} UTC"
    return Postponed(f"{where}{words}", until)


class Quota:
    """The retries of one run: a success earns a fifth of one back, so that an outage fails fast."""

    def __init__(self) -> None:
        self._credit = MOST_RETRIES * SUCCESSES_A_RETRY

    @property
    def spent(self) -> bool:
        """Whether no retry is left."""
        return self._credit < SUCCESSES_A_RETRY

    def take(self) -> None:
        """Spend a retry."""
        self._credit -= SUCCESSES_A_RETRY

    def earn(self) -> None:
        """Count a success."""
        self._credit = min(self._credit + 1, MOST_RETRIES * SUCCESSES_A_RETRY)


def rate_limited() -> AsyncRetrying:
    """Ask again after a 429; the budget does the waiting (Limits, rule 4)."""
    return AsyncRetrying(
        retry=retry_if_exception_type(RateLimited),
        stop=stop_after_attempt(RATE_LIMITED_IN_A_ROW),
        wait=wait_none(),
        retry_error_callback=_shut_out,
    )


def _shut_out(state: RetryCallState) -> NoReturn:
    error = state.outcome.exception() if state.outcome else None
    raise RateLimited(
        f"{error} ({state.attempt_number} times in a row). If somebody else uses this client or "
        "key, set allowance"
    )


def transient(clock: Clock, quota: Quota) -> AsyncRetrying:
    """Ask again after a failure that may pass, as often as it and the run's quota allow.

    In the end Unavailable says how often and for how long it was tried.
    """
    begun = clock.monotonic()

    def give_up(state: RetryCallState) -> NoReturn:
        raise _in_the_end(_failure(state), state.attempt_number, clock.monotonic() - begun)

    return AsyncRetrying(
        retry=retry_if_exception_type(Unavailable),
        stop=lambda state: _tries_spent(state) or quota.spent,
        wait=_pause,
        before_sleep=lambda _state: quota.take(),
        sleep=clock.sleep,
        retry_error_callback=give_up,
    )


def _failure(state: RetryCallState) -> Unavailable:
    error = state.outcome.exception() if state.outcome else None
    if not isinstance(error, Unavailable):
        raise TypeError("only what may pass is tried again")
    return error


def _tries_spent(state: RetryCallState) -> bool:
    return state.attempt_number >= _failure(state).tries


def _pause(state: RetryCallState) -> float:
    """Return the seconds to wait: as long as the service asks, never less; else full jitter."""
    asked = _failure(state).wait
    return BACK_OFF(state) if asked is None else pause(asked, state.attempt_number)


def _in_the_end(last: Unavailable, tries: int, seconds: float) -> Unavailable:
    times = "1 try" if tries == 1 else f"{tries} tries"
    text = f"{last.text} after {times} in {seconds:.0f} s"
    if tries < last.tries:
        text += f" (the run's {MOST_RETRIES} retries are spent: this is an outage)"
    return Unavailable(text, tries=last.tries, said=last.said)
