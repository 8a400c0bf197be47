"""The passes of one reading: chains, then plain passes, until the rows are proven or counted."""

from collections.abc import Generator
from dataclasses import dataclass, field

from pipelines.core.completeness import ListMemory, Method
from pipelines.extract.chain import Chain
from pipelines.extract.count import LengthCheck, check_length
from pipelines.extract.marks import MarkedPage
from pipelines.extract.overlap import is_one_page, is_unordered, read_chain
from pipelines.extract.pager import Pager, ReadingEnded
from pipelines.extract.pages import Ask, Proof, Purpose, Stop
from pipelines.extract.verdict import Selection, select_newest, select_rows

Steps = Generator[Ask, MarkedPage | Stop, None]

CHAINS = 4  # that do not agree, before the rows are counted by plain passes
IN_VAIN = 3  # empty pages in a row
TRIES = 3  # attempts to read the length of a list
CONFIRMED = 2  # more requests behind an end that `has_more` denies
WITHOUT_LENGTH = 3  # passes


@dataclass
class Reading:
    """One reading of a list, by one key."""

    pager: Pager
    key: str | None = None
    _checks: list[LengthCheck] = field(default_factory=list)
    _moved: bool = False  # the order of the list
    _swapped: bool = False  # a chain showed two orders
    _copies: bool = False  # a chain showed a row twice
    _still: int = 0  # passes in a row without a new row
    _seen: int = 0  # rows at the end of the last pass
    _proven: Proof | None = None

    def read(self) -> Generator[Ask, MarkedPage | Stop, Proof]:
        """Read passes until the list is proven, or until more would be of no use."""
        self._moved = not self.pager.memory.stable_order
        before: Chain | None = None
        try:
            while self._proven is None:
                before = yield from self._read_pass(before)
        except ReadingEnded as ended:
            return self._partial(str(ended))
        return self._proven

    def _read_pass(self, before: Chain | None) -> Generator[Ask, MarkedPage | Stop, Chain | None]:
        """Read the list to its end once; return the chain, None if it was not read by one."""
        chain = None
        if self._is_plain(before):
            yield from self._read_plain(0)
        else:
            chain = yield from self._read_chain()
        self.pager.passes += 1
        if self._is_counted() or (chain is not None and self._is_proven(chain, before)):
            return None
        if chain is None:
            yield from self.pager.page(0, purpose=Purpose.HEAD)  # the rows added meanwhile
        if self._may_count(chain):
            yield from self._read_length()
        if not self._is_counted():
            self._stop_if_useless()
        return chain

    def _is_plain(self, before: Chain | None) -> bool:
        """Return whether the next pass reads pages that do not overlap."""
        passes = self.pager.passes
        return passes > 0 and (before is None or is_unordered(before) or passes >= CHAINS)

    def _may_count(self, chain: Chain | None) -> bool:
        """Return whether enough rows were seen for the length of the list to be of use now."""
        if self.pager.passes >= WITHOUT_LENGTH and not self._checks:
            return True
        if self.pager.passes == 1 and chain is not None and chain.is_still():
            return False  # a second chain is likely to show the same
        return self.pager.sightings.distinct() >= self.pager.end

    # Chains

    def _read_chain(self) -> Generator[Ask, MarkedPage | Stop, Chain | None]:
        """Read a chain; None if the rest of the list had to be read by plain pages."""
        chain = Chain(keyed=True)
        yield from read_chain(self.pager, chain)
        self._swapped = self._swapped or chain.swapped
        if not chain.ended:
            yield from self._read_plain(chain.end)
            return None
        self._copies = self._copies or chain.has_copies()
        return chain

    def _is_proven(self, chain: Chain, before: Chain | None) -> bool:
        """Prove the list by one chain, or by two that agree, if possible."""
        if is_one_page(self.pager, chain):
            self._prove_chain(chain, Method.ONE_PAGE)
        elif self._is_enough(chain):
            self._prove_chain(chain, Method.OVERLAPPING_PAGES)
        elif before is not None:
            self._compare(chain, before)
        return self._proven is not None

    def _is_enough(self, chain: Chain) -> bool:
        """Return whether one chain is a proof."""
        if self._moved or self._swapped or chain.has_copies():
            return False
        if not chain.keyed and (chain.presumed or chain.inserted or chain.removed):
            return False
        return chain.meets_head and chain.is_explained()

    def _compare(self, chain: Chain, before: Chain) -> None:
        """Prove the list if two chains agree; of equal rows without a key the first is used."""
        if chain.is_ambiguous() or before.is_ambiguous():
            if chain.repeats(before) and not (self._moved or self._swapped):
                before.head = []
                self._prove_chain(before, Method.OVERLAPPING_PAGES)
        elif chain.agrees(before):
            self._swapped = False
            self._prove_chain(chain, Method.OVERLAPPING_PAGES)
        else:
            self._moved = True

    # Counting

    def _read_plain(self, start: int) -> Steps:
        """Read pages that do not overlap, from an offset to the end."""
        pager, offset, empty = self.pager, start, 0
        if not start and pager.passes % 2:
            yield from pager.page(0)
            offset = pager.size // 2
        while empty < IN_VAIN:
            page = yield from pager.page(offset, pager.size)
            if self._is_counted():
                return
            empty = 0 if len(page.marks) else empty + 1
            if len(page.marks):
                pager.end = pager.reached = page.end
            if not page.has_more and page.is_short:
                break
            offset = page.end if len(page.marks) else offset + pager.size
        pager.end_at(pager.end, pager.end)

    def _read_length(self) -> Steps:
        """Read the length of the list: its last page, alone, and an empty one behind it."""
        pager, end = self.pager, self.pager.end
        for _try in range(TRIES):
            offset = max(0, end - max(1, pager.size // 2))
            last = yield from pager.page(offset, purpose=Purpose.LENGTH)
            if not len(last.marks) and offset:
                end = offset
                continue
            behind = yield from self._read_behind(last)
            if not len(behind.marks) and (len(last.marks) or not behind.has_more):
                pager.end_at(last.end, last.end)
                self._checks.append(check_length(last, behind))
                return
            end = behind.end

    def _read_behind(self, last: MarkedPage) -> Generator[Ask, MarkedPage | Stop, MarkedPage]:
        """Read behind the last page; more than once if the service says that there is more."""
        behind = yield from self.pager.page(last.end, purpose=Purpose.BEHIND)
        for _time in range(CONFIRMED):
            if len(behind.marks) or not (last.has_more or behind.has_more):
                break
            behind = yield from self.pager.page(last.end, purpose=Purpose.BEHIND)
        return behind

    def _is_counted(self) -> bool:
        """Prove the list if all rows were seen before and after a length check."""
        for check in self._checks:
            met = self.pager.sightings.count(check)
            if met > check.length:
                raise ReadingEnded("more rows were seen around a length check than the list had")
            if met == check.length and (self.pager.keyed or self._is_constant(check)):
                self._prove_count(check)
                return True
        return False

    def _is_constant(self, check: LengthCheck) -> bool:
        """Return whether the length never changed: without keys, equal rows replace one another."""
        ends = {page.end for page in self.pager.pages if _shows_end(page)}
        return ends <= {check.length}

    def _stop_if_useless(self) -> None:
        distinct = self.pager.sightings.distinct()
        new, self._seen = distinct - self._seen, distinct
        self._still = 0 if new or distinct >= self.pager.end else self._still + 1
        if self._still >= self.pager.budget.max_passes_without_new_rows:
            raise ReadingEnded("further passes show no new row")
        if self.pager.passes > WITHOUT_LENGTH and not self._checks:
            raise ReadingEnded("no answer shows where the list ends")

    # Proofs

    def _prove_chain(self, chain: Chain, method: Method) -> None:
        found = select_rows(chain.used(), keyed=chain.keyed)
        memory = self._remember(len(chain) + len(chain.head), decided=bool(len(chain)))
        self._proven = _proof(found, method, memory)

    def _prove_count(self, check: LengthCheck) -> None:
        pages = self.pager.pages
        after = [page for page in pages if page is check.page or page.sent > check.received]
        if any(page.lacking.any() for page in after):
            raise ReadingEnded("rows without a key cannot be counted")
        found = select_newest(after, keyed=self.pager.keyed)
        memory = self._remember(self._checks[-1].length, decided=True)
        self._proven = _proof(found, Method.COUNTED, memory)

    def _partial(self, reason: str) -> Proof:
        found = select_newest(self.pager.pages, keyed=self.pager.keyed)
        length = self._checks[-1].length if self._checks else None
        memory = self._remember(length, decided=self.pager.passes > 0)
        places = "" if length is None else f"; the list had {length:,} rows"
        return _proof(
            found,
            Method.COUNTED,
            memory,
            reason=f"{reason}. {found.rows:,} distinct rows seen{places}",
            not_seen=self._not_seen(found),
        )

    def _not_seen(self, found: Selection) -> int | None:
        """Return how many rows were not seen; None where something else may explain it."""
        lengths = {check.length for check in self._checks}
        if len(lengths) != 1 or self._still or self._copies or found.repeated:
            return None
        missing = lengths.pop() - found.rows
        return missing if missing >= 0 and not found.conflicting else None

    def _remember(self, length: int | None, *, decided: bool) -> ListMemory:
        before = self.pager.memory
        decided = decided or before.key_decided
        return ListMemory(
            key=self.key if decided else None,
            key_decided=decided,
            length=before.length if length is None else length,
            stable_order=not self._moved and not self._swapped,
        )


def _proof(
    found: Selection,
    method: Method,
    memory: ListMemory,
    *,
    reason: str = "",
    not_seen: int | None = None,
) -> Proof:
    return Proof(
        complete=not reason,
        method=method,
        rows=found.rows,
        repeated=found.repeated,
        not_seen=not_seen,
        reason=reason,
        used=found.used,
        conflicting=found.conflicting,
        memory=memory,
    )


def _shows_end(page: MarkedPage) -> bool:
    return len(page.marks) > 0 and page.is_short and not page.has_more
