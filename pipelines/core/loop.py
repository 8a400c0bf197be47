"""Runs a coroutine until it ends, or the process is asked to stop."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from pipelines.core import stop

T = TypeVar("T")
P = ParamSpec("P")


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


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that waits for disks or servers in a thread; other tasks go on meanwhile.

    If this task is cancelled, it ends when the call has: nothing is still done behind its back.
    """
    call = asyncio.ensure_future(asyncio.to_thread(function, *args, **kwargs))
    try:
        return await asyncio.shield(call)
    except asyncio.CancelledError:
        await asyncio.wait([call])
        raise
