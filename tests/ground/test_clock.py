"""The system's clock: aware, never going back; and the tests' own, which takes no time."""

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from time import monotonic

from pipelines.clock import SYSTEM, beginning
from tests import virtual
from tests.virtual import CLOCK, Haste


def test_now_is_aware_and_in_utc() -> None:
    assert SYSTEM.now().tzinfo is UTC


def test_monotonic_never_goes_back() -> None:
    moments = [SYSTEM.monotonic() for _ in range(1000)]
    assert all(before <= after for before, after in pairwise(moments))


def test_sleep_waits() -> None:
    async def main() -> float:
        begun = SYSTEM.monotonic()
        await SYSTEM.sleep(0.01)
        return SYSTEM.monotonic() - begun

    assert asyncio.run(main()) >= 0.009


def test_an_hour_of_virtual_time_takes_none() -> None:
    async def main() -> tuple[float, timedelta]:
        began, moment = CLOCK.monotonic(), CLOCK.now()
        await asyncio.gather(*(CLOCK.sleep(seconds) for seconds in (3600, 60, 1800)))
        return CLOCK.monotonic() - began, CLOCK.now() - moment

    begun = monotonic()
    assert virtual.run(main()) == (3600, timedelta(hours=1))
    assert monotonic() - begun < 5


def test_haste_skips_waits_and_counts_them() -> None:
    haste = Haste()

    async def main() -> float:
        begun = haste.clock.monotonic()
        await haste.clock.sleep(3600)
        return haste.clock.monotonic() - begun

    assert 3600 <= asyncio.run(main()) < 3605
    assert haste.waits == [3600]


def test_a_rehearsal_shifts_dates_and_nothing_else() -> None:
    moment = datetime(2031, 1, 1, 2, tzinfo=UTC)
    clock = beginning(moment)
    assert moment <= clock.now() < moment + timedelta(seconds=5)
    assert abs(clock.wall() - SYSTEM.now()) < timedelta(seconds=5)
    assert (clock.monotonic, clock.sleep) == (SYSTEM.monotonic, SYSTEM.sleep)
    assert abs(SYSTEM.wall() - datetime.now(UTC)) < timedelta(seconds=5)
