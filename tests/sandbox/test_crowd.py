"""200 clients at once that never wait: nobody gets more than the limit, nothing fails.

Three seconds of what ``python -m benchmarks crowd`` does for thirty.
"""

import pytest

from benchmarks.crowd import ACTORS, gathered

SECONDS = 3.0


@pytest.mark.trial
def test_a_crowd_never_exceeds_the_window_and_breaks_nothing() -> None:
    seen = gathered(SECONDS)
    assert seen.failures == 0
    assert seen.most <= 5
    assert ACTORS // 2 < len(seen.counted["callers"]) <= ACTORS  # a busy machine is slow to begin
    addresses = seen.counted["unauthenticated"].values()
    assert max(one["most_admitted_in_any_window"] for one in addresses) == 1
    for one in seen.counted["callers"].values():
        # Of the server's own clock: a busy machine makes the crowd take longer.
        windows = int(one["last_admitted"] - one["first_admitted"]) + 1
        assert one["admitted"] <= 5 * windows
    assert min(seen.statuses[status] for status in (200, 401, 404, 429)) > 0
    assert seen.end < seen.warm + 15
