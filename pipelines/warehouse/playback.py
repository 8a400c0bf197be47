"""A scan's pages: first those that the archive has of it, then those that the service answers.

A page is linked in the journal only after its file is safe in the archive: in this order a killed
run never counts what it lacks. Not here: which pages are wanted, and why (api/chain).
"""

import asyncio
from collections import defaultdict, deque
from dataclasses import dataclass, field

from sqlalchemy import Engine

from pipelines.api import page
from pipelines.api.page import Answer, Page
from pipelines.api.prefetch import Fetch
from pipelines.errors import LandingFailed, ServiceError
from pipelines.state import journal
from pipelines.state.journal import LinkedPage
from pipelines.warehouse.archive import Archive


@dataclass
class Playback:
    """Gives each page of one scan a number; a page that is linked is not asked for again."""

    ledger: Engine
    archive: Archive
    scan: str
    fetch: Fetch
    linked: list[LinkedPage] = field(default_factory=list)
    _lost: int = 0  # pages linked that the archive has no more
    _again: dict[int, deque[LinkedPage]] = field(default_factory=dict)

    def rewind(self) -> None:
        """Begin again with the linked pages, each offset's in the order in which they were read."""
        self._again = defaultdict(deque)
        for each in self.linked:
            self._again[each.offset].append(each)

    async def page(self, offset: int) -> tuple[int, Page]:
        """Return a page with its number; raise what the service's answer raises."""
        again = self._again.get(offset)
        while again:
            linked = again.popleft()
            try:
                return linked.position, await asyncio.to_thread(self._archived, linked)
            except (LandingFailed, ServiceError):  # lost or changed on disk: it is asked for again
                self.linked.remove(linked)
                self._lost += 1
        answered = await self.fetch(offset)
        linked = await asyncio.to_thread(self._keep, answered)
        self.linked.append(linked)
        return linked.position, answered

    def _archived(self, linked: LinkedPage) -> Page:
        if self.archive.erased(linked.sha256):
            raise LandingFailed("records of it were erased: there is no chain through what is left")
        answer = Answer(
            path="",
            body=self.archive.body(linked.sha256),
            status=linked.status,
            request_id=linked.request_id,
            rate_limit=linked.rate_limit,
            sent_at=linked.sent_at,
            answered_at=linked.answered_at,
        )
        return page.read(answer, linked.offset)

    def _keep(self, answered: Page) -> LinkedPage:
        answer = answered.answer
        linked = LinkedPage(
            position=len(self.linked) + self._lost,
            offset=answered.offset,
            limit=answered.limit,
            rows=answered.rows,
            sha256=self.archive.put(answer.body),
            status=answer.status,
            request_id=answer.request_id,
            sent_at=answer.sent_at,
            answered_at=answer.answered_at,
            rate_limit=answer.rate_limit,
        )
        journal.link(self.ledger, self.scan, linked)
        return linked
