"""Virtual time: an event loop in which an hour of waiting takes no time, and its clock.

Nothing left to wait for while a task still waits is a deadlock, and raises.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any, TypeVar

from pipelines.clock import Clock

T = TypeVar("T")
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class _Leaping(selectors.SelectSelector):
    """Waits for nothing: lets the time pass that it was told to wait."""

    now = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("deadlock: every task waits for another")
        self.now += max(0.0, timeout)
        return super().select(0)


class Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._leaping = _Leaping()
        super().__init__(self._leaping)

    def run_in_executor(
        self, _executor: Executor | None, func: Callable[..., T], *args: object
    ) -> asyncio.Future[T]:
        """Do at once what a thread would do: it takes no time either."""
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001
            done.set_exception(error)
        return done

    def time(self) -> float:
        return self._leaping.now


def seconds() -> float:
    return asyncio.get_running_loop().time()


CLOCK = Clock(
    now=lambda: EPOCH + timedelta(seconds=seconds()), monotonic=seconds, sleep=asyncio.sleep
)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time."""
    with asyncio.Runner(loop_factory=Loop) as runner:
        return runner.run(main)


@dataclass
class Haste:
    """For tests over real sockets: real time, and waits that are noted and skipped."""

    waits: list[float] = field(default_factory=list)

    async def sleep(self, wait: float) -> None:
        self.waits.append(wait)
        await asyncio.sleep(0)

    @property
    def clock(self) -> Clock:
        return Clock(monotonic=lambda: monotonic() + sum(self.waits), sleep=self.sleep)
