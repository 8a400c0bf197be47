"""Reads a list by overlapping pages: a chain to its end, then the rows added at the head."""

from collections.abc import Generator

import numpy as np

from pipelines.extract.chain import Chain, Used
from pipelines.extract.marks import Index, MarkedPage, is_ascending
from pipelines.extract.pager import Pager
from pipelines.extract.pages import Ask, Purpose, Stop

OVERLAP = 3  # rows that a page shares with the one before
AFTER_TROUBLE = 5
BREAKS = 3  # of a chain, besides one page in ten
IN_VAIN = 3  # pages in a row that show nothing new
SMALL = 5  # pages with fewer rows share too few to prove anything
HEADS = 8  # pages at the head until they meet the chain


def read_chain(pager: Pager, chain: Chain) -> Generator[Ask, MarkedPage | Stop, None]:
    """Read overlapping pages to the end, then the head.

    The chain has not `ended` if the order moves too much, if pages show nothing new or if they
    have few rows.
    """
    page = yield from pager.page(0)
    chain.keyed = pager.keyed
    chain.begin(page)
    vain, back, joined = 0, _overlap(pager, chain), True
    while not (joined and _is_last(pager, page, chain, vain)):
        if pager.size < SMALL or vain == IN_VAIN or is_unordered(chain):
            return
        length, back = len(chain), min(back, chain.end)
        pager.reached = max(pager.reached, length)
        page = yield from pager.page(chain.end - back, pager.size - _overlap(pager, chain))
        chain.keyed, joined = pager.keyed, True
        if chain.end == back:
            chain.begin(page)
        elif not chain.join(page, back):
            joined, back = False, max(2 * back, pager.size // 2)
            continue
        vain = 0 if len(chain) > length else vain + 1
        back = _overlap(pager, chain)
    chain.ended = True
    pager.end_at(chain.end, len(chain))
    if not is_one_page(pager, chain):
        yield from _read_head(pager, chain)


def is_one_page(pager: Pager, chain: Chain) -> bool:
    """Return whether one answer showed the whole list."""
    return chain.ended and len(pager.pages) == 1


def is_unordered(chain: Chain) -> bool:
    """Return whether chains are of no use, since the order of the list moves too much."""
    breaks = chain.breaks
    if chain.swapped:
        breaks += max(0, chain.inserted - len(chain.head))
    return breaks > BREAKS + len(chain.pieces) / 10


def _is_last(pager: Pager, page: MarkedPage, chain: Chain, vain: int) -> bool:
    if page.has_more or not page.is_short or page.end != chain.end:
        return False
    return vain > 0 or len(chain) >= pager.expected


def _overlap(pager: Pager, chain: Chain) -> int:
    rows = AFTER_TROUBLE if chain.breaks or chain.inserted or chain.removed else OVERLAP
    return max(1, min(pager.size // 2, rows + 2 * chain.largest_shift))


def _read_head(pager: Pager, chain: Chain) -> Generator[Ask, MarkedPage | Stop, None]:
    """Read pages from offset 0 until they meet the chain."""
    index, head = Index(chain.marks), Chain(chain.keyed)
    offset = 0
    for _page in range(HEADS):
        page = yield from pager.page(offset, purpose=Purpose.HEAD)
        if offset == 0:
            head.begin(page)
        elif not head.join(page, head.end - offset):
            return
        places = index.find(page.marks)
        known = places[places >= 0]
        if len(known) or not len(page.marks):
            chain.meets_head = is_ascending(known) and not head.swapped
            chain.swapped = chain.swapped or not is_ascending(known)
            chain.head = _added(head, index)
            return
        offset = max(offset + 1, head.end - _overlap(pager, chain))


def _added(head: Chain, index: Index) -> list[Used]:
    """Return the rows at the head that the chain has not, each one once."""
    added: list[Used] = []
    seen = np.empty(0, np.uint64)
    for used in head.used():
        marks = used.page.marks[used.first : used.end]
        unknown = (index.find(marks) < 0) & ~np.isin(marks, seen)
        rows = (np.flatnonzero(unknown) + used.first).tolist()
        added.extend(Used(used.page, row, row + 1) for row in rows)
        seen = np.concatenate([seen, marks[unknown]])
    return added
