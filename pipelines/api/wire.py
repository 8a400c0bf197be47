"""The wire: every request that leaves, with a slot of the budget and a line in the ledger.

An httpx transport, so that nothing can be sent past it: retries and repeated signatures included.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

import httpx

from pipelines.api import problem, retry
from pipelines.api.budget import Budget
from pipelines.clock import Clock


@dataclass(frozen=True)
class Call:
    """One request as it went over the wire; `waited` and `took` in seconds."""

    stream: str | None
    method: str
    path: str
    query: str
    sent_at: datetime
    waited: float
    took: float
    status: int | None
    remaining: int | None
    request_id: str | None
    error: str | None


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
        if "authorization" not in request.headers:
            return await self._send(request, waited=0.0)
        async with self._budget.slot() as waited:
            response = await self._send(request, waited)
            self._heed(response)
        return response

    def _heed(self, response: httpx.Response) -> None:
        """Learn the limit, and stop everybody at a 429, before the slot is given back."""
        if response.is_success or response.status_code == httpx.codes.FORBIDDEN:
            self._budget.learn(_number(response.headers, "x-ratelimit-limit") or 0)
        if response.status_code == retry.TOO_MANY_REQUESTS:
            seconds = problem.retry_after(response.headers, self._clock.now())
            self._budget.block(retry.pause(seconds, attempt=1))

    async def _send(self, request: httpx.Request, waited: float) -> httpx.Response:
        sent_at, begun = self._clock.now(), self._clock.monotonic()
        response: httpx.Response | None = None
        error: str | None = None
        try:
            response = await self._network.handle_async_request(request)
        except httpx.TransportError as failure:
            error = type(failure).__name__
            raise
        finally:
            took = self._clock.monotonic() - begun
            await self._record(_call(request, response, error, (sent_at, waited, took)))
        response.extensions |= {"sent_at": sent_at, "answered_at": self._clock.now()}
        return response

    async def aclose(self) -> None:
        """Close the network's connections."""
        await self._network.aclose()


def _call(
    request: httpx.Request,
    response: httpx.Response | None,
    error: str | None,
    times: tuple[datetime, float, float],
) -> Call:
    sent_at, waited, took = times
    headers = response.headers if response else httpx.Headers()
    return Call(
        stream=request.extensions.get("stream"),
        method=request.method,
        path=request.url.path,
        query=request.url.query.decode("ascii"),
        sent_at=sent_at,
        waited=waited,
        took=took,
        status=response.status_code if response else None,
        remaining=_number(headers, "x-ratelimit-remaining"),
        request_id=headers.get("x-request-id"),
        error=error,
    )


def _number(headers: Mapping[str, str], name: str) -> int | None:
    value = headers.get(name, "").strip()
    return int(value) if value.isascii() and value.isdigit() else None
