"""Runs a coroutine until it ends, or the process is asked to stop."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from pipelines.core import stop

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine; return its result. A request to stop cancels it, whatever it waits for.

    Raises KeyboardInterrupt then, and otherwise what the coroutine raises.
    """
    try:
        return asyncio.run(_stoppable(work))
    except BaseException:
        stop.raise_if_requested()
        raise


async def _stoppable(work: Coroutine[Any, Any, T]) -> T:
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)

    # It is called between any two instructions, also inside the event loop's own code.
    def cancel() -> None:
        loop.call_soon_threadsafe(task.cancel)

    with stop.woken(cancel):
        return await task
