"""Latency: the wire between client and server, half of it before admission and half after.

Here: the delay of each way. Not here: anything that looks at the request.
"""

import random

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sandbox.clock import Clock
from sandbox.options import Delay


class Latency:
    """An ASGI layer that delays each request's arrival and each answer's start."""

    def __init__(self, app: ASGIApp, delay: Delay, seed: int, clock: Clock) -> None:
        self._app = app
        self._clock = clock
        self._one_way = delay.latency_ms / 2000
        self._jitter = delay.jitter_ms / 1000
        self._chance = random.Random(seed)  # noqa: S311 - repeatable on purpose, guards nothing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, late, and its answer back, late."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def late(message: Message) -> None:
            if message["type"] == "http.response.start":
                await self._travel()
            await send(message)

        await self._travel()
        await self._app(scope, receive, late)

    async def _travel(self) -> None:
        await self._clock.sleep(self._one_way + self._chance.uniform(0, self._jitter))
