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
from pipelines.api.prefetch import Ask
from pipelines.api.source import ALONE
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
    fetch: Ask
    linked: list[LinkedPage] = field(default_factory=list)
    _lost: int = 0  # pages linked that the archive has no more
    _given: int = -1  # the number of the last page that was given
    _newest: int = -1  # the number of the last page that was there to begin with
    _again: dict[int, deque[LinkedPage]] = field(default_factory=dict)

    @property
    def waiting(self) -> bool:
        """Whether pages of the archive are still to be given."""
        return self._given < self._newest

    def rewind(self) -> None:
        """Begin again with the linked pages, each offset's in the order in which they were read."""
        self._given = -1
        self._newest = max((each.position for each in self.linked), default=-1)
        self._again = defaultdict(deque)
        for each in self.linked:
            self._again[each.offset].append(each)

    async def page(self, offset: int, step: int = 0) -> tuple[int, Page]:
        """Return a page with its number; raise what the service's answer raises.

        Numbers ascend: a page that was read before one that was given already is not given again.
        `step` as in `Take`.
        """
        again = self._again.get(offset)
        while again:
            linked = again.popleft()
            if linked.position <= self._given or (step == ALONE and self._overlaps(linked)):
                continue
            try:
                found = await asyncio.to_thread(self._archived, linked)
            except (LandingFailed, ServiceError):  # lost or changed on disk
                self._drop_from(linked.position)
            else:
                self._given = linked.position
                return linked.position, found
        answered = await self.fetch(offset, step)
        linked = await asyncio.to_thread(self._keep, answered)
        self.linked.append(linked)
        self._given = linked.position
        return linked.position, answered

    def _overlaps(self, linked: LinkedPage) -> bool:
        """Whether a page was asked for before the last one that was given was answered."""
        return any(
            each.position == self._given and linked.sent_at < each.answered_at
            for each in reversed(self.linked)
        )

    def _drop_from(self, position: int) -> None:
        """Forget a page, and what was read after it: all that is asked for now is newer."""
        kept = [each for each in self.linked if each.position < position]
        self._lost += len(self.linked) - len(kept)
        self.linked[:] = kept
        self._newest = position - 1
        self._again.clear()

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
