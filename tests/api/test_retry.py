"""Which failures are asked again, how often and when."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tenacity import AsyncRetrying

from pipelines.api import retry
from pipelines.api.problem import Problem
from pipelines.errors import AccessDenied, ContractBroken, RateLimited, ServiceError, Unavailable
from tests import virtual
from tests.virtual import CLOCK, seconds

# Each status of the table in words, and the tries in all that its failure is worth.
STATUSES: list[tuple[type[ServiceError], int, tuple[int, ...]]] = [
    (ContractBroken, 1, (300, 304, 400, 402, 404, 405, 406, 410, 413, 414, 415, 422, 431)),
    (ContractBroken, 1, (501, 505, 511)),
    (AccessDenied, 1, (401, 403)),
    (Unavailable, 6, (408, 425, 500, 502, 503, 504)),
    (Unavailable, 3, (409, 506, 507, 520, 599)),
    (RateLimited, 20, (429,)),
]
FAILURES = [(status, error, tries) for error, tries, group in STATUSES for status in group]


def problem(status: int) -> Problem:
    return Problem(status, "/v2/usage", "Title", "the detail", None)


@pytest.mark.parametrize(("status", "error", "tries"), FAILURES)
def test_what_a_status_means(status: int, error: type[ServiceError], tries: int) -> None:
    failed = retry.failure(problem(status))
    assert type(failed) is error
    assert str(failed) == f"{status} on /v2/usage: the detail"
    assert not isinstance(failed, Unavailable) or failed.tries == tries


async def spent(policy: AsyncRetrying, failure: Callable[[int], Exception]) -> list[float]:
    """Return the moments of all tries of what always fails, from the first."""
    moments: list[float] = []

    async def ask() -> None:
        async for attempt in policy:
            with attempt:
                moments.append(seconds())
                raise failure(len(moments))

    with pytest.raises(type(failure(1))):
        await ask()
    return [moment - moments[0] for moment in moments]


@pytest.mark.parametrize(("status", "error", "tries"), FAILURES)
def test_a_policy_ends_after_the_stated_tries(
    status: int, error: type[ServiceError], tries: int
) -> None:
    policy = retry.rate_limited() if error is RateLimited else retry.transient(CLOCK)
    failed = retry.failure(problem(status))
    moments = virtual.run(spent(policy, lambda _try: failed))
    assert len(moments) == tries


def test_waiting_for_the_rate_limit_is_left_to_the_budget() -> None:
    moments = virtual.run(spent(retry.rate_limited(), lambda _try: RateLimited("later")))
    assert set(moments) == {0.0}


def test_back_off_is_full_jitter_under_a_doubling_cap_of_30_s() -> None:
    caps = [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    failed = Unavailable("gone", tries=len(caps) + 1)
    runs = [virtual.run(spent(retry.transient(CLOCK), lambda _: failed)) for _ in range(40)]
    for number, cap in enumerate(caps):
        waits = [moments[number + 1] - moments[number] for moments in runs]
        assert max(waits) <= cap + 1e-6
        # Spread over the whole of it: of 40 draws some lie in the lower and the upper half.
        assert min(waits) < cap / 2 < max(waits)


def test_the_failure_at_hand_says_how_often() -> None:
    """A broken page (2 tries) after a refused connection (6) is the second try already."""
    failures = [Unavailable("gone", tries=6), Unavailable("broken", tries=2)]
    moments = virtual.run(spent(retry.transient(CLOCK), lambda number: failures[number - 1]))
    assert len(moments) == 2


@pytest.mark.parametrize(
    "error", [AccessDenied("no"), ContractBroken("no"), RateLimited("no"), ValueError("a defect")]
)
def test_what_will_not_pass_is_not_asked_again(error: Exception) -> None:
    assert virtual.run(spent(retry.transient(CLOCK), lambda _try: error)) == [0.0]


def test_success_ends_it() -> None:
    async def main() -> tuple[int, str]:
        async for attempt in retry.transient(CLOCK):
            with attempt:
                number = attempt.retry_state.attempt_number
                if number < 4:
                    raise Unavailable("gone")
                return number, "answer"
        return 0, ""

    assert virtual.run(main()) == (4, "answer")


@given(st.floats(0, 1e9), st.integers(1, 20))
def test_a_pause_is_never_shorter_than_asked(asked: float, attempt: int) -> None:
    assert asked <= retry.pause(asked, attempt) <= asked + 0.1


@pytest.mark.parametrize(
    ("attempt", "guess"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 16), (6, 30), (20, 30)]
)
def test_a_429_without_a_time_is_given_more_each_time(attempt: int, guess: float) -> None:
    pauses = [retry.pause(None, attempt) for _ in range(50)]
    assert guess <= min(pauses) <= max(pauses) <= guess + 0.1
    assert len(set(pauses)) > 1
