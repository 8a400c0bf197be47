"""A real process that uses the limiter in real time: prints when its requests arrived."""

import asyncio
import sys
import time
from pathlib import Path

from pipelines.core.clock import SystemClock
from pipelines.metadata.engine import Metadata
from pipelines.rate_limit.limiter import LimitOptions, RateLimiter

OPTIONS = LimitOptions(window_seconds=0.1)


async def _ask(limiter: RateLimiter) -> None:
    async with limiter.slot() as slot:
        slot.sent_at = time.time()
        sys.stdout.write(f"{time.monotonic_ns()}\n")
        slot.answered_at, slot.status = time.time(), 200


async def _main(file: Path, requests: int) -> None:
    limiter = RateLimiter(Metadata.open(file), "contended", SystemClock(), OPTIONS)
    await asyncio.gather(*(_ask(limiter) for _ in range(requests)))


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), int(sys.argv[2])))
