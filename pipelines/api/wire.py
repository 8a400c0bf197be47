"""The wire: every request that leaves, with a slot of the budget, a line in the ledger, caps.

An httpx transport, so that nothing can be sent past it: retries and repeated signatures included.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from datetime import datetime

import httpx

from pipelines.api import body, problem, retry
from pipelines.api.budget import Budget
from pipelines.api.terms import Said
from pipelines.clock import Clock
from pipelines.state.runs import Call

SIGNATURES = ("authorization", "x-api-key")
Record = Callable[[Call], Awaitable[None]]


class Wire(httpx.AsyncBaseTransport):
    """A network on which signed requests keep to the budget and every call is recorded."""

    def __init__(
        self, network: httpx.AsyncBaseTransport, budget: Budget, record: Record, clock: Clock
    ) -> None:
        self._network = network
        self._budget = budget
        self._record = record
        self._clock = clock

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request when the budget allows; unsigned ones are nobody's budget (Limits, 1)."""
        signed = any(name in request.headers for name in SIGNATURES)
        async with self._budget.slot() if signed else nullcontext(0.0) as waited:
            sent_at, begun = self._clock.now(), self._clock.monotonic()
            result = await self._send(request)
            if signed and isinstance(result, httpx.Response):
                self._budget.hear(self._said(result, begun))
            answered_at, took = self._clock.now(), self._clock.monotonic() - begun
        # Outside the slot: others need not wait for the ledger's disk.
        await self._record(_call(request, result, (sent_at, waited, took)))
        if not isinstance(result, httpx.Response):
            raise result
        small = not signed or result.status_code == httpx.codes.UNAUTHORIZED
        own = body.SMALL_CAP if small else body.WIRE_CAP
        cap = request.extensions.get("cap", own)
        result.stream = body.Guarded(result, request.url.path, cap, self._clock)
        result.extensions |= {"sent_at": sent_at, "answered_at": answered_at}
        return result

    def _said(self, response: httpx.Response, sent: float) -> Said:
        """Return what an answer says of the budget, and how long everybody is to stop.

        A 503 too may ask for it: whoever else asks for something would come too early.
        """
        headers, pause = response.headers, None
        asked = problem.retry_after(headers, self._clock.wall())
        refused = response.status_code == retry.TOO_MANY_REQUESTS
        if refused or (asked is not None and response.is_server_error):
            pause = retry.pause(asked, attempt=1)
        limit = _number(headers, "x-ratelimit-limit")
        remaining = _number(headers, "x-ratelimit-remaining")
        resets_in = problem.resets_in(headers, self._clock.wall())
        return Said(response.status_code, sent, limit, remaining, pause, resets_in)

    async def _send(self, request: httpx.Request) -> httpx.Response | BaseException:
        """Return the answer, or the failure: it is recorded before it is raised."""
        try:
            return await self._network.handle_async_request(request)
        except (httpx.TransportError, asyncio.CancelledError) as failure:
            return failure

    async def aclose(self) -> None:
        """Close the network's connections and leave the budget to others."""
        self._budget.close()
        await self._network.aclose()


def _call(
    request: httpx.Request,
    result: httpx.Response | BaseException,
    times: tuple[datetime, float, float],
) -> Call:
    sent_at, waited, took = times
    response = result if isinstance(result, httpx.Response) else None
    headers = httpx.Headers() if response is None else response.headers
    return Call(
        stream=request.extensions.get("stream"),
        method=request.method,
        path=request.url.path,
        query=request.url.query.decode("ascii"),
        sent_at=sent_at,
        waited=waited,
        took=took,
        status=None if response is None else response.status_code,
        remaining=_number(headers, "x-ratelimit-remaining"),
        request_id=headers.get("x-request-id"),
        error=type(result).__name__ if response is None else None,
    )


def _number(headers: Mapping[str, str], name: str) -> int | None:
    value = headers.get(name, "").strip()
    return int(value) if re.fullmatch(r"[0-9]{1,9}", value) else None
