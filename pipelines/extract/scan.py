"""Drives `read_list`: recorded pages first, then the service, with pages requested ahead.

The answer to each request becomes a line of the scan file when it is used, or dropped, so that a
resumed scan gives `read_list` the same answers in the same order.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

import msgspec

from pipelines.archive.envelope import CutPage, ParsedPage, empty_page
from pipelines.archive.lines import STOP, Exchange, cached_seconds, encode_body
from pipelines.archive.records import join_digests, parse_page
from pipelines.archive.scan_file import OpenScan, SealedScan
from pipelines.core.completeness import Completeness, Proof
from pipelines.core.errors import ServiceError
from pipelines.core.text import counted
from pipelines.extract.clocks import ServiceClock
from pipelines.extract.key import PageReader
from pipelines.extract.pages import ALONE, Ask, PageRequest, ReadingEnded
from pipelines.extract.read_list import read_list
from pipelines.extract.refusal import (
    REFUSED,
    KnownOffsets,
    describe_cap,
    find_cap,
    is_refusal,
)
from pipelines.http.client import Attempt, ServiceClient

FLUSH_SECONDS = 0.1  # pages that arrive faster are made durable together
Answer = tuple[Exchange, ParsedPage | None]
OnProgress = Callable[[int, int, int | None], None]
"""Receives rows and requests so far, and the rows expected from the last scan."""


async def read_scan(
    client: ServiceClient, scan: OpenScan, max_seconds: float, on_progress: OnProgress
) -> SealedScan:
    """Read a list until it is proven complete or given up, and seal the scan.

    Raises ServiceError and StorageFailed; the scan file then stays open and can be resumed.
    """
    driver = _Driver(client, scan, max_seconds, on_progress)
    try:
        proof = await driver.read()
    finally:
        await driver.end_pending(cancel=True)
    completeness = Completeness(
        **msgspec.structs.asdict(proof),
        requests=driver.requests,
        cached_seconds=driver.cached_seconds,
        started_at=scan.header.started_at,
        ended_at=max(client.clock.utc_now(), scan.header.started_at),  # the clock may be set back
        service_started_at=driver.service_clock.span()[0],
        service_ended_at=driver.service_clock.span()[1],
    )
    return scan.seal(completeness)


@dataclass
class _Driver:
    """One read of one list. `asks` counts the answers that were used.

    `known` says which offsets the pages showed, `failed` has the last failure of each request,
    `used_at` is when the newest page in use was received, `cached_seconds` the age of the oldest.
    """

    client: ServiceClient
    scan: OpenScan
    max_seconds: float
    on_progress: OnProgress
    asks: int = 0
    requests: int = 0
    reached: int = 0
    flushed: float = 0.0
    pending: dict[PageRequest, asyncio.Task[Answer]] = field(default_factory=dict)
    known: KnownOffsets = field(default_factory=KnownOffsets)
    failed: dict[PageRequest, Attempt] = field(default_factory=dict)
    used_at: float = 0.0
    cached_seconds: int = 0
    service_clock: ServiceClock = field(default_factory=ServiceClock)

    def __post_init__(self) -> None:
        header = self.scan.header
        self._steps = read_list(header.configured_key, header.traits, header.passes)
        self._pages = PageReader(header)

    async def read(self) -> Proof:
        clock = self.client.clock
        deadline = clock.monotonic() + self.max_seconds
        try:
            ask = next(self._steps)
            for exchange in self.scan.exchanges():
                await asyncio.sleep(0)  # a request to stop is seen between pages
                self.requests += _is_request(exchange)
                self.service_clock.note(exchange)
                if exchange.ask is not None:
                    ask = self._use(exchange.page, exchange)
            while True:
                is_late = clock.monotonic() >= deadline
                exchange, page = self._late() if is_late else await self._answer(ask)
                exchange = msgspec.structs.replace(exchange, ask=self.asks + 1)
                ask = self._use(self._append(exchange), exchange, page)
        except StopIteration as end:
            proof: Proof = end.value
            return proof

    async def end_pending(self, *, cancel: bool) -> None:
        """Wait for the requests in flight, or cancel them. Answers are recorded as not used."""
        tasks = list(self.pending.values())
        self.pending = {}
        for task in tasks if cancel else ():
            task.cancel()  # does nothing where there is an answer
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if not isinstance(result, BaseException):
                self._append(result[0])
            elif not cancel and not isinstance(result, ServiceError):
                raise result

    def _use(self, number: int, exchange: Exchange, parsed: ParsedPage | None = None) -> Ask:
        """Give `read_list` what a line says; return what it asks for next."""
        self.asks += 1
        if exchange.purpose == STOP:
            return self._steps.throw(ReadingEnded(exchange.error))
        if parsed is None:
            parsed = parse_page(exchange.body, exchange.limit) if exchange.body else empty_page()
        page = self._pages.read(number, exchange, parsed)
        self.known.note(page)
        self.used_at = exchange.received_at.timestamp()
        self.cached_seconds = max(self.cached_seconds, cached_seconds(exchange.headers))
        self.reached = max(self.reached, page.end)
        expected = self.scan.header.traits.length
        self.on_progress(self.reached, self.requests, expected)
        return self._steps.send(page)

    async def _answer(self, ask: Ask) -> Answer:
        """Return the answer to what was asked for; request likely pages ahead."""
        likely: tuple[PageRequest, ...] = ()
        if ask.request.purpose in ALONE:
            await self.end_pending(cancel=False)
        elif self.client.limiter.spare():
            likely = ask.likely_next
        for request in (ask.request, *likely):
            if request not in self.pending:
                self.pending[request] = asyncio.create_task(self._request(request))
        try:
            return await self.pending.pop(ask.request)
        except ServiceError:
            answer = await self._answer_to_refusal(ask.request)
            if answer is None:
                raise
            return answer

    async def _request(self, request: PageRequest, *, once: bool = False) -> Answer:
        header = self.scan.header
        offset, purpose = request
        line = partial(_line, purpose, offset)

        def note(failed: Attempt) -> None:
            self.failed[request] = failed
            self._append(line(failed))

        attempt = await self.client.page(header.path, offset, header.page_size, note, once=once)
        return line(attempt), attempt.content

    async def _answer_to_refusal(self, request: PageRequest) -> Answer | None:
        """Return what a refused offset means: an empty page, or that reading stops; None: neither.

        Raises ServiceError.
        """
        failed = self.failed.get(request)
        if failed is not None and failed.sent_at < self.used_at:
            # It was requested ahead; the list may have grown since.
            try:
                return await self._request(request, once=True)
            except ServiceError:
                failed = self.failed[request]
        if failed is None:
            return None
        if self.known.is_end(request.offset, failed):
            return _empty_line(request, failed), empty_page()
        if not self.known.may_be_cap(request.offset, failed):
            return None
        await self.end_pending(cancel=True)
        probe = partial(self._probe, once=failed.status not in REFUSED)
        cap = await find_cap(self.known, request.offset, probe)
        if cap is None:
            return None
        return self._stop(describe_cap(cap, failed, self.client.redactor))

    async def _probe(self, offset: int, *, once: bool) -> Attempt | None:
        """Request an offset; return the attempt if it was refused. Its rows are not used.

        Raises ServiceError for another failure.
        """
        request = PageRequest(offset)
        try:
            exchange, _page = await self._request(request, once=once)
        except ServiceError:
            failed = self.failed[request]
            if not is_refusal(failed):
                raise
            return failed
        self._append(exchange)
        return None

    def _late(self) -> Answer:
        minutes = counted(round(self.max_seconds / 60), "minute")
        return self._stop(f"it was not proven within {minutes} (sync_max_minutes)")

    def _stop(self, reason: str) -> Answer:
        now = self.client.clock.time()
        attempt = Attempt(sent_at=now, received_at=now, failure=ReadingEnded(reason))
        return _line(STOP, 0, attempt), None

    def _append(self, exchange: Exchange) -> int:
        self.requests += _is_request(exchange)
        self.service_clock.note(exchange)
        now = self.client.clock.monotonic()
        is_due = now - self.flushed >= FLUSH_SECONDS
        self.flushed = now if is_due else self.flushed
        return self.scan.append(exchange, durable=is_due)


def _is_request(exchange: Exchange) -> bool:
    """Return whether a line stands for a request of its own."""
    is_empty_page = exchange.status in REFUSED and exchange.error is None
    return exchange.purpose != STOP and not is_empty_page


def _empty_line(request: PageRequest, refused: Attempt) -> Exchange:
    """Return the line of the empty page that a refusal means; the refusal has its own line."""
    attempt = Attempt(
        status=refused.status,
        limit=refused.limit,
        sent_at=refused.sent_at,
        received_at=refused.received_at,
    )
    return _line(request.purpose, request.offset, attempt)


def _line(purpose: str, offset: int, attempt: Attempt) -> Exchange:
    """Return the line of an answer. Nobody has used it yet."""
    page: ParsedPage | None = None if attempt.failure else attempt.content
    is_json = page is not None and not isinstance(page, CutPage)
    return Exchange(
        ask=None,
        offset=offset,
        limit=attempt.limit,
        purpose=str(purpose),
        status=attempt.status,
        sent_at=datetime.fromtimestamp(attempt.sent_at, UTC),
        received_at=datetime.fromtimestamp(attempt.received_at, UTC),
        request_id=attempt.request_id,
        headers=attempt.headers,
        error=attempt.error,
        joined=join_digests(page.data) if page else b"",
        raw=encode_body(None if attempt.error else attempt.body or None, is_json=is_json),
    )
