"""What is remembered of other clients and of 429s, and when a clock was set."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.rate_limit.headers import RateHeaders
from pipelines.rate_limit.memory import Answer, Memory, learn
from pipelines.rate_limit.steps import ClockSteps

NOW = 1000.0


def answer(remaining: int | None, ours: int | None, *, refused: bool = False) -> Answer:
    return Answer(NOW - 0.1, refused, RateHeaders(5, remaining), ours)


def test_two_sightings_count_for_45_seconds_and_one_for_a_moment() -> None:
    memory = Memory().with_others(3, NOW, refused=False)
    assert [memory.others_seen(NOW + later) for later in (0, 3, 3.5, 40)] == [3, 3, 0, 0]
    memory = memory.with_others(2, NOW + 1, refused=False)
    assert [memory.others_seen(NOW + later) for later in (0, 3, 3.5, 40, 46)] == [3, 3, 2, 2, 0]


def test_a_429_counts_for_a_moment_only() -> None:
    memory = Memory()
    for second in range(5):
        memory = memory.with_others(4, NOW + second, refused=True)
    assert memory.others_seen(NOW + 4) == 4
    assert memory.others_seen(NOW + 8) == 0


@given(
    st.lists(st.tuples(st.integers(0, 9), st.floats(0, 60), st.booleans())),
    st.integers(1, 20),
    st.sampled_from([0.5, 1.0, 10.0]),
)
def test_one_request_a_second_remains(
    sightings: list[tuple[int, float, bool]], limit: int, window: float
) -> None:
    memory = Memory()
    for count, later, refused in sightings:
        memory = memory.with_others(count, NOW + later, refused=refused)
    for later in (0, 10, 60):
        reserve = memory.reserve(limit, window, NOW + later)
        assert 0 <= reserve <= max(0, limit - max(1, window))


ANSWERS = [  # remaining, ours, is it a 429: what is seen of others, is it a reason for caution
    (answer(2, 3), 0, False),
    (answer(1, 3), 1, False),
    (answer(2, 5), 0, False),
    (answer(None, 5), 0, False),
    (answer(0, None), 0, False),
    (answer(0, 2), 4, False),  # a full window: one more may have been refused
    (answer(0, 2, refused=True), 3, False),
    (answer(0, 5, refused=True), 0, True),
    (answer(None, 5, refused=True), 0, True),
    (answer(None, 3, refused=True), 0, False),
]


@pytest.mark.parametrize(("heard", "others", "is_cautious"), ANSWERS)
def test_what_an_answer_teaches(heard: Answer, others: int, *, is_cautious: bool) -> None:
    memory = learn(Memory(limit=5), heard, 5, NOW)
    assert (memory.others_seen(NOW), memory.is_cautious(NOW)) == (others, is_cautious)


def test_a_full_window_is_probed_once_while_others_are_remembered() -> None:
    memory = learn(Memory(), answer(0, 3), 5, NOW)
    assert memory.others_seen(NOW) == 3
    memory = learn(memory, answer(0, 3), 5, NOW + 10)
    assert memory.others_seen(NOW + 10) == 2
    assert learn(memory, answer(0, 2), 5, NOW + 11).others_seen(NOW + 11) == 4
    assert learn(memory, answer(0, 3), 5, NOW + 46).others_seen(NOW + 46) == 3


def test_each_incident_makes_caution_longer() -> None:
    memory, seconds, now = Memory(), [], NOW
    for _ in range(8):
        memory = memory.with_caution(now, now + 1)
        assert memory.with_caution(now, now + 2) == memory  # it was under way: the same incident
        seconds.append(memory.caution_seconds)
        now = memory.caution_until
        assert not memory.is_cautious(now)
    assert seconds == [60, 120, 240, 480, 960, 1920, 3600, 3600]
    assert memory.with_caution(now + 90000, now + 90000).caution_seconds == 60


def test_others_that_are_seen_at_once_explain_a_429() -> None:
    memory = Memory().with_caution(NOW, NOW)
    assert not memory.with_others(2, NOW + 3, refused=False).is_cautious(NOW + 3)
    assert memory.with_others(2, NOW + 3, refused=True).is_cautious(NOW + 3)
    assert memory.with_others(2, NOW + 6, refused=False).is_cautious(NOW + 6)


def test_a_clock_set_back_does_not_prolong_what_is_remembered() -> None:
    memory = Memory().with_caution(NOW, NOW).with_others(3, NOW, refused=False)
    assert memory.others_seen(NOW - 3600) == 0
    assert not memory.is_cautious(NOW - 7200)
    assert memory.with_others(1, NOW - 3600, refused=False).others == ((NOW - 3600, 1),)


def test_the_longest_block_holds_for_at_most_seven_days() -> None:
    memory = Memory().with_block(NOW + 100, NOW).with_block(NOW + 50, NOW)
    assert memory.blocked_until == NOW + 100
    assert memory.with_block(1e12, NOW).blocked_until == NOW + 7 * 86400
    assert replace(memory, blocked_until=0.0).with_block(NOW, NOW).blocked_until == NOW


@given(st.lists(st.tuples(st.floats(0.01, 100), st.floats(0, 0.5), st.floats(0, 0.5))))
def test_slow_readings_are_no_steps(readings: list[tuple[float, float, float]]) -> None:
    steps, monotonic = ClockSteps(), 5.0
    for pause, before, after in readings:
        monotonic += pause
        assert not steps.observe(monotonic, monotonic + before + 1e9, monotonic + before + after)
        monotonic += before + after


@given(st.floats(0, 1), st.one_of(st.floats(2.01, 1e6), st.floats(-1e6, -2.01)))
def test_a_step_is_noticed_once(delay: float, step: float) -> None:
    steps = ClockSteps()
    assert not steps.observe(10, 1e9 + 10 + delay, 10 + delay)
    assert steps.observe(20, 1e9 + 20 + step, 20 + delay)
    assert not steps.observe(30, 1e9 + 30 + step, 30 + delay)
    assert steps.count == 1
