"""Which failures are worth another try, and when: one table and one policy.

Waiting for the rate limit is the budget's; the policies here only decide whether to ask again.
"""

import random

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
from pipelines.errors import AccessDenied, ContractBroken, RateLimited, ServiceError, Unavailable

TOO_MANY_REQUESTS = 429
RATE_LIMITED_IN_A_ROW = 20
# Tries in all, by status; other 5xx have three, what is not here has one.
TRIES = {408: 6, 409: 3, 425: 6, 500: 6, 501: 1, 502: 6, 503: 6, 504: 6, 505: 1, 511: 1}
OTHER_5XX = 3
LONGEST_GUESS = 30.0


def pause(retry_after: float | None, attempt: int) -> float:
    """Return the seconds to send nothing after a 429: as asked, plus up to 0.1 s of jitter.

    Where the answer does not say: 1, 2, 4 … s for attempts 1, 2, 3 ….
    """
    guess = min(LONGEST_GUESS, 2.0 ** (attempt - 1))
    return (guess if retry_after is None else retry_after) + random.uniform(0, 0.1)  # noqa: S311


def failure(problem: Problem) -> ServiceError:
    """Return what a failed answer means for the caller."""
    status = problem.status
    if status == TOO_MANY_REQUESTS:
        return RateLimited(str(problem))
    if status in {401, 403}:
        return AccessDenied(str(problem))
    tries = TRIES.get(status, OTHER_5XX if status >= httpx.codes.INTERNAL_SERVER_ERROR else 1)
    if tries > 1:
        return Unavailable(str(problem), tries=tries)
    return ContractBroken(str(problem))


def rate_limited() -> AsyncRetrying:
    """Ask again after a 429; the budget does the waiting (Limits, rule 4)."""
    return AsyncRetrying(
        retry=retry_if_exception_type(RateLimited),
        stop=stop_after_attempt(RATE_LIMITED_IN_A_ROW),
        wait=wait_none(),
        reraise=True,
    )


def transient(clock: Clock) -> AsyncRetrying:
    """Ask again after a failure that may pass: full jitter, up to 0.5 s x 2^n, 30 s at most."""
    return AsyncRetrying(
        retry=retry_if_exception_type(Unavailable),
        stop=_tries_spent,
        wait=wait_random_exponential(multiplier=0.5, max=30),
        sleep=clock.sleep,
        reraise=True,
    )


def _tries_spent(state: RetryCallState) -> bool:
    error = state.outcome.exception() if state.outcome else None
    return not isinstance(error, Unavailable) or state.attempt_number >= error.tries
