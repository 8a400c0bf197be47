"""Real processes at the same time: what virtual time cannot show. Nothing rests on their speed."""

import asyncio
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import chain, repeat
from multiprocessing import get_context
from pathlib import Path

import pytest

from pipelines.core.clock import Clock
from pipelines.metadata.engine import Metadata
from pipelines.rate_limit.limiter import LimitOptions, RateLimiter, Slot

OPTIONS = LimitOptions(window_seconds=0.1)


def contend(file: Path, url: str | None) -> list[float]:
    """Send 60 requests that are answered at once; return when they arrived."""

    async def ask(limiter: RateLimiter) -> float:
        slot = Slot()
        async with limiter.hold(slot):
            slot.sent_at, arrived = time.time(), time.monotonic()
            slot.answered_at, slot.status = time.time(), 200
        return arrived

    async def main() -> list[float]:
        limiter = RateLimiter(Metadata.open(file, url), "contended", Clock(), OPTIONS)
        return await asyncio.gather(*(ask(limiter) for _ in range(60)))

    return asyncio.run(main())


def check_contention(files: list[Path], url: str | None = None) -> None:
    """Let a process contend for each metadata file; judge what a service would have seen."""
    with ProcessPoolExecutor(len(files), get_context("spawn")) as pool:
        arrivals = sorted(chain.from_iterable(pool.map(contend, files, repeat(url))))
    assert len(arrivals) == 60 * len(files)
    pairs = zip(arrivals, arrivals[OPTIONS.limit :], strict=False)
    assert all(later - one > OPTIONS.window_seconds for one, later in pairs)


@pytest.mark.long
def test_real_processes_never_exceed_the_limit_together(tmp_path: Path) -> None:
    check_contention([tmp_path / "metadata.db"] * 4)
