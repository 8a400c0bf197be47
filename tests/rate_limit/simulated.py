"""An exact service and its clients in virtual time, in which an hour of waiting takes no time."""

import asyncio
import math
import random
import selectors
from collections.abc import Awaitable
from dataclasses import dataclass, field

from pipelines.core.clock import Clock
from pipelines.metadata.engine import Metadata
from pipelines.rate_limit.known_pause import Pause
from pipelines.rate_limit.limiter import LimitOptions, RateLimiter, Slot

EPOCH = 1_790_000_000.0  # Unix seconds at which a simulation begins
WINDOW, TOO_MANY = 1.0, 429


class _Leap(selectors.SelectSelector):
    """Waits for nothing: lets the time pass that it was asked to wait."""

    now = 1000.0  # it goes on from one simulation to the next

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("deadlock: every task waits for another")
        _Leap.now += max(0.0, timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time."""

    def __init__(self) -> None:
        super().__init__(_Leap())

    def time(self) -> float:
        return _Leap.now


def now() -> float:
    """Return the seconds of the simulations."""
    return _Leap.now


async def seconds_of(work: Awaitable[None]) -> float:
    """Wait for something; return how many seconds that took."""
    begun = now()
    await work
    return now() - begun


class VirtualClock(Clock):
    """The clock of a simulated machine; `offset` is how far it was set, in seconds.

    On a busy machine up to `stall` seconds pass after each reading.
    """

    offset = started_at = stall = 0.0
    chance = random.Random(0)

    def time(self) -> float:
        return EPOCH + now() + self.offset

    def monotonic(self) -> float:
        read = now() - self.started_at
        _Leap.now += self.chance.uniform(0, self.stall)
        return read

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds + 1e-9)  # a shorter time would not pass at all


class VirtualMetadata(Metadata):
    """A metadata database on a machine that can be restarted."""

    clock_name = "first start"


@dataclass
class Service:
    """An exact sliding window for one actor. It refuses all before `storm`, for 3 s each time."""

    limit: int = 5
    storm: float = 0.0
    always_full: bool = False  # it says so
    admitted: list[tuple[float, str]] = field(default_factory=list)
    refused: list[tuple[float, str]] = field(default_factory=list)
    early: int = 0  # requests of ours sent before the Retry-After of a 429 heard by then
    free_from: float = 0.0

    def arrive(self, who: str) -> tuple[int, dict[str, str]]:
        """Count an arrival; return status and headers."""
        window = [at for at, _ in self.admitted[-self.limit :] if now() - at <= WINDOW]
        is_refused = len(window) >= self.limit or now() < self.storm
        (self.refused if is_refused else self.admitted).append((now(), who))
        headers = {"x-ratelimit-limit": str(self.limit), "x-ratelimit-reset": "1"}
        if is_refused:
            seconds = 3 if now() < self.storm else math.ceil(window[0] + WINDOW - now())
            headers |= {"x-ratelimit-remaining": "0", "retry-after": str(max(1, seconds))}
            return TOO_MANY, headers
        remaining = 0 if self.always_full else self.limit - len(window) - 1
        return 200, headers | {"x-ratelimit-remaining": str(remaining)}

    def moments(self, since: float = 0.0) -> list[float]:
        return [at for at, _ in self.admitted if at >= since]

    def span(self) -> float:
        return self.admitted[-1][0] - self.admitted[0][0]


@dataclass
class World:
    """One actor: the service's count, the database and clock that processes share, the network."""

    metadata: VirtualMetadata
    actor: str
    clock: VirtualClock
    service: Service = field(default_factory=Service)
    latency: float = 0.0  # of both ways together, at least
    jitter: float = 0.0  # added at most, drawn anew each time
    options: LimitOptions = field(default_factory=LimitOptions)

    def process(self, owner: str = "", seed: int = 0) -> "Process":
        """Start a process; `owner` is the name of a real one that runs, else of this one."""
        limiter = RateLimiter(self.metadata, self.actor, self.clock, self.options)
        limiter._owner, limiter._pause = owner or limiter._owner, Pause()
        return Process(self, limiter, random.Random(seed))

    def restart(self) -> None:
        self.clock.started_at = now()
        self.metadata.clock_name = f"start at {now()}"


@dataclass
class Process:
    """One process of ours: a limiter of its own, and lists that it reads side by side."""

    world: World
    limiter: RateLimiter
    chance: random.Random

    async def ask(self, *, fails: bool = False, status: int | None = None) -> None:
        """Send one request; `status` replaces the answer's, `fails` loses the answer."""
        service, clock = self.world.service, self.world.clock
        slot = Slot()
        async with self.limiter.hold(slot):
            slot.sent_at = clock.time()
            service.early += now() < service.free_from
            await self._travel()
            arrived, (answered, headers) = now(), service.arrive(self.limiter._owner)
            await self._travel()
            if answered == TOO_MANY:
                seconds = int(headers["retry-after"])
                service.free_from = max(service.free_from, arrived + seconds)
                self.limiter.share_pause(seconds)
            if not fails:
                slot.answered_at = clock.time()
                slot.status, slot.headers = status or answered, headers

    async def _travel(self) -> None:
        jitter = self.chance.uniform(0, self.world.jitter)
        await asyncio.sleep((self.world.latency + jitter) / 2)

    async def ask_together(self, requests: int = 5) -> None:
        await asyncio.gather(*(self.ask() for _ in range(requests)))

    async def read(self, requests: int) -> None:
        """Read one list, with pages ahead as far as the limiter has room."""
        under_way: set[asyncio.Task[None]] = set()
        for _ in range(requests):
            while under_way and not self.limiter.spare():
                _, under_way = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
            under_way.add(asyncio.create_task(self.ask()))
            await asyncio.sleep(0)
        await asyncio.gather(*under_way)

    async def read_lists(self, requests: int) -> None:
        """Read three lists side by side, `requests` in all."""
        await asyncio.gather(*(self.read(requests // 3) for _ in range(3)))
