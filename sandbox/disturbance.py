"""Two ASGI layers that let the faults happen: one inside admission, one around everything.

Inside, so that a request that is befallen still counts against the rate limit and its answer
still has the limit's headers. Around, because only there can a connection be broken.
Not here: which faults there are (catalogue), which are on (active).
"""

import asyncio
from typing import Any, cast

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sandbox.admission import CONTROL
from sandbox.caller import bearer
from sandbox.clock import Clock
from sandbox.faults.active import Faults
from sandbox.faults.exchange import Exchange
from sandbox.faults.kind import Fault, Stage
from sandbox.faults.page import page_of
from sandbox.faults.tokens import Tokens
from sandbox.faults.wires import Line
from sandbox.problem import Problems

BREAK = "sandbox.break"  # key in the ASGI scope: the fault of the wire that befalls this answer


def _spared(scope: Scope, faults: Faults) -> bool:
    return not faults or scope["type"] != "http" or scope["path"].startswith(CONTROL)


class Inside:
    """Changes requests and answers inside admission."""

    def __init__(self, app: ASGIApp, faults: Faults, problems: Problems, clock: Clock) -> None:
        self._app = app
        self._faults = faults
        self._problems = problems
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, perhaps wrongly. The service has done its work in any case."""
        if _spared(scope, self._faults):
            await self._app(scope, receive, send)
            return
        for fault in self._faults.due(scope["path"], Stage.REQUEST):
            fault.kind.effect(scope, fault.value)
        exchange = Exchange(scope, self._problems, self._clock)
        try:
            await self._app(scope, receive, exchange.collect)
        finally:  # where the service itself failed, its problem is sent and the failure goes on
            if exchange.succeeded:
                self._befall(exchange)
            if exchange.status:
                await exchange.send(send)

    def _befall(self, exchange: Exchange) -> None:
        page = page_of(exchange.body)
        faults = self._faults.due(exchange.path, Stage.PAGE) if page else []
        for fault in faults:
            fault.kind.effect(page, fault.value)
        if page and faults:
            exchange.body = page.encoded()
        for fault in self._faults.due(exchange.path, Stage.ANSWER):
            fault.kind.effect(exchange, fault.value)
        for fault in self._faults.due(exchange.path, Stage.WIRE):
            exchange.scope[BREAK] = fault


class Around:
    """Refuses tokens before admission, and breaks connections after it."""

    def __init__(
        self, app: ASGIApp, faults: Faults, tokens: Tokens, problems: Problems, clock: Clock
    ) -> None:
        self._app = app
        self._faults = faults
        self._tokens = tokens
        self._problems = problems
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, and its answer back unless the connection is to break."""
        if _spared(scope, self._faults):
            await self._app(scope, receive, send)
            return
        self._arrive(scope)
        exchange = Exchange(scope, self._problems, self._clock)

        async def pass_on(message: Message) -> None:
            await (exchange.collect if BREAK in scope else send)(message)

        await self._app(scope, receive, pass_on)
        fault: Fault | None = scope.get(BREAK)
        if fault:
            await fault.kind.effect(Line(_transport(send), receive), exchange, fault.value)

    def _arrive(self, scope: Scope) -> None:
        token = bearer(scope)
        if token and self._tokens.verify(token):
            for _ in self._faults.due(scope["path"], Stage.ARRIVAL):
                self._tokens.refuse(token)


def _transport(send: Send) -> asyncio.Transport:
    # ASGI has no word for breaking a connection. Uvicorn's ``send`` is a method of the cycle of
    # one request, which holds the connection's transport; both its HTTP implementations do.
    cycle: Any = send.__self__  # type: ignore[attr-defined]
    return cast("asyncio.Transport", cycle.transport)
