"""Reads one list that changes meanwhile: requests out, pages in, a proof at the end.

A list is read in passes, each from its first page to its end: by chains of overlapping pages; if
these prove nothing, by plain pages and length checks, until its rows are counted.

Here: the order of the passes, and when reading ends. Not here: what chains show (`chain.py`,
`agreement.py`), what is known of the pages so far (`pager.py`), and which rows of them count
(`rows.py`).
"""

from dataclasses import dataclass, field

from msgspec.structs import replace

from pipelines.core.proof import ListTraits, Method, Proof
from pipelines.extract.agreement import (
    Agreement,
    CompleteRows,
    rows_of_equal_chains,
    why_denied,
)
from pipelines.extract.chain import Chain, read_chain
from pipelines.extract.key import KeySearch
from pipelines.extract.pager import KeyChanged, LengthCheck, Pager
from pipelines.extract.pages import Page, Purpose, ReadingEnded, RowArray, Steps
from pipelines.extract.rows import newest_rows, select_copies, to_ranges

# Chains that do not agree, before the rows are counted by plain passes.
MOST_CHAINS = 4
# Empty pages in a row that end a plain pass.
EMPTY_PAGES = 3
# Passes in a row that show no new row.
MOST_PASSES_IN_VAIN = 6
# Attempts to read the length of a list, and to read behind an end that is denied.
TRIES = 3
# Passes after which the length is read in any case. If no answer shows it then, reading stops.
PASSES_WITHOUT_LENGTH = 3


def read_list(configured_key: str | None, traits: ListTraits, passes: int) -> Steps[Proof]:
    """Read a list until it is proven complete, or until it has cost too many requests.

    With 2 `passes`, one chain of pages is no proof: two must agree, or the rows are counted.
    The same answers lead to the same requests. To end early, throw ReadingEnded.
    """
    keys = KeySearch(configured_key, traits)
    answers = list[Page]()
    while True:
        try:
            proof = yield from _ProofSearch(Pager(traits, keys, answers), passes).read()
        except KeyChanged:
            continue
        if not keys.change():
            return proof


@dataclass
class _ProofSearch:
    """Passes over a list by one key until one proves it; `chains_needed` must agree at least.

    `moved`: two chains showed two orders, or an earlier scan did. `swapped`: one chain showed two.
    `shows_copies`: one showed a row twice. `passes_in_vain` counts passes in a row without a new
    row, `denials` proofs that the service's own words contradict. `first_page` is the place of the
    newest pass among all pages.
    """

    pager: Pager
    chains_needed: int
    moved: bool = False
    swapped: bool = False
    shows_copies: bool = False
    passes_in_vain: int = 0
    denials: int = 0
    first_page: int = 0
    agreement: Agreement = field(default_factory=Agreement)

    def read(self) -> Steps[Proof]:
        """Return the proof of a complete list, or that of what was seen of a PARTIAL one."""
        self.moved = not self.pager.traits.stable_order
        try:
            while True:
                rows_before = len(self.pager.seen())
                self.first_page = len(self.pager.pages)
                chain = yield from self._read_pass()
                proof = self._conclude(chain)
                if proof is None:
                    yield from self._read_length(chain)
                    proof = self._conclude(None)
                if proof is not None:
                    return proof
                self._stop_if_useless(rows_before)
        except ReadingEnded as ended:
            return self._give_up(str(ended))

    def _read_pass(self) -> Steps[Chain | None]:
        """Read the list to its end once; return the chain, None if it was not read by one."""
        pager = self.pager
        last_chain = self.agreement.last
        start = 0
        is_ordered = last_chain is not None and not last_chain.is_unordered()
        # A chain may prove the list alone; to count its rows takes several passes.
        if pager.passes == 0 or (is_ordered and pager.passes < MOST_CHAINS):
            chain = yield from read_chain(pager)
            self.swapped |= chain.swapped
            if chain.ended:
                self.shows_copies |= chain.has_copies()
                return chain
            start = chain.end
        self.agreement.begin()
        yield from self._read_plain(start)
        return None

    def _read_plain(self, start: int) -> Steps[None]:
        """Read pages that do not overlap, from an offset to the end."""
        pager = self.pager
        offset = start
        end = max(start, pager.end)  # unless a page shows another
        length = 0
        empty_pages = 0
        # Each second pass begins half a page further on: then pages end at other rows.
        if not start and pager.passes % 2:
            yield from pager.page(0)
            offset = pager.size // 2
        while empty_pages < EMPTY_PAGES:
            page = yield from pager.page(offset, pager.size)
            if self._fulfilled_check():
                return
            if len(page):
                empty_pages = 0
                end = page.end
                length = page.end
            else:
                empty_pages += 1
            if page.is_last:
                break
            offset = page.end if len(page) else offset + pager.size
        pager.end_pass(end, length)

    def _read_length(self, chain: Chain | None) -> Steps[None]:
        """Read the length of the list: its last page, alone, and an empty one behind it."""
        pager = self.pager
        if chain is None:
            # Rows may have been added at the head meanwhile.
            yield from pager.page(0, purpose=Purpose.HEAD)
        if not self._needs_length(chain):
            return
        end = pager.end
        for _try in range(TRIES):
            seen = pager.seen()
            first = len(pager.pages)
            offset = max(0, end - max(1, pager.size // 2))
            last = yield from pager.page(offset, purpose=Purpose.LENGTH)
            if not len(last) and offset:
                end = offset
                continue
            behind = yield from self._read_behind(last)
            if _is_end(last, behind):
                # A full page does not show the end of the list; the empty one does, later.
                at_moment = last.elements if last.is_short else last.elements[:0]
                pager.checks.append(LengthCheck(last.end, first, seen, at_moment))
                pager.end = last.end
                return
            end = behind.end

    def _needs_length(self, chain: Chain | None) -> bool:
        """Return whether a length is of use now: enough rows were seen, and no chain may do."""
        pager = self.pager
        if pager.passes >= PASSES_WITHOUT_LENGTH and not pager.checks:
            return True
        # After a first chain that saw no change, a second one is likely to show the same.
        if pager.passes == 1 and chain is not None and chain.is_still():
            return False
        return len(pager.seen()) >= pager.end

    def _read_behind(self, last: Page) -> Steps[Page]:
        """Read behind the last page; more than once if the service says that there is more."""
        for _try in range(TRIES):
            behind = yield from self.pager.page(last.end, purpose=Purpose.BEHIND)
            if len(behind) or not (last.has_more or behind.has_more):
                break
        return behind

    def _conclude(self, chain: Chain | None) -> Proof | None:
        """Return the proof if the list is complete, and the service's own words agree."""
        proof = self._prove(chain)
        why = why_denied(self.pager.pages[self.first_page :])
        if proof is None or not why:
            return proof
        self.denials += 1
        if self.denials < TRIES:
            return None
        raise ReadingEnded(why)

    def _prove(self, chain: Chain | None) -> Proof | None:
        """Return the proof if the list is complete, by counting or by chains; else None."""
        pager = self.pager
        check = self._fulfilled_check()
        if check is not None:
            rows = newest_rows(pager.pages[check.first :])
            if rows["lacks_key"].any():
                raise ReadingEnded("rows without a key cannot be counted")
            return self._describe(rows, Method.COUNTED, pager.checks[-1].length)
        if chain is None:
            return None
        complete = self._rows_by_chains(chain)
        if complete is None:
            return None
        if len(pager.pages) == 1:
            return self._describe(complete.rows, Method.ONE_PAGE, complete.length)
        proof = self._describe(complete.rows, Method.OVERLAPPING_PAGES, complete.length)
        return replace(proof, chains=complete.chains)

    def _fulfilled_check(self) -> LengthCheck | None:
        """Return a length check around which all rows of the list were seen."""
        pager = self.pager
        for check in pager.checks:
            met = check.met()
            if met > check.length:
                raise ReadingEnded("more rows were seen around a length check than the list had")
            # Without keys, equal rows replace one another, unless the length never changed. A full
            # last page shows no end.
            lengths = pager.ends_seen | {pager.reached}
            if met == check.length and (pager.keyed or lengths == {check.length}):
                pager.require_fresh()
                return check
        return None

    def _rows_by_chains(self, chain: Chain) -> CompleteRows | None:
        """Return the rows of the list if a chain has them all, by itself or with those before."""
        before = self.agreement.last
        may_stand_alone = self.chains_needed == 1 and not self.moved and not self.swapped
        if may_stand_alone and chain.is_complete():
            self.agreement.begin(chain)
            return self.agreement.rows()
        if before is None:
            self.agreement.begin(chain)
            if len(self.pager.pages) == 1:
                return self.agreement.rows()
            self.pager.require_fresh()
            return None
        self.pager.require_fresh()
        if not chain.keyed and chain.has_copies():
            self.agreement.begin(chain)
            return rows_of_equal_chains(before, chain)
        if not chain.agrees(before):
            self.moved = True
            self.agreement.begin(chain)
            return None
        return self._rows_of_agreeing_chains(chain)

    def _rows_of_agreeing_chains(self, chain: Chain) -> CompleteRows | None:
        """Return the rows of the list if a chain that agrees with the one before is enough."""
        if chain.hidden:
            raise ReadingEnded(f"{chain.hidden:,} places of the list show no row")
        self.agreement.add(chain)
        if self.agreement.has_returned():
            self.moved = True
            self.agreement.begin(chain)
            return None
        if not self.agreement.is_enough(rows_may_move=self.chains_needed > 1 or self.moved):
            return None
        # Whatever the first one showed: they all show the same order.
        self.swapped = False
        return self.agreement.rows()

    def _stop_if_useless(self, rows_before: int) -> None:
        """Raise ReadingEnded if further passes would show nothing."""
        pager = self.pager
        rows = len(pager.seen())
        if rows == rows_before and rows < pager.end:
            self.passes_in_vain += 1
        else:
            self.passes_in_vain = 0
        if self.passes_in_vain >= MOST_PASSES_IN_VAIN:
            raise ReadingEnded("further passes show no new row")
        if pager.passes > PASSES_WITHOUT_LENGTH and not pager.checks:
            raise ReadingEnded("no answer shows where the list ends")

    def _give_up(self, reason: str) -> Proof:
        """Return what was seen of a list that is PARTIAL."""
        lengths = [check.length for check in self.pager.checks]
        length = lengths[-1] if lengths else None
        partial = self._describe(newest_rows(self.pager.pages), Method.COUNTED, length, reason)
        reason = f"{reason}. {partial.rows:,} distinct rows seen"
        if length is not None:
            reason += f"; the list had {length:,} rows"
        return replace(partial, reason=reason, not_seen=self._not_seen(partial, lengths))

    def _not_seen(self, partial: Proof, lengths: list[int]) -> int | None:
        """Return how many rows of the list were not seen; None if that is not known."""
        # The service itself says that rows are missing, beyond all that it shows.
        if self.denials >= TRIES:
            return None
        # Repeats, removals and conflicts may explain the difference too; without a key, equal rows.
        has_copies = self.shows_copies or partial.repeated or partial.conflicting
        if has_copies or not self.pager.keyed:
            return None
        has_one_length = len(set(lengths)) == 1
        if not has_one_length or self.passes_in_vain or partial.rows > lengths[0]:
            return None
        return lengths[0] - partial.rows

    def _describe(
        self, rows: RowArray, method: Method, length: int | None, reason: str = ""
    ) -> Proof:
        """Return the proof that names these rows; with a `reason`, that of a PARTIAL list."""
        pager = self.pager
        known = pager.traits
        has_seen_list = pager.passes > 0 and len(rows) > 0
        traits = ListTraits(
            key=pager.keys.key,
            key_decided=known.key_decided or has_seen_list,
            passes=self.chains_needed,
            length=known.length if length is None else length,
            stable_order=not self.moved and not self.swapped,
        )
        selected = select_copies(rows, keyed=pager.keyed)
        return Proof(
            complete=not reason,
            method=method,
            rows=len(selected.used),
            repeated=selected.repeated,
            not_seen=None,
            reason=reason,
            used=to_ranges(selected.used),
            conflicting=to_ranges(selected.conflicting),
            traits=traits,
            chains=0,
        )


def _is_end(last: Page, behind: Page) -> bool:
    """Return whether a last page and the one behind it show where the list ends."""
    if len(behind) or behind.has_more:
        return False
    # A full page that says that there is more is right, or the empty one behind it is.
    is_denied = last.has_more and not last.is_short
    return not is_denied
