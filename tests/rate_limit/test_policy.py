"""Rules alone: what slots allow, which no exact window refuses, and what is remembered."""

import math
import random
from collections import deque
from dataclasses import replace

import pytest

from pipelines.metadata.tables import RateLimitActor, RateLimitSlot
from pipelines.rate_limit import actor_state
from pipelines.rate_limit.actor_state import expected_others
from pipelines.rate_limit.policy import MARGIN, Allowance, count_ours, credit_of, next_moment
from tests.effort import EFFORT

ALLOWANCE = Allowance("us", 5, 1.0, 0.0)
NOW, DAY = 1000.0, 86400.0


def slot(number: int, sent_at: float | None = None, answered: float | None = None) -> RateLimitSlot:
    """Return a slot that waits, is unanswered, or answered."""
    made = RateLimitSlot(actor="actor", owner="us", sent_at=sent_at, credit=0.0)
    made.number = made.place = number
    made.held_until = answered and answered + 1 + MARGIN
    return made


def test_those_who_came_before_count_and_what_may_have_arrived_in_a_window() -> None:
    queue = [slot(number) for number in range(1, 8)]
    due = [next_moment(queue, (each.place, each.number), ALLOWANCE, NOW) for each in queue]
    assert [each == NOW for each in due] == [True] * 5 + [False] * 2
    answered = [slot(1, at, at + 0.1) for at in (0.0, 0.95, 1.5, 2.0, 2.2)]
    under_way = [slot(6, 0.5), slot(7, 2.05), slot(8, 2.2), slot(9)]
    # Sent at 2.0, answered at 2.1: 0.95 was answered at 1.05, 2.2 was sent later.
    assert count_ours(answered + under_way, 0.1, ALLOWANCE, 2.1) == 5


CREDIT_AFTER = [  # round trips, credit
    ([0.4] * 9, 0.0),
    ([0.4] * 10, 0.32),
    ([0.4] * 300, 0.4 - 2 * 0.4 / 300),
    ([0.003] * 100, 0.001),
    ([0.001] * 100, 0.0),
    ([0.4] * 50 + [0.5] * 250, 0.4 - (0.5 + 8 / 300) * 0.1),
]


@pytest.mark.parametrize(("trips", "credit"), CREDIT_AFTER)
def test_credit_grows_with_the_number_of_round_trips(trips: list[float], credit: float) -> None:
    assert credit_of(trips) == pytest.approx(credit)


class Run:
    """One process that always wants to send, over a path with jitter; the service counts."""

    def __init__(self, seed: int, latency: float, jitter: float, requests: int) -> None:
        chance, trips = random.Random(seed), deque[float](maxlen=300)
        self.arrivals: list[float] = []
        now, answers, slots = 0.0, list[tuple[float, RateLimitSlot]](), list[RateLimitSlot]()
        for _ in range(requests):
            while True:
                for answered_at, each in [a for a in answers if a[0] <= now]:
                    answers.remove((answered_at, each))
                    trips.append(answered_at - (each.sent_at or 0.0))
                    each.held_until, each.credit = answered_at + 1 + MARGIN, 9.0
                slots = [each for each in slots if (each.held_until or now) >= now - 1]
                due = next_moment(
                    slots, (math.inf, 0), replace(ALLOWANCE, credit=credit_of(trips)), now
                )
                if due <= now:
                    break
                now = min([due, *(answered_at for answered_at, _ in answers)])
            there, back = (latency / 2 + chance.uniform(0, jitter) for _ in range(2))
            slots.append(slot(1, now))
            self.arrivals.append(now + there)
            answers.append((now + there + back, slots[-1]))

    @property
    def is_within_limit(self) -> bool:
        """Whether no six requests arrive in one second, both ends included."""
        ordered = sorted(self.arrivals)
        return all(b - a > 1 for a, b in zip(ordered, ordered[5:], strict=False))


AT_MOST = [  # latency, jitter of each way, seconds over 19 windows of 100 requests: exact bounds
    (0.0, 0.0, 1.003),
    (0.15, 0.0, 1.04),
    (0.4, 0.0, 1.08),
    (0.15, 0.03, 1.11),
    (0.4, 0.08, 1.24),
    (2.5, 0.5, 4.0),
]


@pytest.mark.parametrize(("latency", "jitter", "at_most"), AT_MOST)
def test_no_window_has_too_many_arrivals_and_few_are_missing(
    latency: float, jitter: float, at_most: float
) -> None:
    for seed in range(2):
        run = Run(seed, latency, jitter, 100)
        assert run.is_within_limit
        assert max(run.arrivals) - min(run.arrivals) <= 19 * at_most + jitter


@pytest.mark.long
@pytest.mark.parametrize("latency", [0.02, 0.15, 0.4])
@pytest.mark.parametrize("share", [0.1, 0.4, 1.0])
def test_no_window_has_too_many_arrivals_in_many_runs(latency: float, share: float) -> None:
    for seed in range(15 * EFFORT):
        assert Run(seed, latency, latency * share / 2, 300).is_within_limit, seed


def test_two_sightings_count_for_45_seconds_and_one_for_a_moment() -> None:
    known = RateLimitActor(actor="actor")
    moments = [NOW + later for later in (1, 3, 3.5, 40, 46)]
    actor_state.see_others(known, 3, NOW, is_full=False)
    assert [expected_others(known, at) for at in moments] == [3, 3, 0, 0, 0]
    for count in (2, 1):
        actor_state.see_others(known, count, NOW + 1, is_full=False)
    assert [expected_others(known, at) for at in moments] == [3, 3, 2, 2, 0]


def test_a_full_window_is_probed_once_while_others_are_remembered() -> None:
    known = RateLimitActor(actor="actor")
    seen = []
    for later, count in ((0, 2), (10, 2), (11, 3), (12, 3), (60, 2)):
        actor_state.see_others(known, count, NOW + later, is_full=True)
        seen.append(expected_others(known, NOW + later))
    assert seen == [3, 2, 4, 4, 3]


def test_each_incident_makes_caution_longer() -> None:
    known = RateLimitActor(actor="actor")
    seconds, now = [], NOW
    for _ in range(8):
        actor_state.be_cautious(known, now, now + 1)
        until = known.caution_until
        actor_state.be_cautious(known, now, now + 2)  # it was under way: the same incident
        assert known.caution_until == until == now + 1 + known.caution_seconds
        seconds.append(known.caution_seconds)
        now = until
    assert seconds == [60, 120, 240, 480, 960, 1920, 3600, 3600]
    actor_state.be_cautious(known, now + DAY + 1, now + DAY + 1)
    assert known.caution_seconds == 60


def test_the_longest_block_holds_seven_days_at_most_also_after_a_restart() -> None:
    known = RateLimitActor(actor="actor")
    for seconds, until in ((1e12, 7 * DAY), (50, 7 * DAY)):
        actor_state.pause(known, seconds, NOW, 1e9)
        assert known.blocked_until == NOW + until
    actor_state.be_cautious(known, NOW, NOW)
    for unix_now, remaining in ((1e9 + 400, 7 * DAY - 400), (1e9 + 8 * DAY, -DAY), (0, 7 * DAY)):
        actor_state.change_clock(known, "another", 5.0, unix_now)
        assert (known.clock, known.blocked_until) == ("another", 5.0 + remaining)
    actor_state.be_cautious(known, 6.0, 6.0)  # not the same incident
    assert known.caution_until == 66.0
