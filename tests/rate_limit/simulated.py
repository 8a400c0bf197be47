"""A service and its clients in virtual time, in which an hour of waiting takes no time.

The service counts arrivals exactly. A clock can be set; the event loop's time is monotonic.
"""

import asyncio
import math
import random
import selectors
from collections import deque
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy.orm import Session
from sqlalchemy.pool import QueuePool

from pipelines.metadata.engine import Metadata
from pipelines.rate_limit.limiter import LimitOptions, RateLimiter

T = TypeVar("T")
EPOCH = 1_790_000_000.0  # Unix seconds at which a simulation begins
LIMIT, WINDOW = 5, 1.0
TOO_MANY = 429


class _Leap(selectors.SelectSelector):
    """Waits for nothing: lets the time pass that it was asked to wait."""

    now = 1000.0  # it goes on from one simulation to the next

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("deadlock: every task waits for another")
        _Leap.now += max(0.0, timeout)
        return super().select(0)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        super().__init__(_Leap())

    def time(self) -> float:
        return _Leap.now


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(main)


def now() -> float:
    """Return the monotonic seconds of the running simulation."""
    return asyncio.get_running_loop().time()


@dataclass
class VirtualClock:
    """The clock of a simulated machine; `offset` is how far it was set, in seconds."""

    offset: float = 0.0

    def time(self) -> float:
        return EPOCH + self.monotonic() + self.offset

    def monotonic(self) -> float:
        return now()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class VirtualMetadata(Metadata):
    """A metadata database whose processes share a virtual clock.

    `interruption`: seconds for which the machine does something else, before and after reading it.
    """

    clock: VirtualClock
    interruption: float = 0.0

    def now(self, session: Session) -> float:
        del session
        pool = self.engine.pool
        assert isinstance(pool, QueuePool)
        assert pool.checkedout(), "the time is read before the transaction has begun"
        _Leap.now += random.uniform(0, self.interruption)
        time = self.clock.time()
        _Leap.now += random.uniform(0, self.interruption)
        return time


@dataclass(frozen=True)
class Path:
    """Seconds of one way: at least `least`, up to `jitter` more, drawn anew each time."""

    least: float = 0.0
    jitter: float = 0.0

    def draw(self, chance: random.Random) -> float:
        return self.least + chance.uniform(0, self.jitter)


@dataclass
class Service:
    """An exact sliding window for one actor; moments are monotonic seconds.

    `storm` refuses every arrival before that moment and asks to wait `storm_seconds`.
    """

    limit: int = LIMIT
    storm: float = 0.0
    storm_seconds: int = 3
    admitted: list[tuple[float, str]] = field(default_factory=list)
    refused: list[tuple[float, str]] = field(default_factory=list)
    early: int = 0  # requests of ours sent before the Retry-After of a 429 heard by then
    free_from: float = 0.0
    _window: deque[float] = field(default_factory=deque)

    def arrive(self, who: str) -> tuple[int, dict[str, str]]:
        """Count an arrival; return status and headers."""
        now = asyncio.get_running_loop().time()
        while self._window and now - self._window[0] > WINDOW:
            self._window.popleft()
        is_full, is_storm = len(self._window) >= self.limit, now < self.storm
        if is_full or is_storm:
            self.refused.append((now, who))
            seconds = self.storm_seconds if is_storm else math.floor(self._reset(now)) + 1
            return TOO_MANY, self._headers(0) | {"Retry-After": str(seconds)}
        self._window.append(now)
        self.admitted.append((now, who))
        return 200, self._headers(self.limit - len(self._window))

    def count(self, who: str, since: float, until: float) -> int:
        """Count the arrivals of one client that were admitted."""
        return sum(by == who and since <= at < until for at, by in self.admitted)

    def span(self) -> float:
        """Return the seconds from the first to the last admitted arrival."""
        return self.admitted[-1][0] - self.admitted[0][0]

    def _reset(self, now: float) -> float:
        return self._window[0] + WINDOW - now if self._window else 0.0

    def _headers(self, remaining: int) -> dict[str, str]:
        return {
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(remaining),
            "X-RateLimit-Reset": "1",
        }


@dataclass
class World:
    """One actor: the service's count, the database and clock that processes share, the network."""

    metadata: VirtualMetadata
    actor: str
    service: Service = field(default_factory=Service)
    path: Path = field(default_factory=Path)
    options: LimitOptions = field(default_factory=LimitOptions)

    @property
    def clock(self) -> VirtualClock:
        return self.metadata.clock

    def process(self, owner: str = "", seed: int = 0) -> "Process":
        """Start a process; `owner` is the name of a real one that runs, else of this one."""
        return Process(self, owner, seed)


class Process:
    """One process of ours: a limiter of its own, and lists that it reads side by side."""

    def __init__(self, world: World, owner: str, seed: int) -> None:
        self.limiter = RateLimiter(world.metadata, world.actor, world.clock, world.options)
        self.limiter._shared.owner = owner or self.limiter._shared.owner
        self.name = self.limiter._shared.owner
        self._world = world
        self._chance = random.Random(seed)

    async def ask(self, *, fails: bool = False, status: int | None = None) -> None:
        """Send one request; `status` replaces the answer's, `fails` loses the answer."""
        service = self._world.service
        async with self.limiter.slot() as slot:
            slot.sent_at = self._world.clock.time()
            service.early += now() < service.free_from
            await self.travel()
            arrived, (answered, headers) = now(), service.arrive(self.name)
            await self.travel()
            if answered == TOO_MANY:
                service.free_from = max(service.free_from, arrived + int(headers["Retry-After"]))
            if fails:
                return
            slot.answered_at = self._world.clock.time()
            slot.status, slot.headers = status or answered, headers

    async def travel(self) -> None:
        """Wait as long as one way takes."""
        await asyncio.sleep(self._world.path.draw(self._chance))

    async def read(self, requests: int) -> None:
        """Read one list, with pages ahead as far as the limiter has room."""
        under_way: set[asyncio.Task[None]] = set()
        for _ in range(requests):
            while under_way and not self.limiter.spare():
                _, under_way = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
            under_way.add(asyncio.create_task(self.ask()))
            await asyncio.sleep(0)
        await asyncio.gather(*under_way)

    async def read_lists(self, requests: int, lists: int = 3) -> None:
        """Read lists side by side, `requests` in all."""
        await asyncio.gather(*(self.read(requests // lists) for _ in range(lists)))


async def send_evenly(world: World, interval: float, until: float) -> None:
    """Be another client of the actor, which sends whatever the answers say."""
    chance = random.Random(1)

    async def send() -> None:
        await asyncio.sleep(world.path.draw(chance))
        world.service.arrive("other")

    async with asyncio.TaskGroup() as group:
        while now() < until:
            group.create_task(send())
            await asyncio.sleep(interval)
