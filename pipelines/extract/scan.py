"""Drives `read_list`: recorded pages first, then the service, with pages requested ahead.

The answer to each request becomes a line of the scan file when it is used, or dropped, so that a
resumed scan gives `read_list` the same answers in the same order.
"""

import asyncio
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from pipelines.archive.scan_file import Exchange, OpenScan, SealedScan
from pipelines.core.clock import Clock, utc_now
from pipelines.core.completeness import Completeness
from pipelines.core.errors import ServiceError
from pipelines.extract.pages import ALONE, Ask, Page, PageRequest, Proof, Stop
from pipelines.extract.read_list import read_list
from pipelines.extract.rows import PageReader
from pipelines.http.client import Attempt, ServiceClient

STOP: Final = "stop"  # purpose of the line that records why reading ended early
FLUSH_SECONDS = 0.1  # pages that arrive faster are made durable together
OnProgress = Callable[[int, int, int | None], None]
"""Receives rows and requests so far, and the rows expected from the last scan."""


def ignore_progress(_rows: int, _requests: int, _expected_rows: int | None) -> None:
    """Ignore progress."""


@dataclass(frozen=True)
class ReadOptions:
    """How long a list may be read, and who watches."""

    max_seconds: float
    on_progress: OnProgress = ignore_progress


@dataclass(frozen=True)
class _Answer:
    """An answer that nobody has used yet; `sent` and `received` are event counters."""

    request: PageRequest
    attempt: Attempt
    sent: int
    received: int


async def read_scan(
    client: ServiceClient, scan: OpenScan, options: ReadOptions, clock: Clock
) -> SealedScan:
    """Read a list until it is proven complete or given up, and seal the scan.

    Raises ServiceError and StorageFailed; the scan file then stays open and can be resumed.
    """
    reading = _Reading(client, scan, options, clock)
    try:
        proof = await reading.read()
    finally:
        await reading.drop_pending()
    return scan.seal(reading.completeness(proof))


@dataclass
class _Reading:
    """One read of one list."""

    client: ServiceClient
    scan: OpenScan
    options: ReadOptions
    clock: Clock
    events: int = 0
    asks: int = 0
    requests: int = 0
    reached: int = 0
    pending: dict[PageRequest, asyncio.Task[_Answer]] = field(default_factory=dict)
    flushed: float = 0.0

    async def read(self) -> Proof:
        """Return the proof of the list."""
        header, deadline = self.scan.header, self.clock.monotonic() + self.options.max_seconds
        pages = PageReader(header)
        steps = read_list(header.configured_key, header.memory, header.budget)
        try:
            ask = self._replay(steps, pages)
            while True:
                self.asks += 1
                if self.clock.monotonic() >= deadline:
                    ask = steps.send(self._stop())
                else:
                    ask = steps.send(await self._next_page(ask, pages))
        except StopIteration as end:
            proof: Proof = end.value
            return proof

    def completeness(self, proof: Proof) -> Completeness:
        """Return the proof with times and the number of requests."""
        return Completeness(
            **proof.__dict__,
            requests=self.requests,
            started_at=self.scan.header.started_at,
            ended_at=utc_now(self.clock),
        )

    async def drop_pending(self) -> None:
        """End requests that nobody waits for; record those that were answered."""
        tasks, self.pending = list(self.pending.values()), {}
        for task in tasks:
            if not task.done():
                task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, _Answer):
                self._record(result, ask=None)

    def _replay(self, steps: Generator[Ask, Page | Stop, Proof], pages: PageReader) -> Ask:
        """Give the recorded answers to `read_list`; return what it asks for next."""
        ask = next(steps)
        for number, exchange in self.scan.exchanges():
            self.events = max(self.events, exchange.sent, exchange.received)
            self.requests += exchange.purpose != STOP
            if exchange.ask is None:
                continue
            self.asks = exchange.ask
            if exchange.purpose == STOP:
                ask = steps.send(Stop(exchange.error or ""))
            else:
                ask = steps.send(self._noted(pages.read(number, exchange)))
        return ask

    async def _next_page(self, ask: Ask, pages: PageReader) -> Page:
        """Return the page that was asked for; request likely ones ahead."""
        if ask.request.purpose in ALONE:
            await self._wait_for_pending()
        task = self.pending.pop(ask.request, None) or self._send(ask.request)
        if ask.request.purpose not in ALONE and self.client.may_prefetch():
            for request in ask.likely_next:
                if request not in self.pending:
                    self.pending[request] = self._send(request)
        try:
            answer = await task
        except BaseException:
            task.cancel()
            raise
        number, exchange = self._record(answer, ask=self.asks)
        return self._noted(pages.read(number, exchange))

    def _send(self, request: PageRequest) -> asyncio.Task[_Answer]:
        return asyncio.create_task(self._request(request))

    async def _request(self, request: PageRequest) -> _Answer:
        self.events += 1
        sent = self.events

        def record_failure(attempt: Attempt) -> None:
            self.events += 1
            self._append(self._exchange(request, attempt, (sent, self.events), None))

        attempt = await self.client.page(
            self.scan.header.path, request.offset, request.limit, record_failure
        )
        self.events += 1
        return _Answer(request, attempt, sent, self.events)

    async def _wait_for_pending(self) -> None:
        """Let requests in flight be answered, so that the next one is alone; nobody uses them."""
        tasks, self.pending = list(self.pending.values()), {}
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, _Answer):
                self._record(result, ask=None)
            elif not isinstance(result, ServiceError):
                raise result

    def _record(self, answer: _Answer, ask: int | None) -> tuple[int, Exchange]:
        order = (answer.sent, answer.received)
        exchange = self._exchange(answer.request, answer.attempt, order, ask)
        return self._append(exchange), exchange

    def _exchange(
        self, request: PageRequest, attempt: Attempt, order: tuple[int, int], ask: int | None
    ) -> Exchange:
        return Exchange(
            ask=ask,
            sent=order[0],
            received=order[1],
            offset=request.offset,
            limit=request.limit,
            purpose=str(request.purpose),
            status=attempt.status,
            sent_at=datetime.fromtimestamp(attempt.sent_at, UTC),
            received_at=datetime.fromtimestamp(attempt.received_at, UTC),
            request_id=attempt.request_id,
            headers=attempt.headers,
            body=None if attempt.error else attempt.body,
            error=attempt.error,
        )

    def _append(self, exchange: Exchange) -> int:
        self.requests += exchange.purpose != STOP
        now = self.clock.monotonic()
        durable = now - self.flushed >= FLUSH_SECONDS
        if durable:
            self.flushed = now
        return self.scan.append(exchange, durable=durable)

    def _stop(self) -> Stop:
        minutes = self.options.max_seconds / 60
        stop = Stop(f"the list changed faster than it could be read in {minutes:.0f} minutes")
        now, self.events = utc_now(self.clock), self.events + 1
        self._append(
            Exchange(
                ask=self.asks,
                sent=self.events,
                received=self.events,
                offset=0,
                limit=0,
                purpose=STOP,
                status=None,
                sent_at=now,
                received_at=now,
                request_id=None,
                headers={},
                body=None,
                error=stop.reason,
            )
        )
        return stop

    def _noted(self, page: Page) -> Page:
        """Report progress, measured by the place in the list that was reached."""
        self.reached = max(self.reached, page.request.offset + len(page.rows))
        expected = self.scan.header.memory.length
        self.options.on_progress(self.reached, self.requests, expected)
        return page
