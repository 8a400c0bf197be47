"""The rule alone: what rows allow, and that no service with an exact window could refuse it."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.rate_limit.policy import (
    LEAD,
    MARGIN,
    LimitState,
    RoundTrips,
    Row,
    Share,
    next_slot,
    ours_in_window,
)

SHARE = Share("us", 5, 1.0, 0.0)
TIMES = st.floats(0, 10)
CREDITS = st.floats(0, 2)


@st.composite
def rows(draw: st.DrawFn) -> Row:
    kind = draw(st.sampled_from(["waits", "sent", "answered", "failed"]))
    owner = draw(st.sampled_from(["us", "them"]))
    if kind == "waits":
        return Row(1, owner)
    sent, trip = draw(TIMES), draw(st.floats(0, 3))
    if kind == "sent":
        return Row(1, owner, sent)
    held_until = sent + trip + 1 + MARGIN
    if kind == "failed":
        return Row(1, owner, sent, None, held_until)
    return Row(1, owner, sent, sent + trip, held_until, draw(CREDITS))


QUEUES = st.lists(rows(), max_size=12)
SHARES = st.builds(Share, st.just("us"), st.integers(1, 6), st.just(1.0), CREDITS, st.just(0.0))


@settings(max_examples=50)
@given(QUEUES, SHARES, TIMES)
def test_a_request_is_sent_when_fewer_than_the_limit_are_held(
    ahead: list[Row], share: Share, now: float
) -> None:
    due = next_slot(LimitState(ahead, share), now)
    assert due >= now
    is_open = [row.held_until is None for row in ahead]
    releases = [row.held_until - share.credit_for(row) for row in ahead if row.held_until]
    if due <= now + LEAD:  # then it is exact, and a slot is taken
        assert sum(is_open) + sum(each > due for each in releases) < share.limit
        if due > now:
            assert sum(is_open) + sum(each >= due for each in releases) >= share.limit


@settings(max_examples=50)
@given(QUEUES, SHARES, TIMES, st.data())
def test_looking_again_is_never_too_late(
    ahead: list[Row], share: Share, now: float, data: st.DataObject
) -> None:
    due = next_slot(LimitState(ahead, share), now)
    later = []
    for row in ahead:
        answered = now + data.draw(st.floats(0, 1))
        if row.held_until is None:
            held_until = answered + 1 + MARGIN
            answer = replace(
                row, sent_at=now, answered_at=answered, held_until=held_until, credit=2
            )
            later.append(answer)
        else:
            later.append(row)
    assert next_slot(LimitState(later, share), now) >= min(due, now + share.window) - 1e-9


@settings(max_examples=50)
@given(QUEUES, SHARES, TIMES, st.tuples(st.floats(0, 5), TIMES, st.floats(0.1, 2)))
def test_neither_a_block_nor_spacing_is_undercut(
    ahead: list[Row], share: Share, now: float, limits: tuple[float, float, float]
) -> None:
    block, last_sent_at, spacing = limits
    spaced = replace(share, spacing=spacing)
    due = next_slot(LimitState(ahead, spaced, now + block, last_sent_at), now)
    assert due >= now + block
    assert due >= last_sent_at + spacing
    assert due >= next_slot(LimitState(ahead, share), now)


@settings(max_examples=50)
@given(QUEUES, SHARES, TIMES)
def test_a_failed_request_and_one_of_a_cautious_process_get_no_credit(
    ahead: list[Row], share: Share, now: float
) -> None:
    for row in ahead:
        assert share.credit_for(row) <= (0 if row.answered_at is None else share.credit)
        if row.owner == "them":
            assert share.credit_for(row) <= row.credit
    strict = next_slot(LimitState(ahead, replace(share, credit=0.0)), now)
    assert strict >= next_slot(LimitState(ahead, share), now)


@settings(max_examples=50)
@given(st.lists(st.floats(0, 5), max_size=400))
def test_the_credit_stays_below_the_shortest_round_trip(trips: list[float]) -> None:
    known = RoundTrips()
    for trip in trips:
        known.add(trip)
    last = trips[-300:]
    if len(last) < 10:
        assert known.credit() == 0
    else:
        assert 0 <= known.credit() <= max(0, min(last) - MARGIN, min(last) * (1 - 2 / len(last)))


CREDIT_AFTER = [  # round trips, credit
    ([0.4] * 9, 0.0),
    ([0.4] * 10, 0.32),
    ([0.4] * 100, 0.392),
    ([0.4] * 300, 0.4 - 2 * 0.4 / 300),
    ([0.003] * 100, 0.001),
    ([0.4] * 50 + [0.5] * 250, 0.4 - (0.5 + 8 / 300) * 0.1),
    ([0.1] + [0.4] * 300, 0.4 - 2 * 0.4 / 300),  # the oldest is forgotten
]


@pytest.mark.parametrize(("trips", "credit"), CREDIT_AFTER)
def test_credit_grows_with_the_number_of_round_trips(trips: list[float], credit: float) -> None:
    known = RoundTrips()
    for trip in trips:
        known.add(trip)
    assert known.credit() == pytest.approx(credit)


def test_what_an_answer_may_count_is_what_may_have_arrived_in_its_window() -> None:
    answered = [
        Row(n, "us", sent, sent + 0.1, sent + 0.1 + 1 + MARGIN)
        for n, sent in enumerate((0.0, 0.95, 1.5, 2.0, 2.2))
    ]
    under_way = [Row(6, "us", 0.5), Row(7, "us", 2.05), Row(8, "us", 2.2), Row(9, "us")]
    # Asked at 2.0, answered at 2.1: 0.95 was answered at 1.05, 2.2 was sent later.
    assert ours_in_window(answered + under_way, 2.0, 2.1, SHARE) == 5


class Run:
    """One process that always wants to send, over a path with jitter; the service counts."""

    def __init__(self, seed: int, latency: float, jitter: float, requests: int) -> None:
        self._chance = random.Random(seed)
        self._latency, self._jitter = latency, jitter
        self._requests = requests
        self._trips = RoundTrips()
        self._rows: dict[int, Row] = {}
        self.arrivals: list[float] = []

    def play(self) -> None:
        """Send all requests, each as early as allowed."""
        now, answers = 0.0, list[tuple[float, Row, float]]()
        for number in range(self._requests):
            while True:
                for each in [a for a in answers if a[0] <= now]:
                    answers.remove(each)
                    self._hear(*each)
                share = replace(SHARE, credit=self._trips.credit())
                due = next_slot(LimitState(list(self._rows.values()), share), now)
                if due <= now:
                    break
                now = min([due, *(a[0] for a in answers)])
            row = self._rows[number] = Row(number, "us", now)
            arrival = now + self._way()
            self.arrivals.append(arrival)
            answers.append((arrival + self._way(), row, now))
            self._rows = {n: r for n, r in self._rows.items() if (r.held_until or now) >= now - 1}

    def _way(self) -> float:
        return self._latency / 2 + self._chance.uniform(0, self._jitter)

    def _hear(self, at: float, row: Row, sent: float) -> None:
        self._trips.add(at - sent)
        self._rows[row.number] = replace(row, answered_at=at, held_until=at + 1 + MARGIN, credit=9)

    @property
    def most(self) -> int:
        """The most arrivals in any window of one second, both ends included."""
        ordered = sorted(self.arrivals)
        return max(
            sum(at <= each <= at + 1 for each in ordered[n : n + 10])
            for n, at in enumerate(ordered)
        )


AT_MOST = [  # latency, jitter of each way, seconds over 19 windows of 100 requests: exact bounds
    (0.0, 0.0, 1.003),
    (0.15, 0.0, 1.04),
    (0.4, 0.0, 1.08),
    (0.15, 0.03, 1.11),
    (0.4, 0.08, 1.24),
]


@pytest.mark.parametrize(("latency", "jitter", "at_most"), AT_MOST)
def test_no_window_has_too_many_arrivals_and_few_are_missing(
    latency: float, jitter: float, at_most: float
) -> None:
    runs = [Run(seed, latency, jitter, 100) for seed in range(2)]
    for run in runs:
        run.play()
        assert run.most <= 5
        assert max(run.arrivals) - min(run.arrivals) <= 19 * at_most + jitter


@settings(max_examples=10)
@given(st.integers(0, 10**9), st.floats(0, 3), st.floats(0, 0.5))
def test_any_path_is_kept(seed: int, latency: float, share: float) -> None:
    run = Run(seed, latency, latency * share / 2, 60)
    run.play()
    assert run.most <= 5


@pytest.mark.long
@pytest.mark.parametrize("latency", [0.02, 0.15, 0.4])
@pytest.mark.parametrize("share", [0.1, 0.4, 1.0])
def test_no_window_has_too_many_arrivals_in_many_runs(latency: float, share: float) -> None:
    for seed in range(100):
        run = Run(seed, latency, latency * share / 2, 300)
        run.play()
        assert run.most <= 5, (seed, latency, share)
