"""Which failures are asked again, how often and when."""

import re
from collections.abc import Callable
from datetime import timedelta
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tenacity import AsyncRetrying

from pipelines.api import retry
from pipelines.api.problem import Problem
from pipelines.api.retry import Quota
from pipelines.errors import (
    AccessDenied,
    ContractBroken,
    Forbidden,
    Postponed,
    RateLimited,
    ServiceError,
    Unavailable,
)
from tests import virtual
from tests.virtual import CLOCK, EPOCH, seconds

# Each status of the table in words, and the tries in all that its failure is worth.
STATUSES: list[tuple[type[ServiceError], int, tuple[int, ...]]] = [
    (ContractBroken, 1, (300, 304, 400, 402, 404, 405, 406, 410, 413, 414, 415, 422, 431)),
    (ContractBroken, 1, (501, 505, 511)),
    (AccessDenied, 1, (401,)),
    (Forbidden, 1, (403,)),
    (Unavailable, 6, (408, 425, 500, 502, 503, 504)),
    (Unavailable, 3, (409, 506, 507, 520, 599)),
    (RateLimited, 20, (429,)),
]
REJECTED = "token rejected: check audience and client"
FAILURES = [(status, error, tries) for error, tries, group in STATUSES for status in group]


def problem(status: int, retry_after: float | None = None) -> Problem:
    return Problem(status, "/v2/usage", "Title", "the detail", retry_after)


def transient() -> AsyncRetrying:
    return retry.transient(CLOCK, Quota())


@pytest.mark.parametrize(("status", "error", "tries"), FAILURES)
def test_what_a_status_means(status: int, error: type[ServiceError], tries: int) -> None:
    failed = retry.failure(problem(status), EPOCH)
    assert type(failed) is error
    assert "/v2/usage" in str(failed)
    assert str(failed).endswith(": the detail")
    assert str(status) in str(failed)
    assert not isinstance(failed, Unavailable) or failed.tries == tries


async def spent(
    policy: Callable[[], AsyncRetrying], failure: Callable[[int], Exception]
) -> list[float]:
    """Return the moments of all tries of what always fails, from the first."""
    moments: list[float] = []

    async def ask() -> None:
        async for attempt in policy():
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
    policy = retry.rate_limited if error is RateLimited else transient
    failed = retry.failure(problem(status), EPOCH)
    moments = virtual.run(spent(policy, lambda _try: failed))
    assert len(moments) == tries


def test_waiting_for_the_rate_limit_is_left_to_the_budget() -> None:
    moments = virtual.run(spent(retry.rate_limited, lambda _try: RateLimited("later")))
    assert set(moments) == {0.0}


def test_back_off_is_full_jitter_under_a_doubling_cap_of_30_s() -> None:
    caps = [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    failed = Unavailable("gone", tries=len(caps) + 1)
    runs = [virtual.run(spent(transient, lambda _: failed)) for _ in range(40)]
    for number, cap in enumerate(caps):
        waits = [moments[number + 1] - moments[number] for moments in runs]
        assert max(waits) <= cap + 1e-6
        # Spread over the whole of it: of 40 draws some lie in the lower and the upper half.
        assert min(waits) < cap / 2 < max(waits)


def test_the_failure_at_hand_says_how_often() -> None:
    """A broken page (2 tries) after a refused connection (6) is the second try already."""
    failures = [Unavailable("gone", tries=6), Unavailable("broken", tries=2)]
    moments = virtual.run(spent(transient, lambda number: failures[number - 1]))
    assert len(moments) == 2


@pytest.mark.parametrize(
    "error", [AccessDenied("no"), ContractBroken("no"), RateLimited("no"), ValueError("a defect")]
)
def test_what_will_not_pass_is_not_asked_again(error: Exception) -> None:
    assert virtual.run(spent(transient, lambda _try: error)) == [0.0]


def test_success_ends_it() -> None:
    async def main() -> tuple[int, str]:
        async for attempt in transient():
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


@given(st.floats(0, 300), st.integers(2, 6))
def test_what_says_when_is_not_asked_earlier_nor_much_later(wait: float, tries: int) -> None:
    failed = Unavailable("gone", tries=tries, wait=wait)
    moments = virtual.run(spent(transient, lambda _: failed))
    assert len(moments) == tries
    for earlier, later in pairwise(moments):
        assert wait - 1e-9 <= later - earlier <= wait + 0.1 + 1e-9


ENDS = [
    (
        Unavailable("no connection to HOST:443"),
        r"^no connection to HOST:443 after 6 tries in \d+ s$",
    ),
    (
        Unavailable("service unavailable (503)", wait=8.0, said="being maintained"),
        r"^service unavailable \(503\) after 6 tries in 40 s: being maintained$",
    ),
    (Unavailable("page lost", tries=2, wait=1.0), r"^page lost after 2 tries in 1 s$"),
]


@pytest.mark.parametrize(("failed", "words"), ENDS)
def test_the_end_says_how_often_and_how_long(failed: Unavailable, words: str) -> None:
    with pytest.raises(Unavailable, match=words) as caught:
        virtual.run(asked(Quota(), failed))
    assert caught.value.__cause__ is None


async def asked(quota: Quota, failed: Unavailable) -> None:
    async for attempt in retry.transient(CLOCK, quota):
        with attempt:
            raise failed


def test_an_outage_spends_the_runs_retries_and_then_fails_at_once() -> None:
    quota = Quota()
    texts = []
    for _ in range(14):
        with pytest.raises(Unavailable) as caught:
            virtual.run(asked(quota, Unavailable("gone")))
        texts.append(str(caught.value))
    assert all("after 6 tries" in text for text in texts[:12])  # 12 x 5 retries
    assert {text[:16] for text in texts[12:]} == {"gone after 1 try"}
    assert "the run's 60 retries are spent" in texts[-1]


@given(st.lists(st.booleans(), max_size=600))
def test_five_successes_earn_a_retry_and_never_more_than_sixty(successes: list[bool]) -> None:
    quota, left = Quota(), Fraction(60)
    for success in successes:
        if success:
            quota.earn()
            left = min(left + Fraction(1, 5), Fraction(60))
        elif not quota.spent:
            quota.take()
            left -= 1
        assert quota.spent == (left < 1)


LONG = [
    (429, 3600.0, "429 on /v2/usage: server asks to wait 3,600 s; run ends resumable at 01:00 UTC"),
    (503, 301.0, "503 on /v2/usage: server asks to wait 301 s; run ends resumable at 00:05 UTC"),
    (429, 1e5, "wait 100,000 s; run ends resumable at 03:46 on 02 January 2026 UTC"),
]


@pytest.mark.parametrize(("status", "wait", "words"), LONG)
def test_for_longer_than_five_minutes_no_run_waits(status: int, wait: float, words: str) -> None:
    failed = retry.failure(problem(status, wait), EPOCH)
    assert isinstance(failed, Postponed)
    assert str(failed).endswith(words)
    assert failed.until == EPOCH + timedelta(seconds=wait)


@pytest.mark.parametrize(("status", "error"), [(429, RateLimited), (503, Unavailable)])
def test_five_minutes_are_waited(status: int, error: type[ServiceError]) -> None:
    assert type(retry.failure(problem(status, 300), EPOCH)) is error
    assert type(retry.failure(problem(status, 0), EPOCH)) is error


LOCKED = [
    ("the token is invalid", None, "^token rejected: check audience and client "),
    ("the token is invalid", 4120, "^access ended after 4,120 rows "),
    ("API access is not active for this organization", None, "^401 on /v2/usage: "),
]


@pytest.mark.parametrize(("detail", "rows", "words"), LOCKED)
def test_what_a_401_means(detail: str, rows: int | None, words: str) -> None:
    failed = retry.locked_out(
        Problem(401, "/v2/usage", "Unauthorized", detail, None), rows, REJECTED
    )
    assert re.match(words, str(failed))
    assert detail in str(failed)
