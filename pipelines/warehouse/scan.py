"""A scan: one list read page by page into the archive, and the manifest that sums it up.

A page is linked in the journal only after its file is safe in the archive: in this order a killed
run never counts what it lacks.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from sqlalchemy import Engine

from pipelines.api.key import KeySearch
from pipelines.api.page import Page
from pipelines.clock import Clock
from pipelines.errors import PartnerSyncError
from pipelines.state import journal, registry
from pipelines.state.journal import LinkedPage, ManifestRow, Reading
from pipelines.state.registry import Pin
from pipelines.warehouse.archive import Archive, Manifest


@dataclass(frozen=True)
class Progress:
    """How far the reading of one stream is; `done` when its last page is archived."""

    stream: str
    pages: int
    rows: int
    done: bool


@dataclass(frozen=True)
class Scanner:
    """Reads lists into one archive and ledger; `progress` is told after every page."""

    ledger: Engine
    archive: Archive
    clock: Clock
    progress: Callable[[Progress], None]

    async def scan(
        self, reading: Reading, pages: AsyncIterator[Page], search: KeySearch
    ) -> ManifestRow:
        """Read the pages of one list to the end; return its manifest.

        A PartnerSyncError ends the scan as failed, with every page so far linked.
        """
        scan = journal.begin(self.ledger, reading, self.clock.now())
        rows = position = 0
        try:
            async for page in pages:
                search.look(page.answer.body)
                await asyncio.to_thread(self._keep, scan, position, page)
                rows, position = rows + page.rows, position + 1
                done = not page.has_more
                self.progress(Progress(reading.stream, position, rows, done))
        except PartnerSyncError as error:
            journal.end(self.ledger, scan, self.clock.now(), str(error))
            raise
        journal.end(self.ledger, scan, self.clock.now())
        with self.archive.numbering():
            return self._bind(reading, scan, self._pinned(reading, scan, search))

    def _pinned(self, reading: Reading, scan: str, search: KeySearch) -> str | None:
        """Return the key that a first scan found, unless another run was quicker to pin one."""
        if not search.found:
            return search.key
        connection, stream = reading.connection, reading.stream
        found = Pin(search.key, scan)
        registry.set_pin(self.ledger, connection, stream, found, self.clock.now())
        pinned = registry.pin(self.ledger, connection, stream)
        return found.key if pinned is None else pinned.key

    def _keep(self, scan: str, position: int, page: Page) -> None:
        answer = page.answer
        linked = LinkedPage(
            position=position,
            offset=page.offset,
            limit=page.limit,
            rows=page.rows,
            sha256=self.archive.put(answer.body),
            status=answer.status,
            request_id=answer.request_id,
            sent_at=answer.sent_at,
            answered_at=answer.answered_at,
            rate_limit=answer.rate_limit,
        )
        journal.link(self.ledger, scan, linked)

    def _bind(self, reading: Reading, scan: str, key: str | None) -> ManifestRow:
        """Write the manifest of a scan that was read to its end."""
        pages = journal.pages(self.ledger, scan)
        manifest = Manifest(
            connection=reading.connection,
            stream=reading.stream,
            day=reading.day,
            number=journal.next_number(self.ledger, reading),
            run=reading.run,
            scan=scan,
            key=key,
            begun_at=pages[0].sent_at,
            ended_at=pages[-1].answered_at,
            pages=pages,
        )
        self.archive.write(manifest)
        row = ManifestRow(
            connection=manifest.connection,
            stream=manifest.stream,
            day=manifest.day,
            number=manifest.number,
            scan=scan,
            file=manifest.file,
            pages=len(pages),
            rows=manifest.rows,
            written_at=self.clock.now(),
        )
        journal.add_manifest(self.ledger, row)
        return row
