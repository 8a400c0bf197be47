"""The passes of one reading: chains, then length checks, until the rows are proven or counted."""

from collections.abc import Generator
from dataclasses import dataclass, field
from math import ceil
from typing import NoReturn

import numpy as np

from pipelines.core.completeness import ListMemory, Method, ReadBudget
from pipelines.extract.chain import AFTER_TROUBLE, OVERLAP, Chain, Used
from pipelines.extract.count import LengthCheck, Sightings, check_length
from pipelines.extract.marks import Index, MarkedPage, is_ascending
from pipelines.extract.pages import Ask, PageRequest, Proof, Purpose, Stop
from pipelines.extract.verdict import select_newest, select_rows

Steps = Generator[Ask, MarkedPage | Stop, MarkedPage]

CHAINS = 4  # that do not agree, before the rows are counted by plain passes
BREAKS = 3  # of a chain, besides one page in ten
IN_VAIN = 3  # pages in a row that show nothing new
TRIES = 3  # attempts to read the length of a list
HEADS = 8  # pages at the head until they meet the chain
SMALL = 5  # pages with fewer rows share too few for one chain to be enough
ENDLESS_PAGES = 20_000  # of a list whose length is not known
KNOWN_PAGES = 2_500  # of one whose length is


class _EndedError(Exception):
    """The budget is used up, or the driver stopped: carries the reason."""


@dataclass
class Reading:
    """One reading of a list, by one key. `spent` counts the requests sent so far."""

    memory: ListMemory
    budget: ReadBudget
    key: str | None = None
    spent: int = 0
    _size: int = 0  # rows of a page
    _pages: list[MarkedPage] = field(default_factory=list)
    _sightings: Sightings = field(default_factory=Sightings)
    _checks: list[LengthCheck] = field(default_factory=list)
    _moved: bool = False  # the order of the list
    _longest: int = 0
    _end: int = 0  # where the list seems to end
    _passes: int = 0
    _swapped: bool = False  # a chain showed two orders
    _still: int = 0  # passes in a row without a new row
    _seen: int = 0  # rows at the end of the last pass
    _proven: Proof | None = None

    def read(self) -> Generator[Ask, MarkedPage | Stop, Proof]:
        """Read passes until the list is proven, or until more would be of no use."""
        self._longest = self.memory.length or 0
        self._moved = not self.memory.stable_order
        try:
            yield from self._read_passes()
        except _EndedError as ended:
            return self._partial(str(ended))
        assert self._proven is not None
        return self._proven

    def _read_passes(self) -> Generator[Ask, MarkedPage | Stop, None]:
        before: Chain | None = None
        plain = False
        while True:
            chain = None
            if plain:
                yield from self._read_plain(0)
            else:
                chain = yield from self._read_chain()
            self._passes += 1
            if self._proven or self._is_counted():
                return
            if chain and before and self._is_agreed(chain, before):
                return
            before, plain = chain, chain is None or self._is_unordered(chain)
            if self._may_count(chain):
                yield from self._read_length(head=chain is None)
                if self._is_counted():
                    return
            self._stop_if_useless()

    def _may_count(self, chain: Chain | None) -> bool:
        """Return whether enough rows were seen for the length of the list to be of use now."""
        if self._passes > 2 and not self._checks:
            return True
        if self._passes == 1 and chain and chain.is_still():
            return False  # a second chain is likely to show the same
        return self._sightings.distinct() >= self._end

    # Chains

    def _read_chain(self) -> Generator[Ask, MarkedPage | Stop, Chain | None]:
        """Read overlapping pages to the end, then the head; None if its order moves too much."""
        chain = Chain(self.key is not None)
        page = yield from self._page(0)
        chain.keyed = self.key is not None
        chain.begin(page)
        if self._is_one_page(page):
            self._prove(chain, Method.ONE_PAGE)
            return chain
        vain, back = 0, self._overlap(chain)
        while not self._is_last(page, chain, vain):
            if self._size < 2 or vain == IN_VAIN or self._is_unordered(chain):
                self._swapped = self._swapped or chain.swapped
                yield from self._read_plain(chain.end)
                return None
            length = len(chain)
            back = min(back, chain.end)
            page = yield from self._page(chain.end - back, self._step(chain))
            if chain.end == back:
                chain.begin(page)
            elif not chain.join(page, back):
                back = max(2 * back, self._size // 2)
                continue
            vain = 0 if len(chain) > length else vain + 1
            back = self._overlap(chain)
        self._end = chain.end
        self._longest = max(self._longest, len(chain))
        ordered = yield from self._read_head(chain)
        self._swapped = self._swapped or chain.swapped
        if ordered and self._is_proven(chain):
            self._prove(chain, Method.OVERLAPPING_PAGES)
        return chain

    def _is_one_page(self, page: MarkedPage) -> bool:
        ended = page.is_short and not page.has_more
        return ended and len(page.marks) >= (self.memory.length or 0)

    def _is_unordered(self, chain: Chain) -> bool:
        """Return whether chains are of no use, since the order of the list moves too much."""
        breaks = chain.breaks
        if chain.swapped:
            breaks += max(0, chain.inserted - len(chain.head))
        return breaks > BREAKS + len(chain.pieces) / 10 or self._passes >= CHAINS

    def _is_last(self, page: MarkedPage, chain: Chain, vain: int) -> bool:
        if page.has_more or not page.is_short or page.end != chain.end:
            return False
        return vain > 0 or len(chain) >= (self.memory.length or 0)

    def _overlap(self, chain: Chain) -> int:
        rows = AFTER_TROUBLE if chain.breaks or chain.inserted or chain.removed else OVERLAP
        return max(1, min(self._size // 2, rows + 2 * chain.largest_shift))

    def _step(self, chain: Chain) -> int:
        return self._size - self._overlap(chain)

    def _read_head(self, chain: Chain) -> Generator[Ask, MarkedPage | Stop, bool]:
        """Read the rows added at the head; return whether they meet the chain in order."""
        index, head = Index(chain.marks), Chain(chain.keyed)
        offset, fresh = 0, np.empty(0, np.uint64)
        for _page in range(HEADS):
            page = yield from self._page(offset, purpose=Purpose.HEAD)
            if offset == 0:
                head.begin(page)
            elif not head.join(page, head.end - offset):
                return False
            places = index.find(page.marks)
            known = places[places >= 0]
            if len(known) or not len(page.marks):
                break
            offset = max(offset + 1, head.end - self._overlap(chain))
        else:
            return False
        for used in head.used():
            unknown = index.find(used.page.marks) < 0
            unknown &= ~np.isin(used.page.marks, fresh)
            for row in np.flatnonzero(unknown[used.first : used.end]) + used.first:
                chain.head.append(Used(used.page, int(row), int(row) + 1))
            fresh = np.concatenate([fresh, used.page.marks[unknown]])
        if not is_ascending(known):
            chain.swapped = True
        return is_ascending(known) and not head.swapped

    def _is_proven(self, chain: Chain) -> bool:
        """Return whether one chain is enough."""
        if self._moved or self._swapped or self._size < SMALL or chain.has_copies():
            return False
        if not chain.keyed and (chain.presumed or chain.inserted or chain.removed):
            return False
        return chain.is_explained()

    def _is_agreed(self, chain: Chain, before: Chain) -> bool:
        """Prove the list if two chains agree; of equal rows without a key the first is used."""
        if chain.is_ambiguous() or before.is_ambiguous():
            if chain.repeats(before):
                before.head = []
                self._prove(before, Method.OVERLAPPING_PAGES)
        elif chain.agrees(before):
            self._swapped = False
            self._prove(chain, Method.OVERLAPPING_PAGES)
        else:
            self._moved = True
        return self._proven is not None

    # Plain passes

    def _read_plain(self, start: int) -> Generator[Ask, MarkedPage | Stop, None]:
        """Read pages that do not overlap, from an offset to the end."""
        offset, empty = start, 0
        if not start and self._passes % 2:
            yield from self._page(0)
            offset = self._size // 2
        while empty < IN_VAIN:
            self._stop_if_endless(offset)
            page = yield from self._page(offset, self._size)
            if self._is_counted():
                return
            empty = 0 if len(page.marks) else empty + 1
            if len(page.marks):
                self._end = page.end
            if not page.has_more and page.is_short:
                break
            offset = page.end if len(page.marks) else offset + self._size
        self._longest = max(self._longest, self._end)

    def _read_length(self, *, head: bool) -> Generator[Ask, MarkedPage | Stop, None]:
        """Read the length of the list: its last page, alone, and an empty one behind it."""
        end = self._end
        for _try in range(TRIES):
            if head:
                yield from self._page(0, purpose=Purpose.HEAD)
            offset = max(0, end - max(1, self._size // 2))
            last = yield from self._page(offset, purpose=Purpose.LENGTH)
            if not len(last.marks) and offset:
                end = offset
                continue
            behind = yield from self._page(last.end, purpose=Purpose.BEHIND)
            if not len(behind.marks) and (len(last.marks) or not behind.has_more):
                self._end = last.end
                self._longest = max(self._longest, last.end)
                self._checks.append(check_length(last, behind))
                return
            end = behind.end

    def _is_counted(self) -> bool:
        for check in self._checks:
            met = self._sightings.count(check)
            if met == check.length:
                return self._prove_count(check)
            if met > check.length:
                self._end_reading("more rows were seen around a length check than the list had")
        return False

    def _stop_if_useless(self) -> None:
        distinct = self._sightings.distinct()
        new, self._seen = distinct - self._seen, distinct
        self._still = 0 if new or distinct >= self._end else self._still + 1
        if self._still >= self.budget.max_passes_without_new_rows:
            self._end_reading("further passes show no new row")
        if self._passes > BREAKS and not self._checks:
            self._end_reading("no answer shows where the list ends")

    def _stop_if_endless(self, offset: int) -> None:
        known = self.memory.length
        pages = ENDLESS_PAGES if known is None else KNOWN_PAGES
        if offset > max(self.budget.max_passes * self._longest, pages * self._size):
            self._end_reading("the list does not end")

    # Requests

    def _page(self, offset: int, step: int = 0, purpose: Purpose = Purpose.PAGE) -> Steps:
        """Ask for a page; `step` is how far behind it the next ones are likely to be."""
        if self._passes > 1 and self.spent >= self._allowed():
            self._end_reading(f"its rows were not counted within {self._allowed():,} requests")
        limit = self.budget.page_size
        following = [offset + step, offset + 2 * step] if step > 0 else []
        ask = Ask(
            PageRequest(offset, limit, purpose),
            tuple(PageRequest(each, limit) for each in following),
        )
        page = yield ask
        if isinstance(page, Stop):
            self._end_reading(page.reason)
        self.spent += 1
        self._size = max(self._size, len(page.marks))
        self._pages.append(page)
        self._sightings.add(page)
        return page

    def _allowed(self) -> int:
        return self.budget.max_passes * max(1, ceil(self._longest / max(1, self._size)))

    def _end_reading(self, reason: str) -> NoReturn:
        raise _EndedError(reason)

    # Proofs

    def _prove(self, chain: Chain, method: Method) -> None:
        found = select_rows(chain.used(), keyed=self.key is not None)
        length = len(chain) + len(chain.head)
        self._proven = Proof(
            complete=True,
            method=method,
            rows=found.rows,
            repeated=found.repeated,
            not_seen=None,
            reason="",
            used=found.used,
            conflicting=found.conflicting,
            memory=self._remember(length, decided=length > 0),
        )

    def _prove_count(self, check: LengthCheck) -> bool:
        after = [p for p in self._pages if p is check.page or p.sent > check.received]
        found = select_newest(after, keyed=self.key is not None)
        if any(page.lacking.any() for page in after):
            self._end_reading("rows without a key cannot be counted")
        self._proven = Proof(
            complete=True,
            method=Method.COUNTED,
            rows=found.rows,
            repeated=found.repeated,
            not_seen=None,
            reason="",
            used=found.used,
            conflicting=found.conflicting,
            memory=self._remember(self._checks[-1].length, decided=True),
        )
        return True

    def _partial(self, reason: str) -> Proof:
        found = select_newest(self._pages, keyed=self.key is not None)
        lengths = {check.length for check in self._checks}
        length = self._checks[-1].length if self._checks else None
        places = "" if length is None else f"; the list had {length:,} places"
        missing = None
        if len(lengths) == 1 and length is not None and not found.repeated:
            missing = length - found.rows if length >= found.rows else None
        return Proof(
            complete=False,
            method=Method.COUNTED,
            rows=found.rows,
            repeated=found.repeated,
            not_seen=missing,
            reason=f"{reason}. {found.rows:,} distinct rows seen{places}",
            used=found.used,
            conflicting=found.conflicting,
            memory=self._remember(length, decided=self._passes > 0),
        )

    def _remember(self, length: int | None, *, decided: bool) -> ListMemory:
        if self.memory.key_decided:
            decided = True
        return ListMemory(
            key=self.key if decided else None,
            key_decided=decided,
            length=self.memory.length if length is None else length,
            stable_order=not self._moved and not self._swapped,
        )
