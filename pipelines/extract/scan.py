"""Drives `read_list`: recorded pages first, then the service, with pages requested ahead.

The answer to each request becomes a line of the scan file when it is used, or dropped, so that a
resumed scan gives `read_list` the same answers in the same order.

Here: requests in flight, and lines of the scan file. Not here: which pages are needed
(`read_list.py`), and what a refused offset means (`refusal.py`).
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
from pipelines.core.errors import ServiceError, Unavailable, UnexpectedAnswer
from pipelines.core.loop import in_thread
from pipelines.core.proof import Completeness, Proof
from pipelines.core.text import counted
from pipelines.extract.clocks import ServiceClock
from pipelines.extract.key import PageReader
from pipelines.extract.pages import ALONE, NextRequests, PageRequest, ReadingEnded
from pipelines.extract.read_list import read_list
from pipelines.extract.refusal import (
    REFUSED,
    KnownOffsets,
    describe_cap,
    find_cap,
    is_refusal,
)
from pipelines.http.client import Attempt, ServiceClient

# Pages that arrive faster are made durable together.
FLUSH_SECONDS = 0.1
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
    service_started_at, service_ended_at = driver.service_clock.span()
    completeness = Completeness(
        **msgspec.structs.asdict(proof),
        requests=driver.requests,
        cached_seconds=driver.cached_seconds,
        started_at=scan.header.started_at,
        # The clock may have been set back meanwhile.
        ended_at=max(client.clock.utc_now(), scan.header.started_at),
        service_started_at=service_started_at,
        service_ended_at=service_ended_at,
    )
    return await in_thread(scan.seal, completeness)


@dataclass
class _Driver:
    """One read of one list. `used` counts the answers that were used.

    `known` says which offsets the pages showed, `failed` has the last failure of each request,
    `used_at` is when the newest page in use was received, `cached_seconds` the age of the oldest.
    `pending` are the requests in flight, and those whose answers nobody has used yet.
    """

    client: ServiceClient
    scan: OpenScan
    max_seconds: float
    on_progress: OnProgress
    used: int = 0
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
        # `read_list` returns its proof where it wants no further page: from `next` here, or from
        # `send` and `throw` in `_use`.
        try:
            wanted = next(self._steps)
            for exchange in self.scan.exchanges():
                # A request to stop is seen between pages.
                await asyncio.sleep(0)
                self.requests += _is_request(exchange)
                self.service_clock.note(exchange)
                if exchange.ask is not None:
                    wanted = self._use(exchange.page, exchange)
            while True:
                if clock.monotonic() >= deadline:
                    exchange, page = self._time_is_up()
                else:
                    exchange, page = await self._answer(wanted)
                exchange = msgspec.structs.replace(exchange, ask=self.used + 1)
                wanted = self._use(self._append(exchange), exchange, page)
        except StopIteration as end:
            proof: Proof = end.value
            return proof

    async def end_pending(self, *, cancel: bool) -> None:
        """Wait for the requests in flight, or cancel them. Answers are recorded as not used."""
        tasks = list(self.pending.values())
        self.pending = {}
        if cancel:
            # This does nothing where there is an answer already.
            for task in tasks:
                task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if not isinstance(result, BaseException):
                exchange, _page = result
                self._append(exchange)
            # A defect must be seen, but a read that fails raises its own failure.
            elif not cancel and not isinstance(result, ServiceError):
                raise result

    def _use(
        self, number: int, exchange: Exchange, parsed: ParsedPage | None = None
    ) -> NextRequests:
        """Give `read_list` what a line says; return what it asks for next."""
        self.used += 1
        if exchange.purpose == STOP:
            return self._steps.throw(ReadingEnded(exchange.error))
        if parsed is None:
            body = exchange.body
            parsed = parse_page(body, exchange.limit) if body else empty_page()
        page = self._pages.read(number, exchange, parsed)
        self.known.note(page)
        self.used_at = exchange.received_at.timestamp()
        self.cached_seconds = max(self.cached_seconds, cached_seconds(exchange.headers))
        self.reached = max(self.reached, page.end)
        expected = self.scan.header.traits.length
        self.on_progress(self.reached, self.requests, expected)
        return self._steps.send(page)

    async def _answer(self, wanted: NextRequests) -> Answer:
        """Return the answer to what was asked for; request likely pages ahead."""
        likely: tuple[PageRequest, ...] = ()
        if wanted.request.purpose in ALONE:
            await self.end_pending(cancel=False)
        elif self.client.limiter.spare():
            likely = wanted.likely_next
        for request in (wanted.request, *likely):
            if request not in self.pending:
                self.pending[request] = asyncio.create_task(self._request(request))
        try:
            return await self.pending.pop(wanted.request)
        except ServiceError as error:
            answer = await self._answer_to_refusal(wanted.request)
            if answer is None:
                raise self._at_offset(error, wanted.request) from None
            return answer

    def _at_offset(self, error: ServiceError, request: PageRequest) -> ServiceError:
        """Return an error that says which page failed, and what it means for the list."""
        if not self.reached:
            return error
        header = self.scan.header
        name = f"{header.connection}/{header.stream}"
        rows = counted(self.reached, "row")
        where = f"{rows} of {name} were read before."
        next_step = "Then run `partner-sync sync`, which resumes."
        failed = self.failed.get(request)
        # Without a token, or with one that is refused, it is not the page that failed.
        if failed is not None and isinstance(failed.failure, Unavailable | UnexpectedAnswer):
            where = (
                f"The page of {name} at offset {request.offset:,} failed; {rows} of it were read "
                "before."
            )
            next_step = "If it fails at this offset again, report the offset to the service."
        return type(error)(
            f"{error} {where} The list is not complete, so none of them is loaded; the rows of the "
            "last sync stay.",
            f"{error.remedy} {next_step}",
        )

    async def _request(self, request: PageRequest, *, once: bool = False) -> Answer:
        """Send a request; return its answer. Failures have lines of their own."""
        header = self.scan.header
        offset = request.offset

        def note(failed: Attempt) -> None:
            self.failed[request] = failed
            self._append(_line(request.purpose, offset, failed))

        attempt = await self.client.page(header.path, offset, header.page_size, note, once=once)
        return _line(request.purpose, offset, attempt), attempt.content

    async def _answer_to_refusal(self, request: PageRequest) -> Answer | None:
        """Return what a refused offset means: an empty page, or that reading stops; None: neither.

        Raises ServiceError.
        """
        failed = self.failed.get(request)
        # A page that was requested ahead may have been refused before the list grew.
        if failed is not None and failed.sent_at < self.used_at:
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

    def _time_is_up(self) -> Answer:
        minutes = counted(round(self.max_seconds / 60), "minute")
        return self._stop(f"it was not proven within {minutes} (sync_max_minutes)")

    def _stop(self, reason: str) -> Answer:
        now = self.client.clock.time()
        attempt = Attempt(sent_at=now, received_at=now, failure=ReadingEnded(reason))
        return _line(STOP, 0, attempt), None

    def _append(self, exchange: Exchange) -> int:
        """Write a line; return its number."""
        self.requests += _is_request(exchange)
        self.service_clock.note(exchange)
        now = self.client.clock.monotonic()
        is_due = now - self.flushed >= FLUSH_SECONDS
        if is_due:
            self.flushed = now
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
    page: ParsedPage | None = None
    if not attempt.failure:
        page = attempt.content
    body: bytes | None = None
    if not attempt.error:
        body = attempt.body or None
    # A page that was cut by its brackets may be no JSON as a whole.
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
        raw=encode_body(body, is_json=is_json),
    )
