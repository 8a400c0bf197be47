"""Reads one list that changes meanwhile: requests out, pages in, a proof at the end.

A list is read in passes: by chains of overlapping pages; if these prove nothing, by plain pages
and length checks, until its rows are counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace

from pipelines.core.completeness import ListTraits, Method, Proof, Ranges
from pipelines.extract.agreement import Agreement, Proven
from pipelines.extract.chain import Chain, read_chain
from pipelines.extract.key import KeySearch
from pipelines.extract.pager import KeyChanged, LengthCheck, Pager
from pipelines.extract.pages import (
    ROW,
    Page,
    Purpose,
    ReadingEnded,
    Rows,
    Steps,
    is_distinct,
)

CHAINS = 4  # that do not agree, before the rows are counted by plain passes
IN_VAIN = 3  # empty pages in a row
IN_VAIN_PASSES = 6  # passes in a row that show no new row
TRIES = 3  # attempts to read the length of a list, and to read behind an end that is denied
WITHOUT_LENGTH = 3  # passes
CHUNK = 400  # pages whose rows are compared at a time


def read_list(configured_key: str | None, traits: ListTraits, passes: int = 1) -> Steps[Proof]:
    """Read a list until it is proven complete, or until it has cost too many requests.

    With 2 `passes`, one chain of pages is no proof: two must agree, or the rows are counted.
    The same answers lead to the same requests. To end early, throw ReadingEnded.
    """
    keys = KeySearch(configured_key, traits)
    answers = list[Page]()
    while True:
        try:
            proof = yield from _Reading(Pager(traits, keys, answers), passes).read()
        except KeyChanged:
            continue
        if not keys.change():
            return proof


@dataclass
class _Reading:
    """One reading of a list, by one key; `passes` is how many chains must agree at least.

    `moved` tells that two chains showed two orders, `swapped` that one did, `copies` that one
    showed a row twice. `still` counts passes in a row without a new row.
    """

    pager: Pager
    passes: int
    moved: bool = False
    swapped: bool = False
    copies: bool = False
    still: int = 0
    agreement: Agreement = field(default_factory=Agreement)

    def read(self) -> Steps[Proof]:
        self.moved = not self.pager.traits.stable_order
        try:
            while True:
                seen = len(self.pager.seen())
                chain = yield from self._read_pass()
                proof = self._proof(chain)
                if proof is None:
                    yield from self._read_length(chain)
                    proof = self._proof(None)
                if proof is not None:
                    return proof
                self._stop_if_useless(seen)
        except ReadingEnded as ended:
            return self._partial(str(ended))

    def _read_pass(self) -> Steps[Chain | None]:
        """Read the list to its end once; return the chain, None if it was not read by one."""
        pager = self.pager
        before = self.agreement.last
        start = 0
        is_ordered = before is not None and not before.is_unordered()
        if pager.passes == 0 or (is_ordered and pager.passes < CHAINS):
            chain = yield from read_chain(pager)
            self.swapped |= chain.swapped
            if chain.ended:
                self.copies |= chain.has_copies()
                return chain
            start = chain.end
        self.agreement.begin()
        yield from self._read_plain(start)
        return None

    def _proven(self, chain: Chain) -> Proven | None:
        """Return what a chain proves, by itself or with those before it; None: nothing yet."""
        before = self.agreement.last
        is_alone = self.passes == 1 and not (self.moved or self.swapped)
        if before is None or (chain.is_proof() and is_alone):
            self.agreement.begin(chain)
            if len(self.pager.pages) == 1 or (chain.is_proof() and is_alone):
                return self.agreement.proven()
            self.pager.require_fresh()
            return None
        self.pager.require_fresh()
        if not chain.keyed and chain.has_copies():
            # Equal rows could have been mistaken for one another.
            self.agreement.begin(chain)
            is_sure = before.meets_head and before.is_still() and chain.repeats(before)
            length = before.length + len(before.head)
            return Proven(before.rows(), length, 2) if is_sure else None
        if not chain.agrees(before):
            self.moved = True
            self.agreement.begin(chain)
            return None
        return self._agreed(chain)

    def _agreed(self, chain: Chain) -> Proven | None:
        """Return what a chain proves that agrees with the one before."""
        if chain.hidden:
            raise ReadingEnded(f"{chain.hidden:,} places of the list show no row")
        self.agreement.add(chain)
        if self.agreement.has_returned():
            self.moved = True
            self.agreement.begin(chain)
            return None
        if not self.agreement.is_proof(is_sure=self.passes > 1 or self.moved):
            return None
        self.swapped = False  # both show the same order
        return self.agreement.proven()

    def _read_plain(self, start: int) -> Steps[None]:
        """Read pages that do not overlap, from an offset to the end."""
        pager = self.pager
        offset = start
        length = 0
        empty = 0
        end = max(start, pager.end)  # unless a page shows another
        if not start and pager.passes % 2:
            yield from pager.page(0)
            offset = pager.size // 2
        while empty < IN_VAIN:
            page = yield from pager.page(offset, pager.size)
            if self._counted():
                return
            empty = 0 if len(page) else empty + 1
            end, length = (page.end, page.end) if len(page) else (end, length)
            if page.is_last:
                break
            offset = page.end if len(page) else offset + pager.size
        pager.end_pass(end, length)

    def _read_length(self, chain: Chain | None) -> Steps[None]:
        """Read the length of the list: its last page, alone, and an empty one behind it.

        It is of use if enough rows were seen, and if a second chain is not likely to show the same.
        """
        pager = self.pager
        if chain is None:
            yield from pager.page(0, purpose=Purpose.HEAD)  # the rows added meanwhile
        is_first = pager.passes == 1 and chain is not None and chain.is_still()
        is_due = pager.passes >= WITHOUT_LENGTH and not pager.checks
        if not is_due and (is_first or len(pager.seen()) < pager.end):
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
            # A full page that says that there is more is right, or the empty one behind it is.
            is_denied = last.has_more and not (last.is_short or behind.has_more)
            if not (len(behind) or is_denied or behind.has_more):
                # A full page does not show the end of the list; the empty one does, later.
                at = last.elements if last.is_short else last.elements[:0]
                pager.checks.append(LengthCheck(last.end, first, seen, at))
                pager.end = last.end
                return
            end = behind.end

    def _read_behind(self, last: Page) -> Steps[Page]:
        """Read behind the last page; more than once if the service says that there is more."""
        for _try in range(TRIES):
            behind = yield from self.pager.page(last.end, purpose=Purpose.BEHIND)
            if len(behind) or not (last.has_more or behind.has_more):
                break
        return behind

    def _counted(self) -> LengthCheck | None:
        """Return a length check around which all rows of the list were seen."""
        pager = self.pager
        for check in pager.checks:
            met = check.met()
            if met > check.length:
                raise ReadingEnded("more rows were seen around a length check than the list had")
            # Without keys, equal rows replace one another, unless the length never changed.
            lengths = pager.ends | {pager.reached}  # a full last page shows no end
            if met == check.length and (pager.keyed or lengths == {check.length}):
                pager.require_fresh()
                return check
        return None

    def _proof(self, chain: Chain | None) -> Proof | None:
        """Return the proof by counting or by chains, if there is one."""
        pager = self.pager
        if check := self._counted():
            rows = _newest_rows(pager.pages[check.first :])
            if rows["lacking"].any():
                raise ReadingEnded("rows without a key cannot be counted")
            return self._prove(rows, Method.COUNTED, pager.checks[-1].length)
        proven = self._proven(chain) if chain else None
        if proven is None:
            return None
        if len(pager.pages) == 1:
            return self._prove(proven.rows, Method.ONE_PAGE, proven.length)
        proof = self._prove(proven.rows, Method.OVERLAPPING_PAGES, proven.length)
        return replace(proof, chains=proven.chains)

    def _partial(self, reason: str) -> Proof:
        lengths = [check.length for check in self.pager.checks]
        length = lengths[-1] if lengths else None
        proof = self._prove(_newest_rows(self.pager.pages), Method.COUNTED, length, reason)
        places = "" if length is None else f"; the list had {length:,} rows"
        reason = f"{reason}. {proof.rows:,} distinct rows seen{places}"
        missing = min(lengths, default=0) - proof.rows
        # Repeats, removals and conflicts may explain the difference too; without a key, equal rows.
        has_copies = self.copies or proof.repeated or proof.conflicting or not self.pager.keyed
        is_exact = len(set(lengths)) == 1 and not self.still and not has_copies and missing >= 0
        return replace(proof, reason=reason, not_seen=missing if is_exact else None)

    def _stop_if_useless(self, seen: int) -> None:
        pager = self.pager
        now = len(self.pager.seen())
        self.still = self.still + 1 if now == seen and now < pager.end else 0
        if self.still >= IN_VAIN_PASSES:
            raise ReadingEnded("further passes show no new row")
        if pager.passes > WITHOUT_LENGTH and not pager.checks:
            raise ReadingEnded("no answer shows where the list ends")

    def _prove(self, rows: Rows, method: Method, length: int | None, reason: str = "") -> Proof:
        pager = self.pager
        before = self.pager.traits
        decided = before.key_decided or (pager.passes > 0 and len(rows) > 0)
        traits = ListTraits(
            key=pager.keys.key,
            key_decided=decided,
            passes=self.passes,
            length=before.length if length is None else length,
            stable_order=not (self.moved or self.swapped),
        )
        lacking = rows[rows["lacking"]]
        rows = rows[~rows["lacking"]]
        used, conflicting = _select(rows) if pager.keyed else (rows, rows[:0])
        return Proof(
            complete=not reason,
            method=method,
            rows=len(used),
            repeated=len(rows) - len(used),
            not_seen=None,
            reason=reason,
            used=_ranges(used),
            conflicting=_ranges(np.concatenate([conflicting, lacking])),
            traits=traits,
            chains=0,
        )


def _newest_rows(pages: Sequence[Page]) -> Rows:
    """Return each row as the newest of the pages shows it that have the most copies of it."""
    best = np.empty(0, ROW)
    for first in range(0, len(pages), CHUNK):
        rows = np.concatenate([best, *(page.rows() for page in pages[first : first + CHUNK])])
        rows = rows[np.lexsort((-rows["page"], -rows["copies"]))]
        _marks, newest, at = np.unique(rows["mark"], return_index=True, return_inverse=True)
        best = rows[rows["page"] == rows["page"][newest][at]]
    return best


def _select(rows: Rows) -> tuple[Rows, Rows]:
    """Return one row for each key (the smallest digest, then the first), and those in conflict."""
    if is_distinct(rows["mark"]):
        return rows, rows[:0]
    order = np.lexsort((rows["row"], rows["page"], rows["digest"], rows["mark"]))
    marks = rows["mark"][order]
    digests = rows["digest"][order]
    is_first = np.diff(marks, prepend=~marks[:1]) != 0
    others = digests != digests[is_first][np.cumsum(is_first) - 1]
    return rows[order[is_first]], rows[order[others]]


def _ranges(rows: Rows) -> dict[int, Ranges]:
    """Return rows by page as ranges."""
    rows = rows[np.lexsort((rows["row"], rows["page"]))]
    ends = np.flatnonzero((np.diff(rows["page"]) != 0) | (np.diff(rows["row"]) != 1)) + 1
    found: dict[int, Ranges] = {}
    for part in np.split(rows, ends) if len(rows) else ():
        page = int(part["page"][0])
        first = int(part["row"][0])
        found[page] = (*found.get(page, ()), (first, first + len(part)))
    return found
