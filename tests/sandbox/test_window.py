"""The sliding window's arithmetic, on any schedule: never more than it may, and never less.

Not here: HTTP, keys and headers (test_limits).
"""

from hypothesis import given
from hypothesis import strategies as st

from sandbox.statistics import Tally
from sandbox.window import NANOSECONDS, SlidingWindow

LENGTH = NANOSECONDS // 2
# Gaps of any size, with those around the window's edge made likely.
GAPS = st.one_of(
    st.integers(0, 2 * LENGTH),
    st.sampled_from([0, 1, LENGTH - 1, LENGTH, LENGTH + 1]),
    st.integers(0, LENGTH // 4),
)
SCHEDULES = st.lists(GAPS, max_size=60)


def arrivals(gaps: list[int]) -> list[int]:
    times = [10 * NANOSECONDS]
    for gap in gaps:
        times.append(times[-1] + gap)
    return times


@given(SCHEDULES, st.integers(1, 6))
def test_no_closed_interval_holds_more_than_the_limit(gaps: list[int], limit: int) -> None:
    window = SlidingWindow(0.5)
    admitted = [now for now in arrivals(gaps) if window.admit("a", limit, now).admitted]
    for first, one_more in zip(admitted, admitted[limit:], strict=False):
        assert one_more - first > LENGTH


@given(SCHEDULES, st.integers(1, 6))
def test_only_a_full_window_refuses(gaps: list[int], limit: int) -> None:
    window = SlidingWindow(0.5)
    admitted: list[int] = []
    for now in arrivals(gaps):
        verdict = window.admit("a", limit, now)
        held = sum(now - one <= LENGTH for one in admitted)
        assert verdict.admitted is (held < limit)
        admitted += [now] if verdict.admitted else []
        assert verdict.remaining == limit - held - verdict.admitted


@given(SCHEDULES, st.integers(1, 6))
def test_waiting_as_told_always_finds_room(gaps: list[int], limit: int) -> None:
    window = SlidingWindow(0.5)
    now = 0
    for gap in gaps:
        now += gap
        verdict = window.admit("a", limit, now)
        if not verdict.admitted:
            now += verdict.retry_after * NANOSECONDS
            assert window.admit("a", limit, now).admitted


@given(SCHEDULES)
def test_the_statistics_find_the_fullest_window(gaps: list[int]) -> None:
    tally = Tally()
    times = arrivals(gaps)
    for now in times:
        tally.admit(now, LENGTH)
    assert tally.most == max(sum(0 <= one - now <= LENGTH for one in times) for now in times)


def test_forgotten_keys_are_only_those_with_an_empty_window() -> None:
    window = SlidingWindow(0.5)
    for number in range(5000):
        window.admit(str(number), 1, number)
    assert not window.admit("4999", 1, 5000).admitted
    later = 5000 + LENGTH
    assert window.admit("4999", 1, later).admitted
